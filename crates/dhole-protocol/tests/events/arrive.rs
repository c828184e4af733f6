//! `Event::Arrive`: the barrier, its messages, and what is left when all have passed it.

use crate::pack::{OBJECT, Pack, acquire, arrive, from, miss, no_news, release, site};
use dhole_model::MessageKind;
use dhole_protocol::{BarrierId, Command, Event, Message, RegionCommand};

#[test]
fn a_barrier_costs_twice_the_other_nodes_in_messages() {
    for nodes in 1..=9 {
        let mut pack = Pack::new(nodes);
        pack.barrier();
        assert_eq!(pack.messages(), 2 * (nodes - 1));
        assert!(
            pack.done
                .iter()
                .all(|done| done.ends_with(&[Command::Done]))
                || nodes == 1
        );
    }
}

#[test]
fn one_node_alone_passes_at_once() {
    let mut pack = Pack::new(1);
    assert_eq!(pack.run(0, arrive()), [Command::Done]);
    assert_eq!(pack.run(0, Event::Finish), [Command::Done]);
}

#[test]
fn nobody_passes_before_the_last_has_come() {
    let mut pack = Pack::new(3);
    for node in [2, 0] {
        assert_eq!(pack.run(node, arrive()), []);
    }
    assert!(pack.done.iter().all(Vec::is_empty));
    pack.run(1, arrive());
    assert_eq!(pack.done[2], [Command::Done]);
}

#[test]
fn everybody_hears_of_every_write_once() {
    let mut pack = Pack::with_object(3);
    for node in [1, 2] {
        pack.run(node, miss(OBJECT, 0));
    }
    pack.write(2, OBJECT);
    for node in 0..3 {
        pack.begin(node, arrive());
    }
    pack.settle();
    for node in [0, 1] {
        assert_eq!(
            pack.done[node].last_chunk(),
            Some(&[
                Command::Objects(RegionCommand::Invalidate(OBJECT)),
                Command::Done
            ])
        );
    }
    assert_eq!(pack.done[2].last(), Some(&Command::Done), "not the writer");
}

#[test]
fn a_departure_leaves_out_what_the_node_has_heard_by_a_lock() {
    let mut pack = Pack::with_object(2);
    pack.local(0, acquire(0));
    pack.write(0, OBJECT);
    pack.local(0, release(0));
    pack.pass(1, 0);
    pack.begin(1, arrive());
    pack.settle();
    pack.begin(0, arrive());
    let (_, _, Message::BarrierDepart { news, .. }) = &pack.in_flight[0] else {
        panic!("a departure")
    };
    assert_eq!(news.intervals, []);
}

#[test]
fn an_arrival_tells_of_the_nodes_own_intervals_only() {
    let mut pack = Pack::with_object(3);
    pack.local(0, acquire(0));
    pack.write(0, OBJECT);
    pack.local(0, release(0));
    pack.pass(1, 0);
    pack.begin(1, arrive());
    let (_, _, Message::BarrierArrive { news, .. }) = &pack.in_flight[0] else {
        panic!("an arrival")
    };
    assert_eq!(news.intervals, [], "what node 0 wrote, node 0 tells");
    assert_eq!(news.time.of(crate::pack::n(0)), 1);
}

#[test]
fn nothing_is_kept_after_a_barrier() {
    let mut pack = Pack::with_object(3);
    for _ in 0..5 {
        pack.local(0, acquire(0));
        pack.write(0, OBJECT);
        pack.local(0, release(0));
    }
    pack.barrier();
    pack.begin(1, acquire(0));
    pack.deliver_next();
    let Message::LockGrant { news, .. } = &pack.in_flight[0].2 else {
        panic!("a grant")
    };
    assert_eq!(news.intervals, []);
    pack.settle();
    // However many intervals there were, a node's state prints as long as after one.
    let length = |pack: &Pack| format!("{:?}", pack.nodes).len();
    let before = length(&pack);
    for _ in 0..100 {
        pack.run(1, release(0));
        pack.run(1, acquire(0));
        pack.barrier();
    }
    assert!(
        length(&pack) < before + 20 * pack.nodes.len(),
        "only numbers have grown"
    );
}

#[test]
fn the_next_barrier_can_be_reached_before_the_last_one_is_left() {
    let mut pack = Pack::new(3);
    for node in 0..3 {
        pack.begin(node, arrive());
    }
    while !pack.sent.contains_key(&MessageKind::BarrierDepart) {
        pack.deliver_next();
    }
    pack.deliver_next();
    let (early, late) = match pack.done[1].is_empty() {
        false => (1, 2),
        true => (2, 1),
    };
    assert_eq!(pack.done[early], [Command::Done]);
    pack.begin(early, arrive());
    let arrival = pack.in_flight.pop_back().expect("an arrival");
    pack.in_flight.push_front(arrival);
    pack.deliver_next();
    assert_eq!(pack.done[late], []);
    pack.settle();
    assert_eq!(pack.done[late], [Command::Done]);
}

#[test]
fn once_and_a_plain_barrier_are_not_the_same_barrier() {
    let mut pack = Pack::new(2);
    pack.begin(1, arrive());
    pack.begin(
        0,
        Event::Arrive {
            once: true,
            site: site(3),
        },
    );
    pack.settle();
    for node in 0..2 {
        let [Command::Deadlock(cycle)] = &pack.done[node][..] else {
            panic!("told apart")
        };
        let words: Vec<String> = cycle.iter().map(|waiter| waiter.to_string()).collect();
        assert_eq!(
            words,
            [
                "node 0 waits at barrier 0 (once) at program.rs:3:5",
                "node 1 waits at barrier 0 at program.rs:2:5"
            ]
        );
    }
}

#[test]
fn a_second_arrival_is_refused() {
    let mut pack = Pack::new(3);
    pack.begin(1, arrive());
    let (_, _, arrival) = pack.in_flight[0].clone();
    pack.settle();
    pack.refuse(0, from(1, arrival));
}

#[test]
fn an_arrival_anywhere_but_at_the_manager_is_refused() {
    let mut pack = Pack::new(3);
    pack.begin(1, arrive());
    let (_, _, arrival) = pack.in_flight[0].clone();
    pack.refuse(2, from(1, arrival));
}

#[test]
fn a_departure_from_a_barrier_that_nobody_waits_at_is_refused() {
    let mut pack = Pack::new(2);
    let depart = |number| {
        let barrier = BarrierId::Program(number);
        from(
            0,
            Message::BarrierDepart {
                barrier,
                news: no_news(2),
                collect: false,
                rounds: 0,
            },
        )
    };
    pack.refuse(1, depart(0));
    pack.begin(1, arrive());
    pack.refuse(1, depart(1));
}

#[test]
fn a_departure_whose_news_has_a_gap_is_refused() {
    let mut pack = Pack::with_object(2);
    pack.write(0, OBJECT);
    pack.begin(1, arrive());
    pack.settle();
    pack.begin(0, arrive());
    let (_, _, departure) = pack.in_flight.pop_front().expect("a departure");
    let Message::BarrierDepart {
        barrier, mut news, ..
    } = departure
    else {
        panic!("a departure")
    };
    news.intervals.clear();
    pack.refuse(
        1,
        from(
            0,
            Message::BarrierDepart {
                barrier,
                news,
                collect: false,
                rounds: 0,
            },
        ),
    );
}

#[test]
fn an_arrival_may_come_after_what_the_nodes_processes_did_since() {
    let mut pack = Pack::with_object(2);
    pack.run(1, miss(OBJECT, 0));
    pack.begin(1, arrive());
    let (_, _, arrival) = pack.in_flight.pop_front().expect("an arrival");
    // A process of node 1 writes while the program waits, and node 0 hears of that by a lock.
    let wait = pack.nodes[1].park().expect("a wait");
    pack.run(1, acquire(1));
    pack.write(1, OBJECT);
    pack.run(1, release(1));
    pack.run(0, acquire(1));
    pack.run(0, release(1));
    pack.nodes[1].unpark(wait, true);
    pack.begin(0, from(1, arrival));
    pack.settle();
    pack.run(0, arrive());
    assert_eq!(pack.done[1].last(), Some(&Command::Done));
}
