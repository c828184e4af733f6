//! `Event::Enter` and `Event::Leave`: read-write locks and semaphores.

use crate::pack::*;
use dhole_model::{MessageKind, NodeId, VectorTime};
use dhole_protocol::{
    Command, Event, Message, ProtocolError, RegionCommand, RwLockId, SemaphoreId, SyncObject,
};

fn read(lock: u64) -> SyncObject {
    SyncObject::Read(RwLockId(lock))
}

fn write(lock: u64) -> SyncObject {
    SyncObject::Write(RwLockId(lock))
}

fn permit(number: u64, permits: u32) -> SyncObject {
    SyncObject::Permit(SemaphoreId { number, permits })
}

fn enter(sync_object: SyncObject) -> Event {
    let site = site(3);
    Event::Enter { sync_object, site }
}

fn leave(sync_object: SyncObject) -> Event {
    let site = site(4);
    Event::Leave { sync_object, site }
}

/// Whether the node's wait has ended since this was asked last.
fn passed(pack: &mut Pack, node: usize) -> bool {
    let done = std::mem::take(&mut pack.done[node]);
    done.contains(&Command::Done)
}

#[test]
fn readers_pass_together_and_a_writer_alone() {
    let mut pack = Pack::new(4);
    for reader in [1, 2] {
        assert!(pack.run(reader, enter(read(0))).contains(&Command::Done));
    }
    assert!(!pack.run(3, enter(write(0))).contains(&Command::Done));
    pack.run(1, leave(read(0)));
    assert!(!passed(&mut pack, 3), "one reader is left");
    pack.run(2, leave(read(0)));
    assert!(passed(&mut pack, 3));
    assert!(!pack.run(1, enter(read(0))).contains(&Command::Done));
    pack.run(3, leave(write(0)));
    assert!(passed(&mut pack, 1));
}

#[test]
fn a_reader_does_not_overtake_a_writer_nor_a_writer_a_reader() {
    let mut pack = Pack::new(4);
    pack.run(0, enter(read(0)));
    pack.run(1, enter(write(0)));
    assert!(
        !pack.run(2, enter(read(0))).contains(&Command::Done),
        "a writer is before it"
    );
    pack.run(3, enter(write(0)));
    pack.run(0, leave(read(0)));
    assert!(passed(&mut pack, 1) && !passed(&mut pack, 2));
    pack.run(1, leave(write(0)));
    assert!(
        passed(&mut pack, 2) && !passed(&mut pack, 3),
        "a reader is before it"
    );
    pack.run(2, leave(read(0)));
    assert!(passed(&mut pack, 3));
}

#[test]
fn a_lock_that_is_free_at_its_manager_costs_no_message() {
    let mut pack = Pack::new(2);
    for sync_object in [read(0), write(0), permit(0, 1)] {
        assert!(pack.local(0, enter(sync_object)).contains(&Command::Done));
        pack.local(0, leave(sync_object));
    }
    assert_eq!(pack.messages(), 0);
}

#[test]
fn notices_go_from_writer_to_readers_to_the_next_writer() {
    let mut pack = Pack::with_object(4);
    let other = OBJECT.plus(1);
    pack.local(1, allocated(dhole_model::OidRange::one(other)));
    for node in 1..4 {
        pack.run(node, miss(OBJECT, 0));
    }
    pack.run(3, miss(other, 1));
    pack.messages();
    pack.run(0, enter(write(0)));
    pack.write(0, OBJECT);
    pack.run(0, leave(write(0)));
    for reader in [1, 2] {
        let done = pack.run(reader, enter(read(0)));
        assert!(done.contains(&Command::Objects(RegionCommand::Invalidate(OBJECT))));
    }
    assert_eq!(
        pack.messages(),
        4,
        "the manager wrote last: request and grant"
    );
    pack.write(1, other);
    pack.run(1, leave(read(0)));
    pack.run(2, leave(read(0)));
    pack.messages();
    let done = pack.run(3, enter(write(0)));
    assert!(done.contains(&Command::Objects(RegionCommand::Invalidate(OBJECT))));
    assert!(
        done.contains(&Command::Objects(RegionCommand::Invalidate(other))),
        "a reader wrote it"
    );
    assert_eq!(
        pack.sent.remove(&MessageKind::SyncForward),
        Some(1),
        "that reader is asked"
    );
    assert_eq!(
        pack.messages(),
        2,
        "request and grant; who has learned nothing is not asked"
    );
}

#[test]
fn a_permit_carries_what_happened_before_its_release() {
    let mut pack = Pack::with_object(3);
    pack.run(2, miss(OBJECT, 0));
    let ready = permit(1, 0);
    assert!(!pack.run(2, enter(ready)).contains(&Command::Done));
    pack.write(0, OBJECT);
    pack.messages();
    pack.run(0, leave(ready));
    assert!(
        pack.done[2].contains(&Command::Objects(RegionCommand::Invalidate(OBJECT)))
            && passed(&mut pack, 2)
    );
    assert_eq!(pack.messages(), 3, "release, forward, grant");
}

#[test]
fn permits_go_to_those_who_asked_first_and_are_not_lost() {
    let mut pack = Pack::new(3);
    let two = permit(0, 2);
    for node in [1, 2] {
        pack.run(node, enter(two));
        assert!(passed(&mut pack, node));
    }
    assert!(!pack.run(2, enter(two)).contains(&Command::Done));
    assert!(!pack.run(1, enter(two)).contains(&Command::Done));
    pack.run(0, leave(two));
    assert!(passed(&mut pack, 2) && !passed(&mut pack, 1));
    pack.run(0, leave(two));
    assert!(passed(&mut pack, 1));
    pack.run(0, leave(two));
    assert!(
        pack.run(0, enter(two)).contains(&Command::Done),
        "one was left"
    );
}

#[test]
fn what_is_not_held_cannot_be_released_and_what_is_held_not_entered() {
    let mut pack = Pack::new(2);
    for sync_object in [read(1), write(1)] {
        let error = pack.refuse(0, leave(sync_object));
        assert_eq!(
            error,
            ProtocolError::NotEntered {
                sync_object,
                site: site(4)
            }
        );
    }
    pack.run(0, enter(read(1)));
    for sync_object in [read(1), write(1)] {
        let text = pack.refuse(0, enter(sync_object)).to_string();
        assert!(text.contains("since program.rs:3:5"), "{text}");
    }
    let text = pack.refuse(0, leave(write(1))).to_string();
    assert!(text.contains("read-write lock 1 (to write)"), "{text}");
}

#[test]
fn a_semaphore_neither_overflows_nor_changes() {
    let mut pack = Pack::new(2);
    let full = permit(0, u32::MAX);
    assert!(pack.run(0, enter(full)).contains(&Command::Done));
    pack.run(1, leave(full));
    let error = pack.refuse(0, leave(full));
    assert!(
        matches!(error, ProtocolError::TooManyPermits { .. }),
        "{error}"
    );
    let error = pack.refuse(0, enter(permit(0, 3)));
    assert!(
        matches!(error, ProtocolError::OtherPermits { .. }),
        "{error}"
    );
    let release = Message::SyncRelease {
        sync_object: full,
        time: VectorTime::zero(2),
        site: site(9),
    };
    let text = pack.refuse(0, from(1, release)).to_string();
    assert!(text.contains("on node 1 at program.rs:9:5"), "{text}");
}

#[test]
fn a_permit_too_many_ends_no_interval_and_makes_no_semaphore() {
    let full = permit(0, u32::MAX);
    let mut pack = Pack::with_object(2);
    pack.write(0, OBJECT);
    let error = pack.refuse(0, leave(full));
    assert!(
        matches!(error, ProtocolError::TooManyPermits { .. }),
        "{error}"
    );
}

#[test]
fn a_release_that_the_next_request_overtakes_is_waited_for() {
    for (held, again) in [(read(0), read(0)), (read(0), write(0)), (write(0), read(0))] {
        let mut pack = Pack::new(2);
        pack.run(1, enter(held));
        pack.begin(1, leave(held));
        pack.begin(1, enter(again));
        pack.in_flight.swap(0, 1);
        pack.deliver_next();
        assert_eq!(pack.in_flight.len(), 1, "the release is still to come");
        pack.done[1].clear();
        pack.settle();
        assert!(passed(&mut pack, 1));
    }
}

fn wait_on(lock: u64) -> Event {
    Event::WaitOnRwLock {
        lock: RwLockId(lock),
        until_written: false,
        site: site(5),
    }
}

/// A section at its caller, whose guard is false.
fn wait_until_written(lock: u64) -> Event {
    Event::WaitOnRwLock {
        lock: RwLockId(lock),
        until_written: true,
        site: site(5),
    }
}

#[test]
fn who_waits_until_something_is_written_is_woken_by_a_writer_and_not_by_another_such_wait() {
    let mut pack = Pack::new(4);
    for node in [1, 2] {
        pack.run(node, enter(write(0)));
        assert!(passed(&mut pack, node));
        pack.run(node, wait_until_written(0));
    }
    assert!(!passed(&mut pack, 1), "node 2 has written nothing");
    // A reader wakes nobody, and a notification is for other waits.
    pack.run(3, enter(read(0)));
    pack.run(3, notify(0, true));
    pack.run(3, leave(read(0)));
    assert!(!passed(&mut pack, 1) && !passed(&mut pack, 2));
    pack.run(3, enter(write(0)));
    pack.run(3, leave(write(0)));
    assert!(passed(&mut pack, 1) && !passed(&mut pack, 2));
    // The one that was woken waits again, and keeps the other from nothing.
    pack.run(1, wait_until_written(0));
    assert!(passed(&mut pack, 2));
    pack.run(2, leave(write(0)));
    assert!(passed(&mut pack, 1));
    pack.run(1, leave(write(0)));
}

fn notify(lock: u64, all: bool) -> Event {
    Event::NotifyRwLock {
        lock: RwLockId(lock),
        all,
        site: site(6),
    }
}

/// The nodes wait on the condition of lock 0, one after the other.
fn all_wait(pack: &mut Pack, nodes: &[usize]) {
    for node in nodes {
        pack.run(*node, enter(write(0)));
        assert!(passed(pack, *node));
        pack.run(*node, wait_on(0));
        assert!(!passed(pack, *node));
    }
}

#[test]
fn a_wait_on_a_condition_costs_its_release_and_a_notification_nothing() {
    let mut pack = Pack::with_object(3);
    pack.run(2, miss(OBJECT, 0));
    pack.run(2, enter(write(0)));
    assert!(passed(&mut pack, 2));
    pack.messages();
    pack.run(2, wait_on(0));
    assert_eq!(pack.messages(), 1);
    assert!(pack.run(0, enter(write(0))).contains(&Command::Done));
    pack.write(0, OBJECT);
    pack.run(0, notify(0, false));
    assert_eq!(pack.messages(), 0);
    assert!(!passed(&mut pack, 2), "the notifier holds the lock");
    pack.run(0, leave(write(0)));
    let invalidate = Command::Objects(RegionCommand::Invalidate(OBJECT));
    assert!(pack.done[2].contains(&invalidate), "it was written");
    assert!(passed(&mut pack, 2));
    assert_eq!(pack.messages(), 1, "the grant");
    pack.run(2, leave(write(0)));
}

#[test]
fn a_release_wakes_as_many_as_were_notified_and_each_gets_the_lock_in_turn() {
    let mut pack = Pack::new(4);
    all_wait(&mut pack, &[2, 3, 1]);
    // A reader may notify too. A wait that was not notified goes on.
    pack.run(0, enter(read(0)));
    pack.run(0, notify(0, false));
    pack.run(0, leave(read(0)));
    assert!(passed(&mut pack, 2) && !passed(&mut pack, 3));
    pack.run(2, notify(0, true));
    // Who notifies and then waits is not woken by that.
    pack.run(2, wait_on(0));
    for node in [3, 1] {
        assert!(passed(&mut pack, node));
        pack.run(node, leave(write(0)));
    }
    assert!(!passed(&mut pack, 2));
}

#[test]
fn who_does_not_hold_a_lock_neither_waits_nor_notifies() {
    let mut pack = Pack::new(2);
    let text = pack.refuse(0, notify(1, true)).to_string();
    let wanted = "notifying the condition of read-write lock 1 at program.rs:6:5: this node does \
                  not hold the lock";
    assert_eq!(text, wanted);
    pack.run(0, enter(read(1)));
    let text = pack.refuse(0, wait_on(1)).to_string();
    let wanted = "waiting on the condition of read-write lock 1 at program.rs:5:5: this node does \
                  not hold the lock to write";
    assert_eq!(text, wanted);
    pack.run(1, enter(read(0)));
    let release = |sync_object, waits| Message::SyncReleaseAndWake {
        sync_object,
        time: VectorTime::zero(2),
        site: site(9),
        wakes: 1,
        waits,
        until_written: false,
    };
    for message in [
        release(read(0), Some(1)),
        release(write(0), None),
        release(permit(0, 1), None),
    ] {
        pack.refuse(0, from(1, message));
    }
}

#[test]
fn the_lock_of_an_object_is_its_homes_and_no_other_nodes() {
    let of_object = |home| SyncObject::Write(RwLockId::of_object(OBJECT, n(home)));
    let mut pack = Pack::new(3);
    // At its home no message is sent.
    assert!(pack.run(2, enter(of_object(2))).contains(&Command::Done));
    assert!(pack.in_flight.is_empty());
    pack.begin(1, enter(of_object(2)));
    let (from_node, to, _) = pack.in_flight.front().expect("a request");
    assert_eq!((*from_node, *to), (n(1), n(2)));
    pack.settle();
    assert!(!passed(&mut pack, 1));
    pack.run(2, leave(of_object(2)));
    assert!(passed(&mut pack, 1));
    // The lock of the same number is another one.
    assert!(pack.run(0, enter(write(OBJECT.0))).contains(&Command::Done));

    // A node that is not the home refuses, and so do all where there is no such home.
    for home in [NodeId(1), NodeId(7), NodeId(2000)] {
        let request = Message::SyncRequest {
            sync_object: SyncObject::Write(RwLockId::of_object(OBJECT, home)),
            wait: 1,
            time: VectorTime::zero(3),
        };
        let text = pack.refuse(0, from(1, request)).to_string();
        assert!(text.contains("does not manage the sync object"), "{text}");
    }
}

#[test]
fn messages_that_make_no_sense_change_nothing() {
    let mut pack = Pack::new(3);
    pack.run(1, enter(write(0)));
    let time = VectorTime::zero(3);
    let request = |sync_object| Message::SyncRequest {
        sync_object,
        wait: 9,
        time: time.clone(),
    };
    let release = |sync_object| Message::SyncRelease {
        sync_object,
        time: time.clone(),
        site: site(1),
    };
    let grant = |wait, parts| Message::SyncGrant {
        sync_object: write(0),
        wait,
        parts,
        news: no_news(3),
    };
    for (node, message) in [
        (2, request(write(0))),
        (0, release(read(0))),
        (2, release(write(0))),
        (1, grant(1, 1)),
        (2, grant(1, 1)),
    ] {
        pack.refuse(node, from(1, message));
    }
    pack.begin(2, enter(write(0)));
    for (wait, parts) in [(2, 1), (1, 0)] {
        pack.refuse(2, from(0, grant(wait, parts)));
    }
}

#[test]
fn what_all_have_seen_at_a_barrier_is_kept_no_more() {
    let mut pack = Pack::with_object(3);
    for round in 0..5 {
        for node in 0..3 {
            for sync_object in [write(3 * round), read(3 * round)] {
                pack.run(node, enter(sync_object));
                if node == 1 && sync_object == write(3 * round) {
                    pack.run(node, miss(OBJECT, 0));
                    pack.write(node, OBJECT);
                }
                pack.run(node, leave(sync_object));
            }
            pack.run(node, leave(permit(0, 0)));
        }
        let [locks, releases] = pack.nodes[0].sync_records_kept();
        assert!(locks == 1 && releases > 0, "{locks} and {releases}");
        pack.barrier();
        assert_eq!(pack.nodes[0].sync_records_kept(), [0, 0]);
    }
}

#[test]
fn a_lock_that_is_held_over_a_barrier_is_kept() {
    let mut pack = Pack::new(2);
    pack.run(1, enter(write(0)));
    pack.barrier();
    assert_eq!(pack.nodes[0].sync_records_kept()[0], 1);
    assert!(!pack.run(0, enter(read(0))).contains(&Command::Done));
    pack.run(1, leave(write(0)));
    assert!(passed(&mut pack, 0));
}
