//! What goes the short way, and that it leaves behind what the general one does.

use std::sync::Arc;

use dhole_heap::{Cluster, Own, Ref, Share};
use dhole_model::{CallSite, Coherence, Oid, OidRange, Version};
use dhole_net::{Envelope, Outbox, PayloadPool, Receiver};
use dhole_protocol::{Event, Message};

use super::*;
use crate::launch::Settings;
use crate::node::{Node, Step};

const NODES: usize = 2;

/// What both nodes of a cluster are, and what they have said.
struct Pair {
    nodes: [Node; NODES],
    /// Whether messages are delivered by their bytes where that is possible.
    singly: bool,
    said: Vec<(Message, Vec<u8>)>,
    /// How many went the short way.
    went: usize,
}

impl Pair {
    fn new(singly: bool, settings: Settings) -> Pair {
        let cluster = Cluster::new(NODES).unwrap();
        let pool = Arc::new(PayloadPool::default());
        let node = |me| Node::new(NodeId(me), NODES, &settings, &cluster, &pool);
        Pair {
            nodes: [node(0), node(1)],
            singly,
            said: Vec::new(),
            went: 0,
        }
    }

    /// A step of a node's worker; what it sends arrives, and what comes of that.
    fn step(&mut self, node: usize, event: Event) {
        let mut out = Outbox::default();
        let mut guard = self.nodes[node].monitor.lock();
        let (mut heap, state) = guard.split();
        let mut step = Step {
            from: NodeId::at(node),
            heap: &mut heap,
            pool: &self.nodes[node].pool,
            out: &mut out,
            payload: &[],
        };
        state.step(event, &mut step).unwrap();
        drop(guard);
        while let Some(envelope) = out.pop() {
            self.deliver(envelope, &mut out);
        }
    }

    fn deliver(&mut self, envelope: Envelope<Message>, out: &mut Outbox<Message>) {
        let Envelope {
            from,
            to,
            body,
            payload,
        } = envelope;
        self.said.push((body.clone(), payload.to_vec()));
        let mut bytes = Vec::new();
        body.encode(&mut bytes).unwrap();
        bytes.extend_from_slice(&payload);
        let node = &self.nodes[to.index()];
        if self.singly && single::is_begun_by(&bytes) {
            let answer = &mut |_, parts: [&[u8]; 2]| {
                let mut payload = Payload::NONE;
                payload.extend(parts[1]);
                let body = Message::decode(parts[0]).unwrap();
                let (from, to) = (to, from);
                out.push(Envelope {
                    from,
                    to,
                    body,
                    payload,
                });
            };
            if node.deliver_bytes(from, &bytes, answer).is_some() {
                self.went += 1;
                return;
            }
        }
        let envelope = Envelope {
            from,
            to,
            body,
            payload,
        };
        let _wake = Receiver::deliver(node, envelope, out);
    }

    /// Node 0 allocates an object.
    fn alloc<T: Share>(&mut self, value: T) -> Ref<T> {
        let mut guard = self.nodes[0].monitor.lock();
        let object = guard.split().0.alloc(value).unwrap();
        drop(guard);
        let (range, coherence) = (OidRange::one(object.oid()), Coherence::Lazy);
        self.step(0, Event::Allocated { range, coherence });
        object
    }

    /// Node 1 misses it; whether it is there then.
    fn miss(&mut self, oid: Oid) -> bool {
        self.step(
            1,
            Event::ReadMiss(Unread {
                oid,
                creator: NodeId(0),
                zero_ok: false,
                coherence: Coherence::Lazy,
            }),
        );
        let mut guard = self.nodes[1].monitor.lock();
        let (heap, state) = guard.split();
        heap.is_present(oid) && state.take_outcome() && !state.has_failed()
    }
}

/// The program that both ways have to do alike: misses of objects that are clean, written and not
/// announced, announced, and large, and of one that owns another.
fn misses(singly: bool, settings: Settings) -> Pair {
    let mut pair = Pair::new(singly, settings);
    let small = pair.alloc([7_u64; 8]).oid();
    assert!(pair.miss(small));
    let site = CallSite::caller();
    for _ in 0..3 {
        let oid = pair.alloc([9_u16; 3]).oid();
        pair.step(0, Event::WriteFault { oid, site });
        assert!(pair.miss(oid), "written by who is in a call");
        let oid = pair.alloc(5_u32).oid();
        pair.step(0, Event::WriteFault { oid, site });
        pair.step(0, Event::EndInterval);
        pair.step(0, Event::WriteFault { oid, site });
        pair.step(0, Event::EndInterval);
        assert!(pair.miss(oid), "exclusive");
    }
    let large = pair.alloc([1_u64; 1024]).oid();
    assert!(pair.miss(large));
    let owned = pair.alloc(8_u64);
    let owner = pair.alloc(Own::from(owned)).oid();
    assert!(pair.miss(owner));
    assert!(
        pair.nodes[1]
            .monitor
            .lock()
            .split()
            .0
            .is_present(owned.oid()),
        "it came along"
    );
    pair
}

#[test]
fn what_goes_the_short_way_says_and_counts_what_goes_the_general_one() {
    let [short, general] = [true, false].map(|singly| misses(singly, Settings::nodes(NODES)));
    // The owner does not, and what is large does not as it is sent.
    assert_eq!((short.went, general.went), (2 * 7 + 1, 0));
    let (mut said, mut as_whole) = (short.said, general.said);
    for said in [&mut said, &mut as_whole] {
        // The last ones of both name other objects.
        said.truncate(said.len() - 1);
    }
    for ((short, object), (general, bytes)) in said.iter().zip(&as_whole) {
        assert_eq!(
            (short.kind(), short.wire_bytes()),
            (general.kind(), general.wire_bytes())
        );
        assert!(object == bytes, "{short:?}");
    }
    for (short, general) in short.nodes.iter().zip(&general.nodes) {
        assert_eq!(short.counters(), general.counters());
    }
}

#[test]
fn where_nodes_may_be_lost_nothing_goes_the_short_way() {
    let settings = Settings {
        survive: true,
        ..Settings::nodes(NODES)
    };
    assert_eq!(misses(true, settings).went, 0);
}

#[test]
fn a_reply_that_does_not_bring_what_was_asked_for_is_left_to_the_whole_message() {
    let mut pair = Pair::new(true, Settings::nodes(NODES));
    let objects = [pair.alloc(true).oid(), pair.alloc(false).oid()];
    let unread = Unread {
        oid: objects[0],
        creator: NodeId(0),
        zero_ok: false,
        coherence: Coherence::Lazy,
    };
    let node = &pair.nodes[1];
    let asked = node.monitor.lock().split().1.protocol.ask_singly(&unread);
    let Some((NodeId(0), Single::Fetch { round, wanted, .. })) = asked else {
        panic!("{asked:?}");
    };
    let sent = Sent {
        oid: wanted.oid,
        version: wanted.need,
    };
    let told = |from: u16, round, sent, object: &[u8]| {
        let head = single::bytes(Single::Reply {
            round,
            sent,
            keep: false,
        });
        let bytes = [&head[..], object].concat();
        node.deliver_bytes(NodeId(from), &bytes, &mut |_, _| panic!("an answer"))
    };
    let other = Sent {
        oid: objects[1],
        ..sent
    };
    let beyond = Sent {
        version: Version {
            lamport: 1 << 46,
            node: NodeId(0),
        },
        ..sent
    };
    for (from, round, sent, object) in [
        (1, round, sent, &[1_u8][..]),
        (2, round, sent, &[1]),
        (0, round + 1, sent, &[1]),
        (0, round, other, &[1]),
        (0, round, beyond, &[1]),
        (0, round, sent, &[]),
        (0, round, sent, &[1, 1]),
        // No `bool`.
        (0, round, sent, &[2]),
    ] {
        assert_eq!(
            told(from, round, sent, object),
            None,
            "{from} {sent:?} {object:?}"
        );
    }
    assert!(!node.monitor.lock().split().0.is_present(objects[0]));
    assert_eq!(told(0, round, sent, &[1]), Some(Wake::Yes));
    assert!(node.monitor.lock().split().0.is_present(objects[0]));
    assert_eq!(told(0, round, sent, &[1]), None, "it counts once");
}

#[test]
fn while_the_worker_computes_only_what_it_does_not_write_is_answered() {
    let mut pair = Pair::new(true, Settings::nodes(NODES));
    let site = CallSite::caller();
    let [clean, dirty, exclusive] = [1_u64, 2, 3].map(|value| pair.alloc(value).oid());
    for _ in 0..2 {
        pair.step(
            0,
            Event::WriteFault {
                oid: exclusive,
                site,
            },
        );
        pair.step(0, Event::EndInterval);
    }
    pair.step(0, Event::WriteFault { oid: dirty, site });
    let node = &pair.nodes[0];
    let answers = |oid, lamport| {
        let (round, beside, node_0) = (9, 0, NodeId(0));
        let need = Version {
            lamport,
            node: node_0,
        };
        let wanted = Wanted { oid, need };
        let fetch = Single::Fetch {
            round,
            wanted,
            beside,
        };
        let mut said = false;
        let taken = node.deliver_bytes(NodeId(1), &single::bytes(fetch), &mut |_, _| said = true);
        assert_eq!(taken.is_some(), said);
        said
    };
    let lent = node.monitor.lend(|_token| {
        assert!(answers(clean, 0));
        assert!(!answers(clean, 1), "there is no such copy here");
        assert!(!answers(dirty, 0) && !answers(exclusive, 0));
        assert!(!answers(Oid(7), 0) && !answers(Oid(u64::MAX), 0));
    });
    lent.unwrap();
}
