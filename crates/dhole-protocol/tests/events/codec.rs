//! Messages as bytes: every one comes back as it was, and bytes that are none are refused, without
//! a panic and without memory that they only claim to need.

use std::collections::BTreeSet;
use std::sync::Arc;

use dhole_model::{CallSite, Coherence, Elements, MAX_NODES, NodeId, Oid, VectorTime, Version};
use dhole_protocol::memory::sync::{ThreadId, ThreadMessage, ThreadSync};
use dhole_protocol::memory::{MemoryKind, MemoryMessage, MemoryOperation, Millipage, Minipage};
use dhole_protocol::{
    AbortReason, Attached, BarrierId, CombineRequest, DecodeError, Fetch, Flush, Flushed,
    FlushedAt, Follow, FollowedReferences, Frame, HandedOut, Interval, Message, Pushed, RegionKind,
    RegionMessage, Sent, UpdateBatch, Waiter, WaitingFor, Wanted, WriteNotices, WrittenPages,
};
use dhole_wire::{Wire as _, WireError};
use proptest::prelude::*;

use crate::bad_messages::moments;
use crate::object_messages::{object_messages, writes_alone};
use crate::pack::{n, no_news, site};

/// A name for each variant. Whoever adds one makes this fail to compile, and then the moments
/// have to show it.
macro_rules! variants {
    ($all:ident, $type:ident, $of:ident $(<$region:ident>)?: $($name:ident)*) => {
        const $all: &[&str] = &[$(stringify!($name)),*];

        fn $of$(<$region: RegionKind>)?(message: &$type$(<$region>)?) -> &'static str {
            match message {
                $($type::$name { .. } => stringify!($name),)*
            }
        }
    };
}

variants! {
    VARIANTS, Message, of_message:
    Fetch FetchReply Region Elements FetchElements ElementsReply
    PageRequest PageReply DiffRequest DiffReply LockRequest LockForward LockGrant Notify
    SyncRequest SyncForward SyncGrant SyncRelease BarrierArrive BarrierDepart BarrierRound Probe
    WhereWritten WrittenAt Untold Told Deadlock Abort Gossiped
    Objects Collective After AskIds HandIdsOut
    Coherence Part SyncReleaseAndWake Combine Combined
}

variants! {
    OF_REGIONS, RegionMessage, of_regions<R>:
    Update DropOut Flush FlushAck Outdated OutdatedAck Gone
}

fn variant(message: &Message) -> [&'static str; 2] {
    let within = match message {
        Message::Region(message) => of_regions(message),
        Message::Elements(message) => of_regions(message),
        _ => "",
    };
    [of_message(message), within]
}

/// What is said of minipages: of each kind, for each operation.
fn memory_messages() -> impl Iterator<Item = Message> {
    use MemoryOperation::{Bring, BringToWrite, Free, Push, Read, Write};
    MemoryKind::ALL.into_iter().flat_map(|kind| {
        [Read, Write, Push, Free, Bring, BringToWrite].map(|operation| {
            Message::Part(Frame::of::<Millipage>(&MemoryMessage {
                kind,
                operation,
                asker: NodeId(2),
                number: 70_000,
                ticket: 5,
                address: (3 << 36) | 4100,
                minipage: Minipage {
                    at: (3 << 36) | 4096,
                    bytes: 148,
                },
            }))
        })
    })
}

/// What is said of threads, of each kind.
fn thread_messages() -> impl Iterator<Item = Message> {
    let thread = ThreadId::new(NodeId(2), NodeId(1), 70_000);
    let (by, key, count) = (ThreadId::new(NodeId(0), NodeId(0), 0), 1 << 40 | 7, 300);
    let all = [
        ThreadMessage::Acquire {
            key,
            number: 3,
            tries: true,
        },
        ThreadMessage::Forward {
            key,
            asker: NodeId(2),
            number: 3,
            tries: false,
        },
        ThreadMessage::Token { key },
        ThreadMessage::Busy { key, number: 3 },
        ThreadMessage::Arrive {
            key,
            parties: 4,
            count,
        },
        ThreadMessage::Depart {
            key,
            count,
            first: true,
        },
        ThreadMessage::Refuse {
            key,
            parties: 4,
            count,
        },
        ThreadMessage::Wait {
            condition: key,
            thread,
        },
        ThreadMessage::Queued { thread },
        ThreadMessage::Signal {
            condition: key,
            all: false,
        },
        ThreadMessage::Signalled { thread },
        ThreadMessage::Post { key, count },
        ThreadMessage::Set { key, thread, count },
        ThreadMessage::Take {
            key,
            thread,
            tries: false,
        },
        ThreadMessage::Taken {
            thread,
            taken: true,
        },
        ThreadMessage::Start {
            thread,
            entry: 5,
            argument: key,
            by,
            awaited: true,
        },
        ThreadMessage::Begun {
            thread,
            by,
            begins: true,
        },
        ThreadMessage::Join { thread, by },
        ThreadMessage::Joined {
            thread,
            by,
            value: key,
            ran: true,
        },
        ThreadMessage::Leave,
    ];
    all.into_iter()
        .map(|message| Message::Part(Frame::of::<ThreadSync>(&message)))
}

#[test]
fn the_first_byte_of_a_message_says_of_which_part_it_is() {
    for message in messages() {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let expected = match &message {
            Message::Part(frame) => Some((frame.part(), frame.bytes())),
            _ => None,
        };
        assert_eq!(Frame::split(&bytes), expected, "{message:?}");
    }
}

/// Messages of every variant: those of runs in which everything happens, and those that end runs.
pub fn messages() -> Vec<Message> {
    let mut all: Vec<Message> = moments().into_iter().map(|(_, (.., m))| m).collect();
    let waiter = |node| {
        let waiting_for = WaitingFor::Barrier(BarrierId::Program(3));
        Waiter::of_worker(n(node), waiting_for, site(7), 2)
    };
    let cycle = [waiter(0), waiter(1)];
    let reasons = [
        AbortReason::Panicked("of the program's own words".into()),
        AbortReason::Failed("".into()),
        AbortReason::Deadlocked(cycle.as_slice().into()),
        AbortReason::Lost("it left early".into()),
    ];
    let abort = |reason| Message::Abort {
        node: NodeId(1),
        reason,
    };
    all.extend(reasons.map(abort));
    all.push(Message::Deadlock {
        cycle: cycle.as_slice().into(),
    });
    all.extend(memory_messages());
    all.extend(thread_messages());
    let array = Oid(640);
    all.push(Message::Elements(RegionMessage::Gone {
        round: 9,
        oid: array,
        by: None,
    }));
    let elements = Elements::new(array, 3..5);
    let version = Version {
        lamport: 300,
        node: n(1),
    };
    let sent = Sent {
        region: elements,
        version,
    };
    let bytes = 16;
    all.push(Message::Elements(RegionMessage::Update {
        pushed: [Pushed { sent, bytes }].into_iter().collect(),
    }));
    all.push(Message::Elements(RegionMessage::Flush(Flush {
        number: 70_000,
        flushed: [Flushed {
            region: elements,
            bytes,
        }; 3]
            .into_iter()
            .collect(),
        at: Some(Arc::new(FlushedAt {
            time: VectorTime::zero(3),
            sites: [None, Some(site(3)), None].into_iter().collect(),
        })),
    })));
    let of_type = FollowedReferences {
        shipped: 7,
        slots: 0b101,
    };
    all.push(Message::Fetch(Fetch {
        round: 9,
        wanted: [Wanted {
            region: array,
            need: version,
        }]
        .into(),
        beside: 0,
        follow: Follow {
            most: 64,
            references: [of_type; 2].into_iter().collect(),
        },
    }));
    all.push(Message::AskIds { ids: 512 });
    all.push(Message::HandIdsOut(HandedOut {
        first: 1 << 20,
        count: 4096,
        left: 1 << 40,
    }));
    all.push(Message::Elements(RegionMessage::FlushAck { number: 1 }));
    all.push(Message::Elements(RegionMessage::Outdated {
        number: 2,
        regions: [elements].into_iter().collect(),
    }));
    all.push(Message::Elements(RegionMessage::OutdatedAck { number: 2 }));
    let batch = UpdateBatch {
        array,
        creator: n(1),
        coherence: Coherence::Update,
        combining: 3,
        site: site(4),
        updates: vec![(2, u64::MAX), (3, 1)],
    };
    all.push(Message::Combine(Box::new(CombineRequest {
        number: 5,
        time: VectorTime::zero(3),
        batches: vec![batch.clone(); 2],
    })));
    all.push(Message::Combined {
        number: 5,
        news: no_news(3),
        left: vec![batch],
    });
    all.extend(object_messages());
    let granted = all.iter().filter(|message| message.passes_order_on());
    let after: Vec<Message> = granted.map(|message| message.clone().after(300)).collect();
    all.extend(after);
    all.push(Message::Elements(RegionMessage::DropOut {
        regions: [elements; 2].into_iter().collect(),
    }));
    all
}

pub fn encoded(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

#[test]
fn every_message_comes_back_as_it_was() {
    let all = messages();
    let shown: BTreeSet<_> = all.iter().map(variant).collect();
    let kinds = ["Region", "Elements"];
    let others = VARIANTS.iter().filter(|name| !kinds.contains(name));
    let of_regions = kinds.map(|kind| OF_REGIONS.iter().map(move |name| [kind, name]));
    let wanted = others.map(|name| [*name, ""]);
    let wanted: BTreeSet<_> = wanted.chain(of_regions.into_iter().flatten()).collect();
    assert_eq!(shown, wanted);
    for message in all {
        let mut bytes = b"before".to_vec();
        message.encode(&mut bytes);
        let bytes = bytes.strip_prefix(b"before").expect("it is appended");
        assert_eq!(Message::decode(bytes).as_ref(), Ok(&message));
    }
}

#[test]
fn a_part_of_a_message_and_one_with_something_behind_it_are_none() {
    for message in messages() {
        let mut bytes = encoded(&message);
        // The arguments of a call are all that is left, and so is its result.
        if bytes[0] >= 0x80 {
            continue;
        }
        for end in 0..bytes.len() {
            assert!(Message::decode(&bytes[..end]).is_err(), "{message:?}");
        }
        bytes.push(0);
        let more = Message::decode(&bytes);
        let long = DecodeError::Malformed {
            bytes: bytes.len(),
            cause: WireError::Long { rest: 1 },
        };
        assert_eq!(more, Err(long));
    }
}

#[test]
fn a_message_has_the_length_that_it_says() {
    for message in messages() {
        assert_eq!(
            encoded(&message).len(),
            message.encoded_len(),
            "{message:?}"
        );
    }
}

#[test]
fn operations_that_say_nothing_have_no_bytes_for_it() {
    let mut found = BTreeSet::new();
    for message in messages().into_iter().chain(writes_alone()) {
        let mut bytes = encoded(&message);
        // Where the head of a call and of an ordered write ends.
        let head = match bytes[0] {
            0x80 => 42,
            0x82 | 0x83 => 68,
            _ => continue,
        };
        found.insert(bytes[0]);
        let notices: &mut [u8; 4] = (&mut bytes[4..8]).try_into().unwrap();
        let length = u32::from_le_bytes(*notices) as usize;
        *notices = 2_u32.to_le_bytes();
        bytes.splice(head..head + length, [0, 0]);
        assert!(Message::decode(&bytes).is_err(), "{message:?}");
    }
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn no_two_encodings_are_of_one_message() {
    for message in messages() {
        let bytes = encoded(&message);
        let general = message.to_bytes();
        assert_eq!(Message::decode(&general).is_ok(), general == bytes);
        for bit in 0..8 * bytes.len() {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            if let Ok(told) = Message::decode(&other) {
                assert_ne!(told, message, "bit {bit}");
                assert_eq!(encoded(&told), other, "bit {bit} of {message:?}");
            }
        }
    }
}

#[test]
fn messages_do_not_nest() {
    let all = messages();
    let gossiped = all.iter().find_map(|message| match message {
        Message::Gossiped { gossip, .. } => Some((gossip.clone(), Box::new(message.clone()))),
        _ => None,
    });
    let (gossip, carrier) = gossiped.expect("one of the moments shows gossip");
    let mut nested = vec![Message::Gossiped {
        gossip: gossip.clone(),
        carrier: carrier.clone(),
    }];
    let delivered = 7;
    let after = Box::new(Message::After { delivered, carrier });
    nested.push(Message::Gossiped {
        gossip,
        carrier: after.clone(),
    });
    let carrier = after;
    nested.push(Message::After { delivered, carrier });
    for message in nested {
        assert!(Message::decode(&encoded(&message)).is_err());
    }
    // A carrier of nothing but carriers is not read to its end.
    let after = Message::After {
        delivered,
        carrier: Box::new(Message::Region(RegionMessage::OutdatedAck { number: 1 })),
    };
    let deep = encoded(&after)[..9].repeat(1 << 20);
    assert!(Message::decode(&deep).is_err());
}

/// The most bytes that are allocated at once for each that is there: what is largest in memory
/// beside its form on a wire, twice over while a list grows.
const MOST_FOR_EACH: u64 = 256;

fn decodes_within_bounds(bytes: &[u8]) {
    let used = allocation_counter::measure(|| drop(Message::decode(bytes)));
    let allowed = MOST_FOR_EACH * (bytes.len() as u64 + 64);
    let taken = used.bytes_max;
    assert!(taken <= allowed, "{taken} for {} bytes", bytes.len());
}

#[test]
fn a_length_that_is_not_there_takes_no_memory() {
    // Each byte in turn is made the beginning of a number near 2^60.
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f];
    for message in messages() {
        let bytes = encoded(&message);
        for place in 0..bytes.len() {
            let mut spoiled = bytes[..place].to_vec();
            spoiled.extend_from_slice(&huge);
            spoiled.extend_from_slice(&bytes[place + 1..]);
            decodes_within_bounds(&spoiled);
        }
    }
}

#[test]
fn times_of_more_nodes_than_there_can_be_are_left_to_be_refused_but_for_those_of_pages() {
    let time = VectorTime::zero;
    let interval = |of_pages| Interval {
        node: n(1),
        first: 1,
        index: 1,
        lamport: 1,
        written: Vec::new(),
        base: None,
        elements: Vec::new(),
        freed: Vec::new(),
        attached: Attached::Pages(Arc::new(WrittenPages::new(time(of_pages), Vec::new()))),
    };
    let message = |of_pages| Message::BarrierArrive {
        barrier: BarrierId::Program(0),
        news: Box::new(WriteNotices {
            time: time(MAX_NODES + 1),
            lamport: 1,
            intervals: vec![Arc::new(interval(of_pages))],
        }),
        site: site(1),
        full: false,
        has_news: true,
    };
    let known = message(MAX_NODES);
    assert_eq!(Message::decode(&encoded(&known)), Ok(known));
    assert!(Message::decode(&encoded(&message(MAX_NODES + 1))).is_err());
}

#[test]
fn names_of_files_are_limited() {
    let name: &'static str = "x".repeat(100_000).leak();
    let message = Message::WrittenAt {
        raced: dhole_protocol::Raced::Object(Oid(64)),
        lamport: 1,
        site: Some(CallSite {
            file: name,
            line: 1,
            column: 1,
        }),
    };
    let Ok(Message::WrittenAt {
        site: Some(told), ..
    }) = Message::decode(&encoded(&message))
    else {
        panic!("it is a message");
    };
    assert!(told.file.len() < 100 && told.line == 1);
}

proptest! {
    #[test]
    fn bytes_that_were_changed_never_panic_nor_take_memory(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let all = messages();
        let mut bytes = encoded(which.get(&all));
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        decodes_within_bounds(&bytes);
    }

    #[test]
    fn any_bytes_never_panic_nor_take_memory(
        bytes in prop::collection::vec(any::<u8>(), 0..200)
    ) {
        decodes_within_bounds(&bytes);
    }
}
