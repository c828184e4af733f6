//! `Event::Collective`: what it costs, who waits for whom, and what a node refuses.

use dhole_model::{MessageKind, NodeId};
use dhole_protocol::{
    Called, Collective, CollectiveEvent, CollectiveKind, CollectiveMessage, Command, Event, Legs,
    MOST_AHEAD, Message, ProtocolError, RegionCommand, Way, WriteNotices,
};

use crate::pack::{OBJECT, Pack, acquire, arrive, from, miss, n, no_news, release, site};

const ONE_WAY: [CollectiveKind; 4] = [
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
    CollectiveKind::Gather,
    CollectiveKind::Scatter { from: NodeId(0) },
];

const BOTH_WAYS: [CollectiveKind; 4] = [
    CollectiveKind::AllReduce,
    CollectiveKind::AllGather,
    CollectiveKind::Scan,
    CollectiveKind::ExclusiveScan,
];

/// A call at this line.
pub fn enter(kind: CollectiveKind, line: u32) -> Event {
    Event::Collective(CollectiveEvent::Enter {
        kind,
        of: 7,
        site: site(line),
    })
}

/// The value goes to the parent.
pub const UP: Event = Event::Collective(CollectiveEvent::Up);
/// The value goes to the children.
pub const DOWN: Event = Event::Collective(CollectiveEvent::Down);
/// Values go to all others.
pub const ACROSS: Event = Event::Collective(CollectiveEvent::Across);

/// A node that is in a collective goes on as far as it can, as its worker does.
fn go_on(pack: &mut Pack, node: usize, waits: &mut [bool], gave: &mut [bool]) {
    while !waits[node] {
        let Some(legs) = pack.nodes[node].legs() else {
            return;
        };
        if (legs.up || legs.across) && !gave[node] {
            gave[node] = true;
            let gives = if legs.up { UP } else { ACROSS };
            waits[node] = !pack.begin(node, gives).contains(&Command::Done);
            continue;
        }
        pack.local_or_sent(node, DOWN);
    }
}

/// All nodes pass a collective, beginning with the last.
fn all_pass(pack: &mut Pack, kind: CollectiveKind) {
    let nodes = pack.nodes.len();
    let (mut waits, mut gave) = (vec![false; nodes], vec![false; nodes]);
    for node in (0..nodes).rev() {
        waits[node] = !pack.begin(node, enter(kind, 1)).contains(&Command::Done);
        go_on(pack, node, &mut waits, &mut gave);
    }
    while let Some((_, to, _)) = pack.in_flight.front().cloned() {
        let to = to.index();
        let before = pack.done[to].len();
        pack.deliver_next();
        if pack.done[to][before..].contains(&Command::Done) {
            waits[to] = false;
            go_on(pack, to, &mut waits, &mut gave);
        }
    }
    assert!(
        pack.nodes.iter().all(|node| node.legs().is_none()),
        "{kind}"
    );
}

impl Pack {
    /// An event after which the worker goes on at once.
    fn local_or_sent(&mut self, node: usize, event: Event) {
        assert_eq!(self.begin(node, event), []);
    }
}

#[test]
fn one_way_takes_a_message_for_each_other_node_and_both_ways_take_two() {
    for nodes in 1..=17 {
        let others = nodes - 1;
        for (kinds, ways) in [(&ONE_WAY[..], 1), (&BOTH_WAYS[..], 2)] {
            for kind in kinds {
                let mut pack = Pack::new(nodes);
                all_pass(&mut pack, *kind);
                let collective = pack.sent.get(&MessageKind::Collective).copied();
                assert_eq!(
                    collective.unwrap_or(0),
                    ways * others,
                    "{kind}, {nodes} nodes"
                );
                assert_eq!(pack.messages(), ways * others);
            }
        }
    }
}

#[test]
fn what_each_has_for_each_other_takes_a_message_for_each_pair() {
    for nodes in 1..=9 {
        let mut pack = Pack::new(nodes);
        for _ in 0..2 * MOST_AHEAD {
            all_pass(&mut pack, CollectiveKind::AllToAll);
            assert_eq!(pack.messages(), nodes * (nodes - 1), "{nodes} nodes");
        }
        // All have met, so none has run ahead.
        for _ in 0..MOST_AHEAD {
            all_pass(&mut pack, CollectiveKind::AllToAll);
            pack.messages();
            all_pass(&mut pack, CollectiveKind::Reduce);
            assert_eq!(pack.messages(), nodes - 1, "{nodes} nodes");
        }
    }
}

#[test]
fn any_node_can_be_the_root_of_a_tree() {
    for nodes in 1..=9 {
        let mut pack = Pack::new(nodes);
        for from in 0..nodes {
            let from = NodeId::at(from);
            all_pass(&mut pack, CollectiveKind::Scatter { from });
            let both = from.index() == MOST_AHEAD as usize;
            let ways = if both { 2 } else { 1 };
            assert_eq!(pack.messages(), ways * (nodes - 1), "{nodes} nodes, {from}");
        }
    }
}

#[test]
fn the_next_after_many_that_go_one_way_goes_both() {
    for kind in ONE_WAY {
        let mut pack = Pack::new(3);
        let once_and_twice = (0..2 * (MOST_AHEAD + 1)).map(|number| {
            all_pass(&mut pack, kind);
            let both = number % (MOST_AHEAD + 1) == MOST_AHEAD;
            assert_eq!(pack.messages(), if both { 4 } else { 2 }, "{kind} {number}");
            both
        });
        assert_eq!(once_and_twice.filter(|both| *both).count(), 2);
        all_pass(&mut pack, CollectiveKind::AllReduce);
        pack.barrier();
        pack.messages();
        for _ in 0..MOST_AHEAD {
            all_pass(&mut pack, kind);
        }
        assert_eq!(pack.messages(), 2 * MOST_AHEAD as usize);
    }
}

#[test]
fn whoever_needs_nothing_goes_on_at_once() {
    let mut pack = Pack::new(3);
    let kind = CollectiveKind::Broadcast;
    assert_eq!(pack.begin(0, enter(kind, 1)), [Command::Done]);
    let down = Legs {
        up: false,
        down: true,
        across: false,
    };
    assert_eq!(pack.nodes[0].legs(), Some(down));
    pack.local_or_sent(0, DOWN);
    assert_eq!(pack.nodes[0].legs(), None);
    // What comes before it is called is kept.
    pack.settle();
    for node in [1, 2] {
        let collected = Command::Collected {
            from: n(0),
            number: 0,
            way: Way::Down,
        };
        assert_eq!(pack.done[node], [collected]);
        assert_eq!(pack.begin(node, enter(kind, 1)), [Command::Done]);
    }
    let leaf = CollectiveKind::Reduce;
    pack.local_or_sent(2, DOWN);
    assert_eq!(pack.begin(2, enter(leaf, 1)), [Command::Done]);
    assert_eq!(pack.begin(2, UP), [Command::Done]);
    assert_eq!(pack.begin(0, enter(leaf, 1)), [], "it waits for both");
}

#[test]
fn what_was_written_is_told_with_a_value_and_not_again() {
    let mut pack = Pack::with_object(2);
    pack.run(1, miss(OBJECT, 0));
    pack.write(1, OBJECT);
    let told = |pack: &Pack| match &pack.in_flight[0] {
        (_, _, Message::Collective(message)) => message.news.intervals.len(),
        other => panic!("{other:?}"),
    };
    for written in [1, 0] {
        pack.begin(1, enter(CollectiveKind::Reduce, 1));
        pack.begin(1, UP);
        assert_eq!(told(&pack), written);
        pack.settle();
        let done = pack.begin(0, enter(CollectiveKind::Reduce, 1));
        assert_eq!(
            done.contains(&Command::Objects(RegionCommand::Invalidate(OBJECT))),
            written == 1
        );
        assert_eq!(pack.begin(0, UP), [Command::Done]);
    }
}

/// Node `other` sends what node 0 has not called, or the other way about.
fn mismatch(error: ProtocolError) -> [(NodeId, Called, u32); 2] {
    let ProtocolError::Mismatch(mismatch) = error else {
        panic!("{error}")
    };
    let text = mismatch.to_string();
    for call in [mismatch.here, mismatch.there] {
        assert!(text.contains(&call.site.to_string()), "{text}");
    }
    [mismatch.here, mismatch.there].map(|call| (call.node, call.what, call.site.line))
}

#[test]
fn different_collectives_are_refused_where_they_meet() {
    let (reduce, gather) = (CollectiveKind::Reduce, CollectiveKind::Gather);
    let called = Called::Collective;
    let expected = [(n(0), called(gather), 9), (n(1), called(reduce), 3)];
    let begun = |pack: &mut Pack| {
        pack.begin(1, enter(reduce, 3));
        pack.begin(1, UP);
        pack.in_flight.pop_front().expect("a value").2
    };
    // The value comes while node 0 waits in another; before it calls that; and behind it.
    let mut pack = Pack::new(2);
    let value = begun(&mut pack);
    pack.begin(0, enter(gather, 9));
    assert_eq!(mismatch(pack.refuse(0, from(1, value))), expected);
    let mut pack = Pack::new(2);
    let value = begun(&mut pack);
    pack.begin(0, from(1, value));
    assert_eq!(mismatch(pack.refuse(0, enter(gather, 9))), expected);
    let mut pack = Pack::new(2);
    let value = begun(&mut pack);
    let broadcast = CollectiveKind::Broadcast;
    pack.begin(0, enter(broadcast, 9));
    pack.begin(0, DOWN);
    let expected = [(n(0), called(broadcast), 9), (n(1), called(reduce), 3)];
    assert_eq!(mismatch(pack.refuse(0, from(1, value))), expected);
}

#[test]
fn values_of_another_type_are_refused() {
    let mut pack = Pack::new(2);
    pack.begin(1, enter(CollectiveKind::Reduce, 3));
    pack.begin(1, UP);
    let event = Event::Collective(CollectiveEvent::Enter {
        kind: CollectiveKind::Reduce,
        of: 8,
        site: site(9),
    });
    pack.settle();
    let refused = pack.refuse(0, event);
    assert!(
        refused.to_string().contains("values of another type"),
        "{refused}"
    );
}

#[test]
fn a_barrier_or_the_end_where_others_call_a_collective_is_refused() {
    let kind = CollectiveKind::Reduce;
    for (event, what) in [(arrive(), Called::Barrier), (Event::Finish, Called::End)] {
        // The collective's value comes first, and then second.
        let mut pack = Pack::new(3);
        pack.begin(1, enter(kind, 3));
        pack.begin(1, UP);
        pack.settle();
        let [here, there] = mismatch(pack.refuse(0, event.clone()));
        assert_eq!((here.1, there), (what, (n(1), Called::Collective(kind), 3)));
        let mut pack = Pack::new(3);
        pack.begin(1, enter(kind, 3));
        pack.begin(1, UP);
        pack.begin(0, event.clone());
        let value = pack.in_flight.pop_front().expect("a value").2;
        let [here, _] = mismatch(pack.refuse(0, from(1, value)));
        assert_eq!(here.1, what);
        // The manager is in the collective, or has left it, when it hears of the arrival.
        for called in [kind, CollectiveKind::Broadcast] {
            let mut pack = Pack::new(3);
            pack.begin(0, enter(called, 3));
            if called == CollectiveKind::Broadcast {
                pack.begin(0, DOWN);
            }
            pack.in_flight.clear();
            pack.begin(2, event.clone());
            let arrival = pack.in_flight.pop_front().expect("an arrival").2;
            let [here, there] = mismatch(pack.refuse(0, from(2, arrival)));
            assert_eq!(here, (n(0), Called::Collective(called), 3));
            assert_eq!((there.0, there.1), (n(2), what));
        }
    }
}

#[test]
fn whoever_has_not_called_a_collective_does_not_pass_a_barrier_with_the_others() {
    // Node 2's value for node 3 is late, and node 3 calls nothing before the barrier.
    let kind = CollectiveKind::Broadcast;
    let mut pack = Pack::new(4);
    for node in [0, 1, 2] {
        pack.begin(node, enter(kind, 3));
        pack.settle();
        pack.begin(node, DOWN);
        pack.in_flight.retain(|(_, to, _)| *to != n(3));
    }
    for node in [1, 2, 0] {
        pack.begin(node, arrive());
        pack.settle();
    }
    pack.begin(3, arrive());
    let arrival = pack.in_flight.pop_front().expect("an arrival").2;
    let [here, there] = mismatch(pack.refuse(0, from(3, arrival)));
    assert_eq!(here, (n(0), Called::Collective(kind), 3));
    assert_eq!(there, (n(3), Called::Barrier, 2));
}

fn value(number: u64, kind: CollectiveKind, way: Way, nodes: usize) -> Message {
    let at = Collective {
        number,
        kind,
        of: 7,
    };
    let news: WriteNotices = *no_news(nodes);
    Message::Collective(Box::new(CollectiveMessage {
        at,
        way,
        site: site(3),
        news,
    }))
}

#[test]
fn what_no_neighbour_sends_is_refused_without_a_trace() {
    let kind = CollectiveKind::Reduce;
    let mut pack = Pack::new(6);
    let tree = kind.tree(6);
    assert_eq!(
        (tree.parent(n(3)), tree.children(n(2)).last()),
        (Some(n(2)), Some(n(3)))
    );
    let refused = |pack: &mut Pack, node: usize, sender: usize, message: Message| {
        let error = pack.refuse(node, from(sender, message));
        assert!(matches!(error, ProtocolError::BadMessage { .. }), "{error}");
    };
    // Of no neighbour, of the wrong way, and of a collective that it cannot have reached.
    refused(&mut pack, 0, 3, value(0, kind, Way::Up, 6));
    refused(&mut pack, 2, 0, value(0, kind, Way::Up, 6));
    refused(&mut pack, 2, 3, value(0, kind, Way::Down, 6));
    refused(&mut pack, 2, 3, value(MOST_AHEAD + 1, kind, Way::Up, 6));
    refused(&mut pack, 2, 3, value(u64::MAX, kind, Way::Up, 6));
    // A second one, before it is called, in it, and behind it.
    pack.begin(2, from(3, value(0, kind, Way::Up, 6)));
    refused(&mut pack, 2, 3, value(0, kind, Way::Up, 6));
    pack.begin(2, enter(kind, 1));
    refused(&mut pack, 2, 3, value(0, kind, Way::Up, 6));
    pack.begin(2, UP);
    refused(&mut pack, 2, 3, value(0, kind, Way::Up, 6));
    // A way that the collective does not go.
    pack.begin(2, from(0, value(1, kind, Way::Down, 6)));
    let refused = pack.refuse(2, enter(kind, 1));
    assert!(
        matches!(refused, ProtocolError::BadMessage { .. }),
        "{refused}"
    );
}

#[test]
fn a_collective_that_did_not_come_to_its_end_lets_no_other_begin() {
    let mut pack = Pack::new(2);
    pack.begin(1, enter(CollectiveKind::Reduce, 3));
    for event in [enter(CollectiveKind::Reduce, 4), arrive(), Event::Finish] {
        let refused = pack.refuse(1, event);
        let ProtocolError::Unfinished { begun, .. } = refused else {
            panic!("{refused}")
        };
        assert_eq!(begun, site(3));
    }
}

#[test]
fn a_node_in_a_collective_that_waits_for_a_lock_of_its_own_is_told() {
    let mut pack = Pack::new(2);
    pack.local(0, acquire(0));
    pack.begin(0, enter(CollectiveKind::AllReduce, 3));
    pack.begin(1, acquire(0));
    pack.settle();
    pack.begin(0, Event::WaitedLong);
    let mut told = 0;
    while let Some((_, _, message)) = pack.in_flight.front() {
        told += usize::from(matches!(message, Message::Deadlock { .. }));
        pack.deliver_next();
    }
    assert_eq!(told, 2);
    // Where what it waits for is on its way, nobody is told.
    let mut pack = Pack::new(2);
    pack.local(0, acquire(0));
    pack.begin(0, enter(CollectiveKind::Reduce, 3));
    pack.begin(1, enter(CollectiveKind::Reduce, 3));
    pack.begin(1, UP);
    let value = pack.in_flight.pop_front().expect("a value");
    pack.begin(1, acquire(0));
    pack.settle();
    pack.begin(0, Event::WaitedLong);
    while let Some((_, _, message)) = pack.in_flight.front() {
        assert!(!matches!(message, Message::Deadlock { .. }));
        pack.deliver_next();
    }
    pack.in_flight.push_back(value);
    pack.settle();
    assert!(pack.done[0].contains(&Command::Done));
    pack.begin(0, UP);
    pack.run(0, release(0));
    assert!(pack.done[1].contains(&Command::Done));
}
