use std::sync::Arc;

use dhole_heap::Cluster;
use dhole_model::{MessageKind, Notify};
use dhole_net::{Envelope, Outbox, Payload, PayloadPool, Receiver, Wake};
use dhole_protocol::{Message, RegionMessage, Short};

use super::*;
use crate::node::Node;
use crate::settings::Settings;

/// A node of a run in which the barrier that is next begins with rounds: one was without news.
fn node(me: u16, nodes: usize) -> Node {
    let cluster = Cluster::new(nodes).unwrap();
    let pool = Arc::new(PayloadPool::default());
    let settings = Settings::nodes(nodes);
    let all = (0..nodes as u16).map(NodeId);
    let all = all.map(|id| Node::new(id, nodes, &settings, &cluster, &pool));
    let mut all: Vec<Node> = all.collect();
    let mut out = Outbox::default();
    for node in &all {
        arrive_whole(node, &mut out);
    }
    while let Some(envelope) = out.pop() {
        let to = envelope.to.index();
        let _wake = all[to].deliver(envelope, &mut out);
    }
    let node = all.swap_remove(usize::from(me));
    assert!(goes_on(&node), "the first barrier is central");
    node
}

fn arrive_whole(node: &Node, out: &mut Outbox<Message>) {
    let mut guard = node.monitor.lock();
    let (mut heap, state) = guard.split();
    let mut step = crate::step::Step {
        from: node.id,
        heap: &mut heap,
        pool: &node.pool,
        out,
        payload: &[],
        at_once: None,
    };
    let (once, site) = (false, CallSite::caller());
    let arrived = state.step(dhole_protocol::Event::Arrive { once, site }, &mut step);
    arrived.expect("a node may arrive");
}

/// The worker of a node arrives: what it says at once, to whom.
fn arrive(node: &Node) -> Vec<(u16, u8)> {
    let mut said = Vec::new();
    let mut guard = node.monitor.lock();
    let (mut heap, state) = guard.split();
    let at_once = &mut |to: NodeId, parts: [&[u8]; 3], notify| {
        assert_eq!(notify, Notify::Lazy);
        said.push((to.0, parsed(&parts.concat()).0.round));
        true
    };
    let mut step = crate::step::Step {
        from: node.id,
        heap: &mut heap,
        pool: &node.pool,
        out: &mut Outbox::default(),
        payload: &[],
        at_once: Some(at_once),
    };
    let arrived = state.arrive(CallSite::caller(), &mut step);
    arrived.expect("a node may arrive");
    assert!(step.out.is_empty(), "all of it goes at once");
    said
}

fn parsed(bytes: &[u8]) -> (BarrierRound, u64) {
    match Short::parse(bytes) {
        Some(Short::BarrierRound(said, delivered)) => (said, delivered),
        other => panic!("{other:?}"),
    }
}

fn round(number: u64, round: u8, news: bool) -> BarrierRound {
    BarrierRound {
        number,
        round,
        news,
        place: 0,
        site: None,
    }
}

/// What comes of it, and what is said in turn.
fn tell(
    node: &Node,
    from: u16,
    said: &BarrierRound,
    delivered: u64,
) -> Option<(Wake, Vec<(u16, u8)>)> {
    let mut bytes = Vec::new();
    said.encode(delivered, &mut bytes);
    let mut answers = Vec::new();
    let out = &mut dhole_net::Outbox::default();
    let wake = node.deliver_bytes(NodeId(from), &bytes, &[], out, &mut |to, parts, _| {
        let (said, after) = parsed(&parts.concat());
        assert!(after >= delivered, "it comes after what was heard");
        answers.push((to.0, said.round));
        true
    });
    Some((wake?, answers))
}

/// Whether the worker goes on; then it does.
fn goes_on(node: &Node) -> bool {
    let mut guard = node.monitor.lock();
    let state = guard.split().1;
    state.take_outcome() && !state.has_failed()
}

#[test]
fn of_two_whoever_waits_goes_on_and_who_comes_later_need_not_wait() {
    for me in [0, 1] {
        let (node, other) = (node(me, 2), 1 - me);
        assert_eq!(arrive(&node), [(other, 0)]);
        assert!(!goes_on(&node));
        let told = tell(&node, other, &round(1, 0, false), 0);
        assert_eq!(told, Some((Wake::Yes, vec![])));
        assert!(goes_on(&node));
        let told = tell(&node, other, &round(2, 0, false), 0);
        assert_eq!(told, Some((Wake::No, vec![])));
        assert!(!goes_on(&node));
        assert_eq!(arrive(&node), [(other, 0)]);
        assert!(goes_on(&node));
    }
}

#[test]
fn of_five_each_round_is_said_when_the_one_before_was_heard_in_whatever_order() {
    let node = node(2, 5);
    assert_eq!(
        tell(&node, 1, &round(1, 0, false), 0),
        Some((Wake::No, vec![]))
    );
    assert_eq!(arrive(&node), [(3, 0), (4, 1)]);
    // Round 2 before round 1, and the next barrier's first.
    assert_eq!(
        tell(&node, 3, &round(1, 2, false), 0),
        Some((Wake::No, vec![]))
    );
    assert_eq!(
        tell(&node, 1, &round(2, 0, false), 0),
        Some((Wake::No, vec![]))
    );
    assert!(!goes_on(&node));
    let told = tell(&node, 0, &round(1, 1, false), 0);
    assert_eq!(told, Some((Wake::Yes, vec![(1, 2)])));
    assert!(goes_on(&node));
    assert_eq!(arrive(&node), [(3, 0), (4, 1)]);
}

#[test]
fn nobody_goes_on_before_what_others_come_after_is_here() {
    for comes_later in [false, true] {
        let node = node(1, 2);
        if !comes_later {
            arrive(&node);
        }
        assert_eq!(
            tell(&node, 0, &round(1, 0, false), 1),
            Some((Wake::No, vec![]))
        );
        if comes_later {
            arrive(&node);
        }
        assert!(!goes_on(&node));
        let mut guard = node.monitor.lock();
        assert!(guard.split().1.is_over(), "but for the order");
    }
}

#[test]
fn news_that_is_heard_of_is_told_to_the_manager() {
    let node = node(1, 2);
    assert_eq!(tell(&node, 0, &round(1, 0, false), u64::MAX), None, "ahead");
    arrive(&node);
    let (mut bytes, out) = (Vec::new(), &mut Outbox::default());
    round(1, 0, true).encode(0, &mut bytes);
    let wake = node.deliver_bytes(NodeId(0), &bytes, &[], out, &mut |_, _, _| {
        panic!("a round")
    });
    assert_eq!(wake, Some(Wake::No));
    let sent: Vec<_> = out.since(0).map(|next| next.body.kind()).collect();
    assert_eq!(sent, [MessageKind::BarrierArrive]);
    assert!(!goes_on(&node));
}

#[test]
fn what_is_queued_goes_before_a_round() {
    let node = node(2, 5);
    arrive(&node);
    let (mut bytes, out) = (Vec::new(), &mut Outbox::default());
    out.push(Envelope {
        from: node.id,
        to: NodeId(1),
        body: Message::Region(RegionMessage::OutdatedAck { number: 1 }),
        payload: Payload::NONE,
    });
    round(1, 0, false).encode(0, &mut bytes);
    let wake = node.deliver_bytes(NodeId(1), &bytes, &[], out, &mut |_, _, _| {
        panic!("at once")
    });
    assert_eq!(wake, Some(Wake::No));
    let sent: Vec<_> = out.since(0).map(|next| next.body.kind()).collect();
    assert_eq!(sent, [MessageKind::OutdatedAck, MessageKind::BarrierRound]);
}

/// A frame that no sound node sends ends the run with its sender's name.
#[test]
fn a_round_that_is_not_for_its_sender_to_tell_ends_the_run() {
    for (from, bad) in [
        (1, round(1, 1, false)),
        (3, round(1, 0, false)),
        (1, round(1, 3, false)),
        (1, round(0, 0, false)),
        (1, round(4, 0, false)),
    ] {
        let node = node(2, 5);
        assert!(tell(&node, from, &bad, 0).is_some());
        let from = NodeId(from);
        let mut guard = node.monitor.lock();
        let words = format!("{:?}", guard.split().1.ended().expect("it has ended"));
        assert!(
            words.contains(&from.to_string()) || words.contains(&from.0.to_string()),
            "{words}"
        );
    }
}
