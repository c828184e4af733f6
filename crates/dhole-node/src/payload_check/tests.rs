//! Payloads of every message that has one, whole and too long.

use std::sync::Arc;

use dhole_heap::{Cluster, PAGE_BYTES};
use dhole_model::{Elements, Oid, PageId, VectorTime, Version};
use dhole_net::{Envelope, Outbox, Payload, PayloadPool, Receiver};
use dhole_protocol::built_in::Directory;
use dhole_protocol::{
    BarrierId, CoherenceProtocol, DiffId, FetchReply, Flush, Flushed, Gossip, MemberMessage,
    Message, NodeSet, Pushed, RegionMessage, Sent, SentDiff, WriteNotices,
};

use super::*;
use crate::ended::Ended;
use crate::node::Node;
use crate::settings::Settings;

const NODES: usize = 2;
const FROM: NodeId = NodeId(0);

fn sent(oid: Oid) -> Sent {
    let (lamport, node) = (1, FROM);
    let version = Version { lamport, node };
    Sent {
        region: oid,
        version,
    }
}

/// Each message with a payload, and how long that is; and two without one.
fn messages(object: Oid, elements: Elements) -> Vec<(Message, u64)> {
    let sent_elements = Sent {
        region: elements,
        version: sent(object).version,
    };
    let pushed = |bytes| Pushed {
        sent: sent(object),
        bytes,
    };
    let (number, round, page, at) = (1, 1, PageId(0), None);
    let diff = |bytes| SentDiff {
        id: DiffId {
            node: FROM,
            page,
            index: 1,
        },
        lamport: 1,
        bytes,
    };
    let update = Message::Region(RegionMessage::Update {
        pushed: [pushed(8), pushed(5)].into_iter().collect(),
    });
    let gossip = Arc::new(Gossip {
        epoch: 1,
        reported: NodeSet::default(),
        minimum: VectorTime::zero(NODES),
        floor: VectorTime::zero(NODES),
    });
    let depart = |barrier| Message::BarrierDepart {
        barrier,
        news: Box::new(WriteNotices {
            time: VectorTime::zero(NODES),
            lamport: 1,
            intervals: Vec::new(),
        }),
        collect: false,
        rounds: 0,
    };
    let carrier = || Box::new(update.clone());
    vec![
        (
            Message::FetchReply(FetchReply {
                round,
                sent: [sent(object), sent(object)].into_iter().collect(),
                keep: false,
            }),
            16,
        ),
        (
            Message::ElementsReply(FetchReply {
                round,
                sent: [sent_elements].into(),
                keep: false,
            }),
            12,
        ),
        (
            Message::Region(RegionMessage::Flush(Flush {
                number,
                flushed: [3, 4]
                    .map(|bytes| Flushed {
                        region: object,
                        bytes,
                    })
                    .into_iter()
                    .collect(),
                at: None,
            })),
            7,
        ),
        (
            Message::Elements(RegionMessage::Update {
                pushed: [Pushed {
                    sent: sent_elements,
                    bytes: 12,
                }]
                .into(),
            }),
            12,
        ),
        (
            Message::Elements(RegionMessage::Flush(Flush {
                number,
                flushed: [Flushed {
                    region: elements,
                    bytes: 12,
                }]
                .into(),
                at,
            })),
            12,
        ),
        (
            Message::Coherence(MemberMessage {
                member: Directory::coherence().member().unwrap(),
                body: Vec::new(),
                sizes: [5, 6].into_iter().collect(),
            }),
            11,
        ),
        (
            Message::PageReply {
                round,
                page,
                applied: Default::default(),
            },
            PAGE_BYTES,
        ),
        (
            Message::DiffReply {
                round,
                page,
                got: Default::default(),
                diffs: [diff(2), diff(9)].into_iter().collect(),
            },
            11,
        ),
        (
            Message::Gossiped {
                gossip,
                carrier: carrier(),
            },
            13,
        ),
        (
            Message::After {
                delivered: 1,
                carrier: carrier(),
            },
            13,
        ),
        (update, 13),
        (Message::Region(RegionMessage::FlushAck { number }), 0),
        (depart(BarrierId::Program(1)), 0),
    ]
}

struct Pair {
    node: Node,
    pool: Arc<PayloadPool>,
    object: Oid,
    elements: Elements,
}

/// Node 1, and what it knows of.
fn pair() -> Pair {
    let cluster = Cluster::new(NODES).unwrap();
    let pool = Arc::new(PayloadPool::default());
    let node = Node::new(NodeId(1), NODES, &Settings::nodes(NODES), &cluster, &pool);
    let (object, array) = {
        let mut guard = node.monitor.lock();
        let (mut heap, _) = guard.split();
        let object = heap.alloc(7_u64).unwrap().oid();
        (object, heap.alloc_array::<u32>(10).unwrap())
    };
    let elements = Elements::new(array.oid(), 2..5);
    Pair {
        node,
        pool,
        object,
        elements,
    }
}

impl Pair {
    fn checked(&self, message: &Message, bytes: u64) -> Result<(), ProtocolError> {
        let mut guard = self.node.monitor.lock();
        let (mut heap, _) = guard.split();
        let payload = vec![0; usize::try_from(bytes).unwrap()];
        let mut step = Step {
            from: FROM,
            heap: &mut heap,
            pool: &self.pool,
            out: &mut Outbox::default(),
            payload: &payload,
            at_once: None,
        };
        check_payload(FROM, message.payload(), &mut step)
    }

    /// How the run ended here when this message came, or nothing.
    fn delivered(&self, message: &Message, bytes: u64) -> String {
        let mut payload = Payload::NONE;
        payload.extend(&vec![0; usize::try_from(bytes).unwrap()]);
        let envelope = Envelope {
            from: FROM,
            to: NodeId(1),
            body: message.clone(),
            payload,
        };
        let _ = self.node.deliver(envelope, &mut Outbox::default());
        let mut guard = self.node.monitor.lock();
        match guard.split().1.ended() {
            Some(Ended::Broken(cause)) => cause.to_string(),
            None => String::new(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_payload_is_no_longer_than_what_its_message_names() {
    let pair = pair();
    for (message, bytes) in messages(pair.object, pair.elements) {
        let kind = message.kind();
        assert_eq!(pair.checked(&message, bytes), Ok(()), "{kind:?}");
        let refused = pair.checked(&message, bytes + 1).unwrap_err().to_string();
        assert!(refused.contains("more bytes"), "{kind:?}: {refused}");
    }
}

#[test]
fn a_message_with_bytes_behind_what_it_names_ends_the_run() {
    let of = pair();
    for number in 0..messages(of.object, of.elements).len() {
        let pair = pair();
        let (message, bytes) = messages(pair.object, pair.elements).swap_remove(number);
        let ended = pair.delivered(&message, bytes + 1);
        assert!(ended.contains("more bytes"), "{message:?}: {ended}");
    }
}

#[test]
fn a_value_may_have_any_length_and_lengths_do_not_overflow() {
    let pair = pair();
    let once = messages(pair.object, pair.elements).pop().unwrap().0;
    let Message::BarrierDepart { news, .. } = once else {
        panic!("the last");
    };
    let once = Message::BarrierDepart {
        barrier: BarrierId::Once(1),
        news,
        collect: false,
        rounds: 0,
    };
    for bytes in [0, 1, 100] {
        assert_eq!(pair.checked(&once, bytes), Ok(()));
    }
    let flushed = Flushed {
        region: pair.object,
        bytes: u64::MAX,
    };
    let flush = Message::Region(RegionMessage::Flush(Flush {
        number: 1,
        flushed: [flushed, flushed].into_iter().collect(),
        at: None,
    }));
    assert_eq!(
        pair.checked(&flush, 100),
        Ok(()),
        "refused where it is taken"
    );
    // One that is not known is refused where its bytes are taken.
    let stranger = Message::FetchReply(FetchReply {
        round: 1,
        sent: [sent(Oid(u64::MAX - 1))].into(),
        keep: false,
    });
    assert_eq!(pair.checked(&stranger, 100), Ok(()));
}
