//! `Event::Release`: who gets the lock next.

use crate::pack::{OBJECT, Pack, acquire, n, release};
use dhole_protocol::{Command, LockId, Message, ProtocolError, RegionCommand};

#[test]
fn a_lock_that_nobody_wants_stays_here() {
    let mut pack = Pack::new(2);
    pack.local(0, acquire(0));
    assert_eq!(pack.local(0, release(0)), []);
}

#[test]
fn a_lock_that_somebody_wants_goes_there_with_what_was_written() {
    let mut pack = Pack::with_object(2);
    pack.local(0, acquire(0));
    pack.run(1, acquire(0));
    pack.write(0, OBJECT);
    assert_eq!(
        pack.begin(0, release(0)),
        [
            Command::Objects(RegionCommand::MakeClean(OBJECT)),
            Command::IntervalEnded
        ]
    );
    let (_, to, Message::LockGrant { news, .. }) = &pack.in_flight[0] else {
        panic!("a grant")
    };
    assert_eq!(*to, n(1));
    assert_eq!(news.intervals.len(), 1);
    assert_eq!(news.intervals[0].lamport, 1);
}

#[test]
fn a_lock_that_is_not_held_cannot_be_released() {
    let mut pack = Pack::new(2);
    pack.pass(0, 0);
    assert_eq!(
        pack.refuse(0, release(0)),
        ProtocolError::NotHeld { lock: LockId(0) }
    );
    pack.begin(1, acquire(0));
    assert_eq!(
        pack.refuse(1, release(0)),
        ProtocolError::NotHeld { lock: LockId(0) }
    );
}

#[test]
fn a_lock_released_while_a_request_is_on_its_way_is_granted_when_that_arrives() {
    let mut pack = Pack::new(3);
    pack.pass(1, 0);
    pack.begin(2, acquire(0));
    pack.deliver_next();
    pack.local(1, acquire(0));
    pack.local(1, release(0));
    pack.settle();
    assert_eq!(pack.done[2], [Command::Done]);
}

#[test]
fn of_a_lock_that_is_elsewhere_only_its_manager_keeps_a_record() {
    let mut pack = Pack::new(3);
    for lock in (0..300).map(|lock| 3 * lock) {
        (1..3).for_each(|node| pack.pass(node, lock));
    }
    let kept = pack.nodes.iter().map(dhole_protocol::Protocol::locks_kept);
    assert_eq!(
        kept.collect::<Vec<_>>(),
        [300, 0, 300],
        "the manager, and who held it last"
    );
}
