//! `Event::Acquire`: where a lock comes from, in how many messages, and with which notices.

use crate::pack::{OBJECT, Pack, acquire, allocated, from, miss, n, no_news, release, site};
use dhole_model::{MessageKind, Oid, OidRange};
use dhole_protocol::{Command, Event, LockId, Message, ProtocolError, RegionCommand};

#[test]
fn a_lock_held_last_here_costs_no_message() {
    let mut pack = Pack::new(3);
    pack.pass(2, 0);
    assert_eq!(pack.messages(), 2);
    for _ in 0..3 {
        assert_eq!(pack.local(2, acquire(0)), [Command::Done]);
        assert_eq!(pack.local(2, release(0)), []);
    }
    assert_eq!(pack.messages(), 0);
}

#[test]
fn a_lock_that_nobody_held_is_free_at_its_manager() {
    let mut pack = Pack::new(3);
    assert_eq!(pack.local(1, acquire(1)), [Command::Done]);
    assert_eq!(
        pack.local(1, acquire(4)),
        [Command::Done],
        "by its number modulo the nodes"
    );
}

#[test]
fn a_lock_that_is_at_its_manager_costs_two_messages() {
    let mut pack = Pack::new(3);
    assert_eq!(pack.run(2, acquire(0)), [Command::Done]);
    assert_eq!(pack.messages(), 2);
}

#[test]
fn a_lock_that_another_node_held_last_costs_three_messages() {
    let mut pack = Pack::new(3);
    pack.pass(1, 0);
    pack.messages();
    assert_eq!(pack.run(2, acquire(0)), [Command::Done]);
    let kinds: Vec<_> = pack
        .sent
        .iter()
        .map(|(kind, count)| (*kind, *count))
        .collect();
    let once = |kind| (kind, 1);
    let wanted = [
        MessageKind::LockRequest,
        MessageKind::LockForward,
        MessageKind::LockGrant,
    ];
    assert_eq!(kinds, wanted.map(once));
}

#[test]
fn a_manager_gets_its_lock_back_in_two_messages() {
    let mut pack = Pack::new(3);
    pack.pass(1, 0);
    pack.messages();
    assert_eq!(pack.run(0, acquire(0)), [Command::Done]);
    assert_eq!(pack.messages(), 2);
}

#[test]
fn all_who_ask_get_the_lock_in_the_order_in_which_its_manager_heard_them() {
    let mut pack = Pack::new(4);
    pack.local(0, acquire(0));
    for node in [2, 3, 1] {
        assert_eq!(pack.run(node, acquire(0)), [], "it is held");
    }
    let mut holder = 0;
    for next in [2, 3, 1] {
        pack.done[next].clear();
        pack.run(holder, release(0));
        assert_eq!(pack.done[next], [Command::Done]);
        holder = next;
    }
}

#[test]
fn a_lock_that_is_held_here_cannot_be_acquired_again() {
    let mut pack = Pack::new(2);
    pack.local(0, acquire(0));
    let again = Event::Acquire {
        lock: LockId(0),
        site: site(9),
    };
    let held = ProtocolError::AlreadyHeld {
        lock: LockId(0),
        site: site(9),
        held_since: site(1),
    };
    let error = pack.refuse(0, again);
    assert_eq!(error, held);
    assert_eq!(
        error.to_string(),
        "acquiring lock 0 at program.rs:9:5: this node has held it since program.rs:1:5"
    );
}

#[test]
fn a_grant_brings_the_notices_that_the_acquirer_lacks_and_no_others() {
    let mut pack = Pack::new(3);
    pack.local(
        0,
        crate::pack::allocated(OidRange {
            first: OBJECT,
            count: 2,
        }),
    );
    pack.run(1, miss(OBJECT, 0));
    pack.local(0, acquire(0));
    pack.write(0, OBJECT);
    pack.local(0, release(0));
    pack.pass(1, 0);
    assert!(pack.done[1].contains(&Command::Objects(RegionCommand::Invalidate(OBJECT))));

    pack.write(0, Oid(65));
    pack.run(0, acquire(0));
    pack.run(0, release(0));
    pack.begin(1, acquire(0));
    pack.deliver_next();
    let Message::LockGrant { news, .. } = &pack.in_flight[0].2 else {
        panic!("a grant")
    };
    let told: Vec<_> = news
        .intervals
        .iter()
        .map(|told| (told.node, told.index))
        .collect();
    assert_eq!(told, [(n(0), 2)], "its first interval is known");
}

#[test]
fn an_interval_goes_on_where_a_lock_is_acquired_again() {
    let mut pack = Pack::with_object(2);
    pack.write(0, OBJECT);
    assert_eq!(
        pack.local(0, acquire(0)),
        [Command::Done],
        "nobody can learn of it yet"
    );
    assert_eq!(
        pack.local(0, release(0)),
        [
            Command::Objects(RegionCommand::MakeClean(OBJECT)),
            Command::IntervalEnded
        ]
    );
}

#[test]
fn a_grant_that_nobody_asked_for_is_refused() {
    let mut pack = Pack::new(2);
    pack.pass(0, 1);
    let grant = Message::LockGrant {
        lock: LockId(1),
        news: no_news(2),
        waiting: Default::default(),
    };
    pack.refuse(0, from(1, grant));
}

#[test]
fn a_grant_whose_news_has_a_gap_is_refused() {
    let mut pack = Pack::new(3);
    let count = 2;
    let range = OidRange {
        first: OBJECT,
        count,
    };
    pack.local(0, allocated(range));
    for oid in range.iter() {
        pack.write(0, oid);
        pack.pass(0, 0);
    }
    pack.begin(1, acquire(0));
    pack.deliver_next();
    let (_, _, grant) = pack.in_flight.pop_front().expect("a grant");
    let Message::LockGrant {
        lock,
        news,
        waiting,
    } = grant
    else {
        panic!("a grant")
    };
    assert_eq!(news.intervals.len(), 2);
    for lost in 0..2 {
        let mut news = news.clone();
        news.intervals.remove(lost);
        pack.refuse(
            1,
            from(
                0,
                Message::LockGrant {
                    lock,
                    news,
                    waiting: waiting.clone(),
                },
            ),
        );
    }
}
