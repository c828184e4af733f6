//! Arrays under the update and the home protocol, switched between them, and freed.

use std::ops::Range;

use crate::pack::{Pack, acquire, arrive, from, n, release, site};
use dhole_model::{Coherence, Elements, MessageKind, Oid, OidRange, Version};
use dhole_protocol::{
    ArrayBlocks, ArrayEvent, Behind, Command, Event, Flush, Flushed, Message, ProtocolError,
    Pushed, RegionCommand, RegionMessage, Sent, UnreadElements, WorkerIs,
};

const ARRAY: Oid = Oid(128);
const LEN: u64 = 100;
const BLOCKS: ArrayBlocks = ArrayBlocks {
    array: ARRAY,
    len: LEN,
    per_block: LEN,
};

fn part(range: Range<u64>) -> Elements {
    Elements::new(ARRAY, range)
}

fn array(command: RegionCommand<Elements>) -> Command {
    Command::Array(command)
}

fn read(range: Range<u64>, coherence: Coherence) -> Event {
    read_of(range, coherence, false)
}

/// A read of an array that began as zeros.
fn read_of_zeros(range: Range<u64>) -> Event {
    read_of(range, Coherence::Lazy, true)
}

fn read_of(range: Range<u64>, coherence: Coherence, zero_ok: bool) -> Event {
    let unread = UnreadElements {
        elements: part(range.clone()),
        within: part(range),
        creator: n(0),
        zero_ok,
        coherence,
        ahead: None,
    };
    Event::Array(ArrayEvent::Read([unread].into_iter().collect()))
}

fn write(range: Range<u64>) -> Event {
    let (elements, site) = (part(range), site(1));
    Event::Array(ArrayEvent::Write { elements, site })
}

fn version(lamport: u64, node: usize) -> Version {
    let node = n(node);
    Version { lamport, node }
}

/// A pack whose node 0 has allocated the array, and has all of it.
fn pack(nodes: usize, coherence: Coherence) -> Pack {
    let mut pack = Pack::new(nodes);
    let event = Event::Array(ArrayEvent::Allocated {
        blocks: BLOCKS,
        coherence,
    });
    assert_eq!(pack.local(0, event), []);
    pack
}

/// What messages led to on a node since this was asked last.
fn of_node(pack: &mut Pack, node: usize) -> Vec<Command> {
    std::mem::take(&mut pack.done[node])
}

fn count(pack: &Pack, kind: MessageKind) -> usize {
    pack.sent.get(&kind).copied().unwrap_or(0)
}

/// Node 0 has written elements that nodes 1 and 2 have read.
fn read_by_others() -> Pack {
    let mut pack = pack(3, Coherence::Update);
    pack.local(0, write(10..20));
    pack.barrier();
    pack.run(1, read(0..15, Coherence::Update));
    pack.run(2, read(15..30, Coherence::Update));
    pack.messages();
    pack
}

#[test]
fn each_reader_is_pushed_just_what_it_read_in_one_message() {
    let mut pack = read_by_others();
    pack.local(0, write(5..18));
    pack.local(0, write(25..40));
    pack.begin(0, arrive());
    let pushed = |message: &Message| match message {
        Message::Elements(RegionMessage::Update { pushed }) => Some(pushed.clone()),
        _ => None,
    };
    let sent = pack.in_flight.iter();
    let sent: Vec<_> = sent
        .filter_map(|(_, to, message)| Some((*to, pushed(message)?)))
        .collect();
    let of = |range: Range<u64>| Pushed {
        bytes: 8 * (range.end - range.start),
        sent: Sent {
            region: part(range),
            version: version(2, 0),
        },
    };
    assert_eq!(sent.len(), 2);
    assert_eq!((sent[0].0, &sent[0].1[..]), (n(1), &[of(5..15)][..]));
    assert_eq!(
        (sent[1].0, &sent[1].1[..]),
        (n(2), &[of(15..18), of(25..30)][..])
    );
}

#[test]
fn what_was_pushed_is_read_without_a_message_and_the_rest_is_fetched() {
    let mut pack = read_by_others();
    pack.local(0, write(5..40));
    pack.barrier();
    pack.messages();
    of_node(&mut pack, 1);
    let done = pack.local(1, read(6..12, Coherence::Update));
    let kept = array(RegionCommand::InstallKept(part(6..12)));
    assert_eq!(done, [kept, Command::Done]);
    pack.run(1, read(0..20, Coherence::Update));
    assert_eq!(pack.messages(), 2, "15..20 was never read here");
}

#[test]
fn a_node_drops_out_of_elements_that_it_does_not_read_and_stays_in_of_others() {
    let mut pack = read_by_others();
    for _ in 0..5 {
        pack.local(0, write(0..15));
        pack.barrier();
        pack.run(1, read(0..8, Coherence::Update));
    }
    assert_eq!(count(&pack, MessageKind::DropOut), 1);
    assert_eq!(
        count(&pack, MessageKind::Update),
        5,
        "0..8 are still pushed"
    );
    assert_eq!(count(&pack, MessageKind::Fetch), 0);
}

#[test]
fn elements_that_another_node_writes_are_not_pushed_by_the_one_before() {
    let mut pack = read_by_others();
    pack.run(1, read(10..12, Coherence::Update));
    pack.local(1, write(10..12));
    pack.barrier();
    pack.run(0, read(10..20, Coherence::Update));
    pack.messages();
    pack.local(0, write(10..15));
    pack.barrier();
    assert_eq!(count(&pack, MessageKind::Update), 1);
    let kept = |command: &Command| match command {
        Command::Array(RegionCommand::Keep {
            region: elements, ..
        }) => Some(*elements),
        _ => None,
    };
    let kept: Vec<_> = pack.done[1].iter().filter_map(kept).collect();
    assert_eq!(kept, [part(12..15)], "node 0 knows no readers of 10..12");
}

#[test]
fn a_push_that_was_overtaken_by_a_fetch_is_passed_over() {
    let mut pack = read_by_others();
    pack.local(0, write(0..15));
    pack.barrier();
    pack.run(1, read(0..15, Coherence::Update));
    let pushed = Pushed {
        sent: Sent {
            region: part(0..15),
            version: version(2, 0),
        },
        bytes: 120,
    };
    let late = Message::Elements(RegionMessage::Update {
        pushed: [pushed].into_iter().collect(),
    });
    let done = pack.local(1, from(0, late));
    assert_eq!(done, [Command::PassOver { bytes: 120 }]);
}

/// Nodes 1 and 2 have copies of the array, which is at home on node 0.
fn cached() -> Pack {
    let mut pack = pack(3, Coherence::Home);
    for node in 1..3 {
        pack.run(node, read(0..LEN, Coherence::Home));
        of_node(&mut pack, node);
    }
    pack.messages();
    pack
}

#[test]
fn what_was_written_goes_home_in_one_message_and_is_acknowledged() {
    let mut pack = cached();
    pack.local(1, write(10..20));
    pack.local(1, write(20..25));
    pack.local(1, write(50..60));
    assert!(pack.nodes[1].has_unflushed());
    let done = pack.run(1, Event::Flush);
    assert!(done.ends_with(&[Command::Done]), "{done:?}");
    assert!(!pack.nodes[1].has_unflushed());
    let merge = |range: Range<u64>| {
        array(RegionCommand::MergeNext {
            bytes: 8 * (range.end - range.start),
            region: part(range),
            form: Behind::Written,
            made: None,
        })
    };
    assert_eq!(of_node(&mut pack, 0), [merge(10..25), merge(50..60)]);
    assert_eq!(pack.messages(), 2);
}

#[test]
fn an_acquirer_drops_its_copies_and_the_home_keeps_its_own() {
    let mut pack = cached();
    pack.run(1, acquire(0));
    pack.run(1, read(0..LEN, Coherence::Home));
    pack.local(1, write(10..20));
    pack.run(1, Event::Flush);
    pack.run(1, release(0));
    of_node(&mut pack, 2);
    pack.run(2, acquire(0));
    let dropped = array(RegionCommand::Invalidate(part(0..LEN)));
    assert!(of_node(&mut pack, 2).contains(&dropped));
    pack.messages();
    pack.run(2, read(12..13, Coherence::Home));
    assert_eq!(pack.messages(), 2, "from home");
    let invalidated = |c: &Command| matches!(c, Command::Array(RegionCommand::Invalidate(_)));
    assert!(!pack.done[0].iter().any(invalidated));
}

#[test]
fn a_flush_waits_for_a_worker_that_computes() {
    let mut pack = cached();
    pack.local(1, write(10..20));
    pack.begin(1, Event::Flush);
    let (_, _, flush) = pack.in_flight.pop_front().unwrap();
    let done = pack.step(0, from(1, flush.clone()), WorkerIs::Computing);
    let again = Command::DeliverAgain {
        from: n(1),
        message: flush.clone(),
    };
    assert_eq!(done, Ok(vec![again]));
    assert!(pack.nodes[0].has_deferred());
    let second = pack.step(0, from(1, flush.clone()), WorkerIs::Computing);
    assert!(matches!(second, Err(ProtocolError::BadMessage { .. })));
    let (from, message) = (n(1), flush);
    let served = pack.run(0, Event::DeliverAgain { from, message });
    let merged = |c: &Command| matches!(c, Command::Array(RegionCommand::MergeNext { .. }));
    assert!(served.iter().any(merged), "{served:?}");
    assert!(pack.done[1].ends_with(&[Command::Done]));
}

#[test]
fn a_flush_of_objects_and_elements_is_done_when_both_are_home() {
    let mut pack = cached();
    let range = OidRange::one(Oid(64));
    let coherence = Coherence::Home;
    pack.local(0, Event::Allocated { range, coherence });
    pack.run(1, crate::pack::miss_under(Oid(64), 0, coherence));
    pack.write(1, Oid(64));
    pack.local(1, write(10..20));
    of_node(&mut pack, 1);
    let begun = pack.begin(1, Event::Flush);
    assert!(!begun.contains(&Command::Done));
    assert_eq!(pack.in_flight.len(), 2);
    pack.settle();
    let done = of_node(&mut pack, 1);
    let over = done.iter().filter(|command| **command == Command::Done);
    assert_eq!(over.count(), 1, "{done:?}");
}

#[test]
fn flushes_and_pushes_that_make_no_sense_are_refused() {
    let mut pack = cached();
    let flush = |range: Range<u64>, bytes| {
        Message::Elements(RegionMessage::Flush(Flush {
            number: 1,
            flushed: [Flushed {
                region: part(range),
                bytes,
            }]
            .into_iter()
            .collect(),
            at: None,
        }))
    };
    pack.refuse(1, from(2, flush(0..10, 80)));
    pack.refuse(0, from(2, flush(0..10, 81)));
    pack.refuse(0, from(2, flush(0..10, 0)));
    pack.refuse(
        1,
        from(0, Message::Elements(RegionMessage::FlushAck { number: 7 })),
    );
    let sent = Sent {
        region: part(3..3),
        version: version(1, 0),
    };
    let pushed = [Pushed { sent, bytes: 8 }].into_iter().collect();
    pack.refuse(
        1,
        from(0, Message::Elements(RegionMessage::Update { pushed })),
    );
}

/// All nodes let the array change protocol.
fn switch(pack: &mut Pack, allocated: Coherence, to: Coherence) {
    let (array, creator) = (part(0..LEN), n(0));
    for node in 0..pack.nodes.len() {
        let event = Event::SwitchArray {
            array,
            creator,
            zero_ok: true,
            to,
            site: site(9),
        };
        pack.begin(node, event);
    }
    pack.settle();
    for node in 0..pack.nodes.len() {
        let event = Event::Array(ArrayEvent::Switched {
            blocks: BLOCKS,
            creator,
            allocated,
            to,
        });
        let done = pack.local(node, event);
        pack.done[node].extend(done);
    }
}

#[test]
fn elements_are_at_home_where_they_were_written_last() {
    let mut pack = Pack::new(3);
    pack.local(1, read_of_zeros(0..20));
    pack.local(1, write(0..20));
    pack.local(2, read_of_zeros(20..40));
    pack.local(2, write(20..40));
    switch(&mut pack, Coherence::Lazy, Coherence::Home);
    assert!(pack.done[0].contains(&Command::Done));
    pack.messages();
    pack.run(0, read_of_zeros(0..LEN));
    assert_eq!(pack.messages(), 4, "from nodes 1 and 2");
    pack.local(0, write(10..30));
    pack.run(0, Event::Flush);
    assert_eq!(count(&pack, MessageKind::Flush), 2, "one for each home");
    switch(&mut pack, Coherence::Lazy, Coherence::Update);
    pack.messages();
    pack.run(2, read_of_zeros(0..LEN));
    assert_eq!(
        pack.messages(),
        4,
        "from node 1 and from node 0, where zeros are at home"
    );
}

fn free() -> Event {
    let ids = OidRange {
        first: ARRAY,
        count: 64,
    };
    Event::Array(ArrayEvent::Free { ids, site: site(4) })
}

#[test]
fn a_freed_array_leaves_its_ids_alone_and_is_an_error_everywhere() {
    for coherence in Coherence::ALL {
        let mut pack = pack(3, coherence);
        for node in 1..3 {
            pack.run(node, read(0..LEN, coherence));
        }
        pack.local(1, write(0..10));
        let freed = pack.local(1, free());
        assert!(matches!(
            freed[..],
            [Command::Array(RegionCommand::Free(_))]
        ));
        let again = pack.refuse(1, free());
        assert!(matches!(again, ProtocolError::Freed(freed) if freed.oid == ARRAY));
        pack.barrier();
        for node in 0..3 {
            pack.refuse(node, read(0..1, coherence));
            pack.refuse(node, write(0..1));
            assert_eq!(pack.nodes[node].array_records_kept(), [0, 1]);
        }
    }
}

#[test]
fn who_has_not_heard_that_an_array_is_freed_is_told_when_it_asks() {
    let mut pack = pack(2, Coherence::Lazy);
    pack.local(0, write(0..1));
    pack.barrier();
    pack.local(0, free());
    let told = pack.run(1, read(0..1, Coherence::Lazy));
    let gone = |c: &Command| matches!(c, Command::Gone(freed) if freed.oid == ARRAY);
    assert!(told.iter().any(gone), "{told:?}");
}
