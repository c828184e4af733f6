//! What is carried out at once, and that it leaves behind what the recorded effects do.

use std::sync::Arc;

use dhole_heap::{Cluster, Own, Ref, Share};
use dhole_model::{CallSite, Coherence, NodeId, Oid, OidRange, Version};
use dhole_net::{Envelope, Outbox, Payload, PayloadPool, Receiver, Wake};
use dhole_protocol::{
    AbortReason, Event, FetchReply, Follow, Message, RegionMessage, Short, Wanted,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::ended::Ended;
use crate::node::Node;
use crate::settings::Settings;

const NODES: usize = 2;

/// What both nodes of a cluster are, and what they have said.
struct Pair {
    nodes: [Node; NODES],
    /// Whether messages come and go by their bytes where that is possible.
    direct: bool,
    said: Vec<(Message, Vec<u8>)>,
    /// How many went by their bytes.
    went: usize,
}

/// The bytes of a message, and those of its payload.
type Apart = (Vec<u8>, Vec<u8>);

fn apart([first, second, payload]: [&[u8]; 3]) -> Apart {
    ([first, second].concat(), payload.to_vec())
}

impl Pair {
    fn new(direct: bool, settings: Settings) -> Pair {
        let cluster = Cluster::new(NODES).unwrap();
        let pool = Arc::new(PayloadPool::default());
        let node = |me| Node::new(NodeId(me), NODES, &settings, &cluster, &pool);
        Pair {
            nodes: [node(0), node(1)],
            direct,
            said: Vec::new(),
            went: 0,
        }
    }

    /// A step of a node's worker; what it sends arrives, and what comes of that.
    fn step(
        &mut self,
        node: usize,
        act: impl FnOnce(&mut State, &mut Step<'_, '_>) -> Result<(), ProtocolError>,
    ) {
        let (mut out, mut sent) = (Outbox::default(), Vec::new());
        let mut guard = self.nodes[node].monitor.lock();
        let (mut heap, state) = guard.split();
        let at_once = &mut |to, parts: [&[u8]; 3], _| {
            sent.push((to, apart(parts)));
            true
        };
        let mut step = Step {
            from: NodeId::at(node),
            heap: &mut heap,
            pool: &self.nodes[node].pool,
            out: &mut out,
            payload: &[],
            at_once: if self.direct { Some(at_once) } else { None },
        };
        act(state, &mut step).unwrap();
        drop(guard);
        for (to, bytes) in sent {
            self.deliver_bytes(NodeId::at(node), to, &bytes, &mut out);
        }
        while let Some(envelope) = out.pop() {
            self.deliver(envelope, &mut out);
        }
    }

    fn event(&mut self, node: usize, event: Event) {
        self.step(node, |state, step| state.step(event, step));
    }

    fn deliver_bytes(
        &mut self,
        from: NodeId,
        to: NodeId,
        bytes: &Apart,
        out: &mut Outbox<Message>,
    ) {
        let (message, payload) = bytes;
        let body = Message::decode(message).unwrap();
        self.said.push((body, payload.to_vec()));
        let (mut answers, node) = (Vec::new(), &self.nodes[to.index()]);
        let taken = node.deliver_bytes(from, message, payload, out, &mut |to, parts, _| {
            answers.push((to, apart(parts)));
            true
        });
        assert!(taken.is_some());
        self.went += 1;
        for (asker, bytes) in answers {
            self.deliver_bytes(to, asker, &bytes, out);
        }
    }

    fn deliver(&mut self, envelope: Envelope<Message>, out: &mut Outbox<Message>) {
        let (body, payload) = (envelope.body.clone(), envelope.payload.to_vec());
        self.said.push((body, payload));
        let _wake = Receiver::deliver(&self.nodes[envelope.to.index()], envelope, out);
    }

    /// Node 0 allocates an object.
    fn alloc<T: Share>(&mut self, value: T) -> Ref<T> {
        let mut guard = self.nodes[0].monitor.lock();
        let object = guard.split().0.alloc(value).unwrap();
        drop(guard);
        let (range, coherence) = (OidRange::one(object.oid()), Coherence::Lazy);
        self.event(0, Event::Allocated { range, coherence });
        object
    }

    /// Node 1 misses objects; whether they are there then.
    fn miss<const N: usize>(&mut self, oids: [Oid; N]) -> bool {
        let misses = oids.map(unread);
        self.step(1, |state, step| state.read_misses(&misses, step));
        let mut guard = self.nodes[1].monitor.lock();
        let (heap, state) = guard.split();
        let present = oids.iter().all(|oid| heap.is_present(*oid));
        present && state.take_outcome() && !state.has_failed()
    }
}

fn unread(oid: Oid) -> Unread {
    Unread {
        oid,
        creator: NodeId(0),
        zero_ok: false,
        coherence: Coherence::Lazy,
    }
}

/// Misses of objects that are clean, written and not announced, announced, and large, of several
/// at once, and of one that owns another.
fn misses(direct: bool, settings: Settings) -> Pair {
    let mut pair = Pair::new(direct, settings);
    let small = pair.alloc([7_u64; 8]).oid();
    assert!(pair.miss([small]));
    let site = CallSite::caller();
    for _ in 0..3 {
        let oid = pair.alloc([9_u16; 3]).oid();
        pair.event(0, Event::WriteFault { oid, site });
        assert!(pair.miss([oid]), "written by a worker that is in a call");
        let oid = pair.alloc(5_u32).oid();
        pair.event(0, Event::WriteFault { oid, site });
        pair.event(0, Event::EndInterval);
        pair.event(0, Event::WriteFault { oid, site });
        pair.event(0, Event::EndInterval);
        assert!(pair.miss([oid]), "exclusive");
    }
    let several = [1_u64, 2, 3].map(|value| pair.alloc(value).oid());
    assert!(pair.miss(several));
    let large = pair.alloc([1_u64; 1024]).oid();
    assert!(pair.miss([large]));
    let owned = pair.alloc(8_u64);
    let owner = pair.alloc(Own::from(owned)).oid();
    assert!(pair.miss([owner]));
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
fn what_is_carried_out_at_once_says_and_counts_what_recorded_effects_do() {
    let [direct, recorded] = [true, false].map(|direct| misses(direct, Settings::nodes(NODES)));
    // All questions go so, and the replies but those of what is large, or owns something.
    assert_eq!((direct.went, recorded.went), (2 * 8 + 2, 0));
    // The ids of two clusters differ, and the last object has one in it.
    for (place, (one, other)) in direct.said.iter().zip(&recorded.said).enumerate() {
        let said = |(message, payload): &(Message, Vec<u8>)| {
            let bytes = (message.frame_bytes(), payload.len());
            (message.kind(), bytes)
        };
        assert_eq!(said(one), said(other), "{place}");
        assert!(
            one.1 == other.1 || place + 1 == direct.said.len(),
            "{place}"
        );
    }
    assert_eq!(direct.said.len(), recorded.said.len());
    for (direct, recorded) in direct.nodes.iter().zip(&recorded.nodes) {
        assert_eq!(direct.counters(), recorded.counters());
    }
}

#[test]
fn where_nodes_may_be_lost_messages_go_with_the_others() {
    let settings = Settings {
        survive: true,
        ..Settings::nodes(NODES)
    };
    assert_eq!(misses(true, settings).went, 0);
}

#[test]
fn a_message_waits_for_what_is_queued_before_it() {
    let mut pair = Pair::new(true, Settings::nodes(NODES));
    let oid = pair.alloc(7_u64).oid();
    let (mut out, mut asked) = (Outbox::default(), Vec::new());
    let need = Version {
        lamport: 0,
        node: NodeId(0),
    };
    Fetch {
        round: 1,
        wanted: [Wanted { region: oid, need }].into(),
        beside: 0,
        follow: Follow::default(),
    }
    .encode(&mut asked);
    out.push(Envelope {
        from: NodeId(0),
        to: NodeId(1),
        body: Message::Region(RegionMessage::DropOut {
            regions: [oid].into(),
        }),
        payload: Payload::NONE,
    });
    let at_once = &mut |_, _: [&[u8]; 3], _| panic!("sent before what was queued");
    let taken = pair.nodes[0].deliver_bytes(NodeId(1), &asked, &[], &mut out, at_once);
    assert_eq!(taken, Some(Wake::No));
    let sent: Vec<_> = out.since(0).map(|next| next.body.kind()).collect();
    assert_eq!(sent, [MessageKind::DropOut, MessageKind::FetchReply]);
}

#[test]
fn replies_to_a_peer_keep_their_order_however_often_the_port_is_busy() {
    let (mut direct, mut queued) = (0, 0);
    for seed in 0..2_000 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut pair = Pair::new(true, Settings::nodes(NODES));
        let small = pair.alloc(1_u64).oid();
        let large = pair.alloc([1_u64; 512]).oid();
        let (mut out, mut sent) = (Outbox::default(), Vec::new());
        let round = |bytes: &[u8]| match Short::parse(bytes) {
            Some(Short::FetchReply(reply)) => reply.round,
            other => panic!("{other:?}"),
        };
        for number in 0..12 {
            let oid = if random.random() { small } else { large };
            let mut asked = Vec::new();
            let node = NodeId(0);
            let need = Version { lamport: 0, node };
            Fetch {
                round: number,
                wanted: [Wanted { region: oid, need }].into(),
                beside: 0,
                follow: Follow::default(),
            }
            .encode(&mut asked);
            let at_once = &mut |_, parts: [&[u8]; 3], _| {
                let has_room = random.random();
                if has_room {
                    direct += 1;
                    sent.push(round(&apart(parts).0));
                }
                has_room
            };
            let taken = pair.nodes[0].deliver_bytes(NodeId(1), &asked, &[], &mut out, at_once);
            assert_eq!(taken, Some(Wake::No));
            // The thread that delivers sends what is queued when it is done, as `post_all` does.
            if random.random() {
                while let Some(next) = out.pop() {
                    queued += 1;
                    let mut bytes = Vec::new();
                    next.body.encode(&mut bytes);
                    sent.push(round(&bytes));
                }
            }
        }
        assert!(sent.is_sorted(), "seed {seed}: {sent:?}");
    }
    assert!(direct > 2_000 && queued > 2_000, "{direct} {queued}");
}

/// What a reply with these bytes behind it comes to at node 1, which has asked for a `bool`: how
/// the run ended for it, and whether it goes on.
fn told(from: u16, change: impl FnOnce(&mut u32, &mut Sent), object: &[u8]) -> (String, bool) {
    let mut pair = Pair::new(true, Settings::nodes(NODES));
    let objects = [pair.alloc(true).oid(), pair.alloc(false).oid()];
    let node = &pair.nodes[1];
    let mut asked = Vec::new();
    let mut guard = node.monitor.lock();
    let (mut heap, state) = guard.split();
    let at_once = &mut |_, parts: [&[u8]; 3], _| {
        asked = parts.concat();
        true
    };
    let mut step = Step {
        from: NodeId(1),
        heap: &mut heap,
        pool: &node.pool,
        out: &mut Outbox::default(),
        payload: &[],
        at_once: Some(at_once),
    };
    state.read_misses(&[unread(objects[0])], &mut step).unwrap();
    drop(guard);
    let Some(Short::Fetch(Fetch {
        mut round, wanted, ..
    })) = Short::parse(&asked)
    else {
        panic!("{asked:?}");
    };
    let mut sent = Sent {
        region: wanted[0].region,
        version: wanted[0].need,
    };
    change(&mut round, &mut sent);
    let mut bytes = Vec::new();
    FetchReply {
        round,
        sent: [sent].into(),
        keep: false,
    }
    .encode(&mut bytes);
    let (out, none) = (&mut Outbox::default(), &mut |_, _: [&[u8]; 3], _| false);
    let wake = node.deliver_bytes(NodeId(from), &bytes, object, out, none);
    let mut guard = node.monitor.lock();
    let (heap, state) = guard.split();
    let ended = match state.ended() {
        None => String::new(),
        Some(Ended::Broken(error)) => error.to_string(),
        Some(other) => panic!("{other:?}"),
    };
    let told = |next: &Envelope<Message>| match &next.body {
        Message::Abort {
            reason: AbortReason::Failed(why),
            ..
        } => **why == *ended,
        _ => false,
    };
    assert_eq!(
        out.since(0).filter(|next| told(next)).count(),
        usize::from(!ended.is_empty())
    );
    let goes_on = wake == Some(Wake::Yes);
    assert_eq!(heap.is_present(objects[0]), goes_on && ended.is_empty());
    (
        ended,
        goes_on && state.take_outcome() && !state.has_failed(),
    )
}

#[test]
fn a_reply_that_does_not_bring_what_was_asked_for_ends_the_run_with_what_is_wrong() {
    assert_eq!(told(0, |_, _| {}, &[1]), (String::new(), true));
    // Nobody waits for it any more.
    assert_eq!(
        told(0, |round, _| *round += 1, &[1]),
        (String::new(), false)
    );
    let other = |_: &mut u32, sent: &mut Sent| sent.region = Oid(sent.region.0 + 1);
    let beyond = |_: &mut u32, sent: &mut Sent| sent.version.lamport = 1 << 46;
    let sound = |_: &mut u32, _: &mut Sent| {};
    let late = |round: &mut u32, _: &mut Sent| *round += 1;
    for (why, (ended, goes_on)) in [
        ("a reply to another node's question", told(1, sound, &[1])),
        ("its sender is not in the cluster", told(2, sound, &[1])),
        ("a reply to another question", told(0, other, &[1])),
        ("or that no run reaches", told(0, beyond, &[1])),
        ("fewer bytes than its objects", told(0, sound, &[])),
        ("more bytes than it names", told(0, sound, &[1, 0])),
        ("more bytes than it names", told(0, late, &[1, 0])),
        ("storing a copy of", told(0, sound, &[2])),
    ] {
        assert!(ended.contains(why) && !goes_on, "{why}: {ended}");
    }
}

#[test]
fn while_the_worker_computes_what_it_may_be_writing_is_answered_later() {
    let mut pair = Pair::new(true, Settings::nodes(NODES));
    let site = CallSite::caller();
    let [clean, dirty, exclusive] = [1_u64, 2, 3].map(|value| pair.alloc(value).oid());
    for _ in 0..2 {
        let oid = exclusive;
        pair.event(0, Event::WriteFault { oid, site });
        pair.event(0, Event::EndInterval);
    }
    pair.event(0, Event::WriteFault { oid: dirty, site });
    let node = &pair.nodes[0];
    let answers = |from: u16, oid| {
        let (mut asked, mut said) = (Vec::new(), false);
        let need = Version {
            lamport: 0,
            node: NodeId(0),
        };
        Fetch {
            round: 9,
            wanted: [Wanted { region: oid, need }].into(),
            beside: 0,
            follow: Follow::default(),
        }
        .encode(&mut asked);
        let out = &mut Outbox::default();
        let taken = node.deliver_bytes(NodeId(from), &asked, &[], out, &mut |_, _, _| {
            said = true;
            true
        });
        assert_eq!(taken, Some(Wake::No));
        said
    };
    let lent = node.monitor.lend(|_token| {
        assert!(answers(1, clean));
        assert!(!answers(1, dirty));
        assert_eq!(node.counters().deferred_requests, 1);
        assert!(!answers(0, exclusive));
        assert_eq!(node.counters().deferred_requests, 2);
    });
    lent.unwrap();
}
