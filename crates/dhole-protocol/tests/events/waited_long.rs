//! `Event::WaitedLong`: probes along the wait-for graph.

use crate::pack::{Pack, acquire, arrive, release};
use dhole_model::{CallSite, MessageKind, NodeId, ObjectId};
use dhole_protocol::{
    Command, ConditionId, Event, LockId, Message, Operation, RwLockId, SemaphoreId, SyncObject,
    WaitingFor,
};

/// Every node that waits has waited long.
fn all_wait_long(pack: &mut Pack) {
    for node in 0..pack.nodes.len() {
        pack.run(node, Event::WaitedLong);
    }
}

fn told(pack: &Pack) -> Vec<usize> {
    let is_told = |node: &usize| {
        pack.done[*node]
            .iter()
            .any(|command| matches!(command, Command::Deadlock(_)))
    };
    (0..pack.nodes.len()).filter(is_told).collect()
}

#[test]
fn a_node_that_does_not_wait_sends_no_probe() {
    let mut pack = Pack::new(2);
    assert_eq!(pack.local(0, Event::WaitedLong), []);
    pack.run(0, acquire(1));
    assert_eq!(pack.local(0, Event::WaitedLong), []);
}

#[test]
fn a_wait_for_a_node_that_computes_is_no_deadlock() {
    let mut pack = Pack::new(3);
    pack.local(0, acquire(0));
    pack.run(1, acquire(0));
    pack.run(2, acquire(0));
    all_wait_long(&mut pack);
    assert_eq!(told(&pack), []);
    pack.run(0, release(0));
    assert!(pack.done[1].contains(&Command::Done));
}

#[test]
fn a_wait_at_a_barrier_for_a_node_that_computes_is_no_deadlock() {
    let mut pack = Pack::new(3);
    pack.run(0, arrive());
    pack.run(2, arrive());
    all_wait_long(&mut pack);
    assert_eq!(told(&pack), []);
}

#[test]
fn two_locks_taken_crosswise_are_told_to_both_in_one_round() {
    let mut pack = Pack::new(3);
    pack.local(0, acquire(0));
    pack.local(1, acquire(1));
    pack.run(0, acquire(1));
    pack.run(1, acquire(0));
    pack.run(1, Event::WaitedLong);
    assert_eq!(told(&pack), [0, 1]);
    let Some(Command::Deadlock(cycle)) = pack.done[0].last() else {
        panic!("told")
    };
    let words: Vec<String> = cycle.iter().map(|waiter| waiter.to_string()).collect();
    assert_eq!(
        words,
        [
            "node 1 waits for lock 0 at program.rs:1:5, which node 0 acquired at program.rs:1:5",
            "node 0 waits for lock 1 at program.rs:1:5, which node 1 acquired at program.rs:1:5"
        ]
    );
    assert_eq!(
        pack.sent[&MessageKind::Deadlock],
        1,
        "one message, and word to itself"
    );
}

#[test]
fn a_lock_kept_from_a_barrier_is_told_to_both() {
    let mut pack = Pack::new(3);
    pack.local(1, acquire(1));
    pack.run(0, acquire(1));
    pack.run(1, arrive());
    pack.run(2, arrive());
    pack.run(1, Event::WaitedLong);
    assert_eq!(told(&pack), [0, 1], "node 2 waits, but nobody waits for it");
}

#[test]
fn an_arrival_on_its_way_is_no_deadlock() {
    let mut pack = Pack::new(2);
    pack.begin(1, arrive());
    let arrival = pack.in_flight.pop_front().expect("an arrival");
    pack.run(1, Event::WaitedLong);
    assert_eq!(told(&pack), []);
    pack.in_flight.push_back(arrival);
    pack.run(0, arrive());
    assert_eq!(pack.done[1], [Command::Done]);
}

#[test]
fn a_departure_on_its_way_is_no_deadlock() {
    let mut pack = Pack::new(3);
    pack.run(1, acquire(1));
    pack.run(1, arrive());
    pack.run(2, arrive());
    pack.begin(0, arrive());
    // Node 2 has left the barrier and wants the lock of node 1, whose departure is late.
    let late = pack.in_flight.pop_front().expect("a departure");
    assert_eq!(late.1, crate::pack::n(1));
    pack.settle();
    pack.run(2, acquire(1));
    pack.run(1, Event::WaitedLong);
    pack.run(2, Event::WaitedLong);
    assert_eq!(told(&pack), []);
    pack.in_flight.push_back(late);
    pack.settle();
    pack.run(1, release(1));
    assert_eq!(pack.done[2].last(), Some(&Command::Done));
}

#[test]
fn a_grant_on_its_way_is_no_deadlock() {
    let mut pack = Pack::new(3);
    pack.run(0, acquire(0));
    pack.run(1, acquire(1));
    pack.run(1, acquire(0));
    pack.begin(0, release(0));
    // Node 0 has granted lock 0, which is late, and wants the lock of node 1.
    let late = pack.in_flight.pop_front().expect("a grant");
    pack.run(0, acquire(1));
    pack.run(0, Event::WaitedLong);
    pack.run(1, Event::WaitedLong);
    assert_eq!(told(&pack), []);
    pack.in_flight.push_back(late);
    pack.settle();
    assert_eq!(pack.done[1].last(), Some(&Command::Done));
}

#[test]
fn a_request_on_its_way_is_no_deadlock() {
    let mut pack = Pack::new(3);
    // Node 1 once got lock 2 from node 0, gave it to node 2, and asks for it again.
    pack.pass(0, 2);
    pack.pass(1, 2);
    pack.run(2, acquire(2));
    pack.run(1, acquire(1));
    pack.begin(1, acquire(2));
    let late = pack.in_flight.pop_front().expect("a request");
    pack.run(0, acquire(1));
    pack.run(1, Event::WaitedLong);
    pack.run(0, Event::WaitedLong);
    assert_eq!(told(&pack), [], "node 1 waits for node 2, which computes");
    pack.in_flight.push_back(late);
    pack.settle();
    pack.run(2, release(2));
    assert_eq!(pack.done[1].last(), Some(&Command::Done));
}

fn enter(sync_object: SyncObject) -> Event {
    let site = crate::pack::site(7);
    Event::Enter { sync_object, site }
}

fn permit() -> SyncObject {
    SyncObject::Permit(SemaphoreId {
        number: 1,
        permits: 0,
    })
}

#[test]
fn read_write_locks_taken_crosswise_are_told() {
    let [a, b] = [0, 1].map(|lock| {
        [
            SyncObject::Read(RwLockId(lock)),
            SyncObject::Write(RwLockId(lock)),
        ]
    });
    let mut pack = Pack::new(3);
    pack.run(0, enter(a[0]));
    pack.run(2, enter(a[0]));
    pack.run(1, enter(b[1]));
    pack.run(0, enter(b[0]));
    pack.run(1, enter(a[1]));
    all_wait_long(&mut pack);
    assert_eq!(told(&pack), [0, 1], "node 2 reads and computes");
}

#[test]
fn a_read_write_lock_that_readers_give_back_is_no_deadlock() {
    let [read, write] = [
        SyncObject::Read(RwLockId(0)),
        SyncObject::Write(RwLockId(0)),
    ];
    let mut pack = Pack::new(3);
    pack.run(0, enter(read));
    pack.run(1, enter(write));
    pack.run(2, enter(read));
    all_wait_long(&mut pack);
    assert_eq!(told(&pack), []);
}

/// Node 1 reads under a read-write lock, and waits for a lock of node 2.
fn a_reader_waits_for_node_2() -> Pack {
    let mut pack = Pack::new(3);
    pack.run(2, acquire(2));
    pack.run(1, enter(SyncObject::Read(RwLockId(0))));
    pack.run(1, acquire(2));
    pack
}

/// Node 2 waits to read as well, and nothing keeps it but a message.
fn is_kept_by_nobody(mut pack: Pack, late: (NodeId, NodeId, Message)) {
    pack.done[2].clear();
    all_wait_long(&mut pack);
    assert_eq!(told(&pack), [], "{late:?}");
    pack.in_flight.push_back(late);
    pack.settle();
    assert!(pack.done[2].contains(&Command::Done));
}

#[test]
fn a_reader_whose_request_or_grant_is_on_its_way_is_kept_by_nobody() {
    for arrived in 0..2 {
        let mut pack = a_reader_waits_for_node_2();
        pack.begin(2, enter(SyncObject::Read(RwLockId(0))));
        (0..arrived).for_each(|_| assert!(pack.deliver_next()));
        let late = pack.in_flight.pop_front().expect("a request or a grant");
        is_kept_by_nobody(pack, late);
    }
}

#[test]
fn a_reader_whose_own_release_is_on_its_way_is_kept_by_nobody() {
    let sync_object = SyncObject::Read(RwLockId(0));
    let mut pack = a_reader_waits_for_node_2();
    pack.run(2, enter(sync_object));
    let site = crate::pack::site(9);
    pack.begin(2, Event::Leave { sync_object, site });
    let late = pack.in_flight.pop_front().expect("a release");
    pack.run(2, enter(sync_object));
    is_kept_by_nobody(pack, late);
}

#[test]
fn when_all_wait_and_none_can_be_woken_all_are_told_of_each_wait() {
    let mut pack = Pack::new(4);
    pack.run(0, Event::Finish);
    pack.run(1, enter(permit()));
    pack.run(2, acquire(1));
    let condition = ConditionId {
        lock: LockId(1),
        number: 0,
    };
    let site = crate::pack::site(8);
    pack.run(2, Event::WaitOn { condition, site });
    all_wait_long(&mut pack);
    assert_eq!(told(&pack), [], "node 3 computes");
    pack.run(3, Event::Finish);
    all_wait_long(&mut pack);
    assert_eq!(told(&pack), [0, 1, 2, 3]);
    let Some(Command::Deadlock(waits)) = pack.done[3].last() else {
        panic!("told")
    };
    let words: Vec<String> = waits.iter().map(|waiter| waiter.to_string()).collect();
    assert_eq!(
        words,
        [
            "node 0 has ended, and waits at the end of the run",
            "node 1 waits for a permit of semaphore 1 at program.rs:7:5",
            "node 2 waits on condition 0 of lock 1 at program.rs:8:5",
            "node 3 has ended, and waits at the end of the run",
        ]
    );
}

#[test]
fn what_a_comparison_waits_for_is_no_deadlock_while_it_is_on_its_way() {
    let mut pack = Pack::new(2);
    let operation = Operation {
        object: ObjectId(0),
        name: CallSite::runtime("comparing"),
        made: None,
    };
    let site = crate::pack::site(3);
    let what = WaitingFor::Operation(operation);
    pack.run(0, Event::Await { what, site });
    pack.run(1, Event::Finish);
    pack.nodes[1].count_objects(NodeId(0), true);
    all_wait_long(&mut pack);
    all_wait_long(&mut pack);
    assert_eq!(told(&pack), [], "digests are in flight");
    pack.nodes[0].count_objects(NodeId(1), false);
    all_wait_long(&mut pack);
    assert_eq!(told(&pack), [0, 1], "and now nothing is");
}

#[test]
fn a_permit_on_its_way_is_no_deadlock() {
    let mut pack = Pack::new(3);
    pack.run(2, enter(permit()));
    let site = crate::pack::site(9);
    let sync_object = permit();
    pack.begin(0, Event::Leave { sync_object, site });
    let release = pack.in_flight.pop_front().expect("a release");
    pack.run(0, Event::Finish);
    pack.run(1, Event::Finish);
    for _ in 0..3 {
        all_wait_long(&mut pack);
    }
    assert_eq!(told(&pack), [], "all wait, but a permit is in flight");
    pack.in_flight.push_back(release);
    pack.settle();
    assert!(pack.done[2].contains(&Command::Done));
}
