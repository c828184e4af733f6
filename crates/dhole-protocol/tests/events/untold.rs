//! A barrier at which one node tells of what another one has not told there: it is on its way, or
//! it was never done, and then somebody lies.

use crate::pack::{OBJECT, Pack, arrive, from, miss, n, site};
use dhole_model::{MessageKind, NodeId, VectorTime};
use dhole_protocol::{BarrierId, Command, Event, Message, ProtocolError, Untold};

/// Three nodes at a barrier, of which node 1 says that node 2 has ended so many intervals.
fn claimed(index: u32) -> Pack {
    claimed_where(index, arrive())
}

/// The same, where node 1 arrives so.
fn claimed_where(index: u32, arrival: Event) -> Pack {
    let mut pack = Pack::with_object(3);
    pack.run(2, miss(OBJECT, 0));
    pack.done[2].clear();
    pack.write(2, OBJECT);
    for (node, arrival) in [arrive(), arrival, arrive()].into_iter().enumerate() {
        pack.begin(node, arrival);
    }
    for (from, _, message) in &mut pack.in_flight {
        if let (NodeId(1), Message::BarrierArrive { news, .. }) = (*from, message) {
            news.time.see(n(2), index);
        }
    }
    pack.settle();
    pack
}

fn nobody_passed(pack: &Pack) -> bool {
    let mut done = pack.done.iter().flatten();
    done.all(|command| *command != Command::Done)
}

/// Takes the only message that is in flight.
#[track_caller]
fn only(pack: &mut Pack) -> (NodeId, NodeId, Message) {
    let only = pack.in_flight.pop_front().expect("a message");
    assert!(pack.in_flight.is_empty(), "{:?}", pack.in_flight);
    only
}

/// The manager waits long, asks node 2, and refuses what that answers: so.
#[track_caller]
fn refused(mut pack: Pack) -> ProtocolError {
    assert!(nobody_passed(&pack));
    pack.begin(0, Event::WaitedLong);
    let (_, to, question) = pack.in_flight.pop_front().expect("a question");
    assert_eq!(to, n(2));
    pack.settle();
    pack.begin(2, from(0, question));
    let (_, _, answer) = only(&mut pack);
    pack.refuse(0, from(2, answer))
}

#[test]
fn who_claims_what_nobody_did_is_named() {
    let error = refused(claimed(5));
    assert!(
        matches!(
            error,
            ProtocolError::NeverDone {
                by: NodeId(1),
                barrier: BarrierId::Program(0),
                of: NodeId(2),
                claimed: 5,
                ended: 1,
            }
        ),
        "{error}"
    );
    assert_eq!(
        error.to_string(),
        "node 1 tells at barrier 0 that node 2 has ended its interval 5: it has ended 1"
    );
}

#[test]
fn who_claims_it_at_another_barrier_is_named_too() {
    let (once, site) = (true, site(2));
    let error = refused(claimed_where(5, Event::Arrive { once, site }));
    let words = "node 1 tells at barrier 0 that node 2 has ended its interval 5: it has ended 1";
    assert_eq!(error.to_string(), words);
}

/// ```text
/// node 0 ---------------- asks 2 ----------------- answer ---- the second arrival: all pass
/// node 1        has seen interval 1
/// node 2 arrives, ends interval 1, tells (late) --------------------'
/// ```
#[test]
fn what_is_on_its_way_is_no_lie() {
    let mut pack = Pack::with_object(3);
    pack.run(2, miss(OBJECT, 0));
    pack.run(2, arrive());
    // A process of node 2 goes on, and what it wrote is seen by one of node 1.
    pack.write(2, OBJECT);
    pack.begin(2, Event::EndInterval);
    let (_, _, late) = only(&mut pack);
    assert_eq!(late.kind(), MessageKind::BarrierArrive);
    let news = pack.nodes[2].news_for(&VectorTime::zero(3));
    pack.local(1, Event::Learn(news));
    pack.run(1, arrive());
    pack.run(0, arrive());
    pack.done.iter_mut().for_each(Vec::clear);
    pack.begin(0, Event::WaitedLong);
    pack.settle();
    assert_eq!(
        pack.sent[&MessageKind::Probe],
        2 + 2,
        "a question and its answer, and a probe that visits the others once"
    );
    assert!(nobody_passed(&pack));
    pack.begin(0, from(2, late));
    pack.settle();
    for node in 0..3 {
        assert_eq!(pack.nodes[node].wait(), None, "node {node} has passed");
    }
}

/// ```text
/// node 0 ------ learns of intervals 1 and 2 ---- the arrival that tells of 1 ---- that tells of 2
/// node 1 arrives, ends interval 1, tells (late), ends interval 2, tells (late)
/// ```
#[test]
fn an_arrival_may_tell_less_than_was_seen_meanwhile() {
    let mut pack = Pack::with_object(2);
    pack.run(1, miss(OBJECT, 0));
    pack.run(1, arrive());
    let mut late = Vec::new();
    for _ in 0..2 {
        pack.write(1, OBJECT);
        pack.begin(1, Event::EndInterval);
        late.push(only(&mut pack).2);
        let news = pack.nodes[1].news_for(&VectorTime::zero(2));
        pack.local(0, Event::Learn(news));
        pack.run(0, miss(OBJECT, 0));
    }
    for arrival in late {
        assert_eq!(pack.local(0, from(1, arrival)), []);
    }
    pack.run(0, arrive());
    assert!((0..2).all(|node| pack.nodes[node].wait().is_none()));
}

#[test]
fn who_does_not_tell_at_a_barrier_what_another_has_seen_is_named() {
    let mut pack = claimed(2);
    let untold = Untold {
        barrier: BarrierId::Program(0),
        by: n(1),
        index: 2,
    };
    let told = |arrivals| {
        let ended = 2;
        from(
            2,
            Message::Told {
                of: untold,
                ended,
                arrivals,
            },
        )
    };
    pack.begin(0, told(2));
    let error = pack.refuse(0, told(1)).to_string();
    assert!(
        error.contains("node 2") && error.contains("not told"),
        "{error}"
    );
}

#[test]
fn questions_and_answers_that_make_no_sense_change_nothing() {
    let mut pack = claimed(2);
    let of = |by, index| Untold {
        barrier: BarrierId::Program(0),
        by,
        index,
    };
    let error = pack.refuse(2, from(1, Message::Untold(of(n(1), 2))));
    assert!(error.to_string().contains("only the manager"), "{error}");
    let told = |of| {
        let (ended, arrivals) = (0, 1);
        from(
            2,
            Message::Told {
                of,
                ended,
                arrivals,
            },
        )
    };
    // What would make a liar of who has said nothing of the kind.
    for of in [of(n(0), 1), of(n(1), 3)] {
        let error = pack.refuse(0, told(of));
        assert!(error.to_string().contains("not asked"), "{error}");
    }
    pack.refuse(0, told(of(n(7), 1)));
    // Of a barrier that is over, or that nobody has reached.
    let other = Untold {
        barrier: BarrierId::Program(3),
        ..of(n(1), 2)
    };
    assert_eq!(pack.local(0, told(other)), []);
    assert_eq!(pack.local(2, from(0, Message::Untold(other))), []);
}
