//! `Event::WaitOn` and `Event::Notify`.

use crate::pack::*;
use dhole_model::MessageKind;
use dhole_protocol::{
    AbortReason, Command, ConditionId, Event, LockId, Message, ProtocolError, RegionCommand,
};

const CONDITION: ConditionId = ConditionId {
    lock: LockId(1),
    number: 0,
};

fn wait_on(condition: ConditionId) -> Event {
    Event::WaitOn {
        condition,
        site: site(5),
    }
}

fn notify(condition: ConditionId, all: bool) -> Event {
    Event::Notify {
        condition,
        all,
        site: site(6),
    }
}

/// The nodes wait, one after the other.
fn all_wait(pack: &mut Pack, nodes: &[usize]) {
    for node in nodes {
        assert!(pack.run(*node, acquire(1)).contains(&Command::Done));
        pack.run(*node, wait_on(CONDITION));
        pack.done[*node].clear();
    }
}

fn woken(pack: &Pack, node: usize) -> bool {
    pack.done[node].contains(&Command::Done)
}

#[test]
fn a_woken_node_sees_what_the_notifier_wrote_and_holds_the_lock() {
    let mut pack = Pack::with_object(3);
    pack.run(2, miss(OBJECT, 0));
    all_wait(&mut pack, &[2]);
    pack.run(0, acquire(1));
    pack.write(0, OBJECT);
    pack.run(0, notify(CONDITION, false));
    assert!(!woken(&pack, 2), "the notifier holds the lock");
    pack.run(0, release(1));
    assert!(
        woken(&pack, 2)
            && pack.done[2].contains(&Command::Objects(RegionCommand::Invalidate(OBJECT)))
    );
    pack.run(2, release(1));
}

#[test]
fn one_notification_wakes_the_one_who_waited_longest() {
    let mut pack = Pack::new(4);
    all_wait(&mut pack, &[2, 3, 1]);
    for (notified, woken_now) in [2, 3, 1].into_iter().zip([1, 2, 3]) {
        pack.run(0, acquire(1));
        pack.run(0, notify(CONDITION, false));
        pack.run(0, release(1));
        let count = (1..4).filter(|node| woken(&pack, *node)).count();
        assert!(woken(&pack, notified) && count == woken_now);
        pack.run(notified, release(1));
    }
}

#[test]
fn a_notification_of_all_wakes_all_one_after_the_other() {
    let mut pack = Pack::new(4);
    all_wait(&mut pack, &[1, 2, 3]);
    pack.run(0, acquire(1));
    pack.run(0, notify(CONDITION, true));
    pack.run(0, release(1));
    for round in 1..=3 {
        let holders: Vec<usize> = (1..4).filter(|node| woken(&pack, *node)).collect();
        assert_eq!(holders.len(), 1, "round {round}: {holders:?}");
        pack.done[holders[0]].clear();
        pack.run(holders[0], release(1));
    }
}

#[test]
fn conditions_of_one_lock_are_told_apart() {
    let mut pack = Pack::new(2);
    let other = ConditionId {
        number: 1,
        ..CONDITION
    };
    all_wait(&mut pack, &[1]);
    pack.run(0, acquire(1));
    pack.run(0, notify(other, true));
    pack.run(0, release(1));
    assert!(!woken(&pack, 1));
}

#[test]
fn waits_and_notifications_of_nobody_cost_no_message() {
    let mut pack = Pack::new(2);
    pack.run(0, acquire(0));
    let condition = ConditionId {
        lock: LockId(0),
        number: 3,
    };
    pack.local(0, notify(condition, true));
    pack.local(0, wait_on(condition));
    assert_eq!(pack.messages(), 0);
}

#[test]
fn a_wake_up_costs_a_notification_and_the_lock() {
    let mut pack = Pack::new(3);
    all_wait(&mut pack, &[2]);
    pack.run(0, acquire(1));
    pack.messages();
    pack.run(0, notify(CONDITION, false));
    pack.run(0, release(1));
    assert_eq!(pack.sent.remove(&MessageKind::Notify), Some(1));
    assert_eq!(pack.messages(), 3, "request, forward, grant");
}

#[test]
fn a_notification_after_the_end_of_the_run_is_no_nonsense() {
    let mut pack = Pack::new(3);
    all_wait(&mut pack, &[2]);
    let abort = Message::Abort {
        node: n(0),
        reason: AbortReason::Failed("words".into()),
    };
    pack.local(2, from(0, abort));
    let condition = CONDITION;
    assert_eq!(pack.local(2, from(1, Message::Notify { condition })), []);
}

#[test]
fn without_the_lock_there_is_no_waiting_and_no_notifying() {
    let mut pack = Pack::new(2);
    let text = pack.refuse(0, wait_on(CONDITION)).to_string();
    assert_eq!(
        text,
        "waiting on condition 0 of lock 1 at program.rs:5:5: this node does not hold lock 1"
    );
    let error = pack.refuse(0, notify(CONDITION, true));
    assert!(
        matches!(error, ProtocolError::WithoutLock { .. }),
        "{error}"
    );
    let stray = Message::Notify {
        condition: CONDITION,
    };
    pack.refuse(0, from(1, stray));
}
