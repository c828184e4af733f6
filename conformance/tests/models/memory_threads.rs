//! Threads of several nodes that wait for each other: every run of small programs.

use conformance::model::threads::ThreadOp::{
    self, Acquire, Await, Barrier, Lock, Post, Set, Signal, Try, Unlock,
};
use conformance::model::threads::{ThreadBug, ThreadFault, ThreadModel, ThreadSight};

/// A program of nodes, each of threads.
fn program<const N: usize>(nodes: [&[&[ThreadOp]]; N]) -> ThreadModel {
    let threads = |threads: &[&[ThreadOp]]| threads.iter().map(|ops| ops.to_vec()).collect();
    ThreadModel {
        nodes: nodes.into_iter().map(threads).collect(),
        suspects: 0,
        deadlocks: false,
        shares_locks: false,
        room: 2,
        bug: None,
    }
}

#[track_caller]
fn sound(model: ThreadModel, sights: &[ThreadSight]) {
    let words = format!("{:?}", model.nodes);
    let found = model.explore();
    println!("{words}: {} states, {:?}", found.states, found.seen);
    if let Some((fault, way)) = found.fault {
        panic!("{words}: {fault:?}\n{way}");
    }
    for sight in sights {
        assert!(
            found.seen.contains(sight),
            "{words} does not show {sight:?}"
        );
    }
}

#[track_caller]
fn finds(fault: ThreadFault, bug: Option<ThreadBug>, model: ThreadModel) {
    let found = ThreadModel { bug, ..model }.explore();
    let is = found.fault.map(|(fault, _)| fault);
    assert_eq!(is, Some(fault), "{bug:?}");
    println!("{bug:?}: {fault:?} within {} states", found.states);
}

const HOLDS: &[ThreadOp] = &[Lock(1), Unlock(1)];
const TWICE: &[ThreadOp] = &[Lock(1), Unlock(1), Lock(1), Unlock(1)];

#[test]
fn a_lock_goes_round_among_two_nodes_of_two_threads() {
    sound(
        program([&[TWICE, HOLDS], &[TWICE, HOLDS]]),
        &[ThreadSight::BothWait],
    );
    let tries: &[ThreadOp] = &[Try(1), Try(1)];
    sound(
        program([&[HOLDS, tries], &[TWICE, tries]]),
        &[ThreadSight::Busy],
    );
}

#[test]
fn a_lock_goes_round_among_three_nodes() {
    sound(program([&[TWICE], &[TWICE], &[TWICE]]), &[]);
    sound(
        program([&[&[Try(1), Lock(1), Unlock(1)]], &[HOLDS], &[&[Try(1)]]]),
        &[],
    );
}

#[test]
fn as_many_threads_pass_a_barrier_as_it_takes() {
    let twice: &[ThreadOp] = &[Barrier(1, 4), Barrier(1, 4)];
    let both: &[&[ThreadOp]] = &[twice, twice];
    sound(program([both, both]), &[ThreadSight::SentTogether]);
    let three: &[ThreadOp] = &[Barrier(1, 3), Barrier(1, 3)];
    sound(program([&[three], &[three], &[three]]), &[]);
    // More threads come to it than it takes.
    let of_two: &[&[ThreadOp]] = &[&[Barrier(1, 2)], &[Barrier(1, 2)]];
    sound(program([of_two, of_two]), &[]);
    // With room for one barrier and semaphore: those at rest take none.
    let all: &[ThreadOp] = &[
        Barrier(1, 2),
        Post(2),
        Acquire(2),
        Barrier(3, 2),
        Barrier(4, 2),
    ];
    let model = program([&[all], &[all]]);
    sound(ThreadModel { room: 1, ..model }, &[]);
}

const SIGNALS: &[ThreadOp] = &[Lock(1), Set(4), Signal(4, false), Unlock(1)];
const AWAITS: &[ThreadOp] = &[Lock(1), Await(4, 1), Unlock(1)];

#[test]
fn a_signal_reaches_a_thread_that_waits() {
    let all: &[ThreadOp] = &[Lock(1), Set(4), Signal(4, true), Unlock(1)];
    sound(program([&[AWAITS], &[SIGNALS]]), &[]);
    sound(program([&[AWAITS, AWAITS], &[all]]), &[]);
    sound(program([&[AWAITS], &[all], &[AWAITS]]), &[]);
    // One that nobody waits for, or that has a thread go on for nothing.
    let stray: &[ThreadOp] = &[Signal(4, false)];
    let overtakes = [ThreadSight::SignalOvertakes];
    sound(program([&[AWAITS, stray], &[SIGNALS]]), &overtakes);
    sound(program([&[AWAITS], &[all], &[stray]]), &overtakes);
}

#[test]
fn a_semaphore_lets_as_many_pass_as_it_has() {
    let acquires: &[ThreadOp] = &[Acquire(1), Post(1)];
    let posts: &[ThreadOp] = &[Post(1), Acquire(1), Post(1)];
    sound(program([&[acquires, acquires], &[posts, acquires]]), &[]);
    sound(program([&[acquires], &[posts], &[acquires]]), &[]);
}

#[test]
fn a_deadlock_is_found_where_there_is_one_alone() {
    let one: &[ThreadOp] = &[Lock(1), Lock(2), Unlock(2), Unlock(1)];
    let other: &[ThreadOp] = &[Lock(2), Lock(1), Unlock(1), Unlock(2)];
    let suspects = |model| ThreadModel {
        suspects: 3,
        ..model
    };
    sound(suspects(program([&[one], &[one]])), &[]);
    let first: &[ThreadOp] = &[Lock(1), Unlock(1)];
    let second: &[ThreadOp] = &[Lock(2), Unlock(2)];
    let both = program([&[first], &[one], &[second]]);
    sound(suspects(both), &[ThreadSight::Probe]);
    // Without a look it stays undetected, and with one it does not.
    finds(ThreadFault::Stuck, None, program([&[one], &[other]]));
    for suspects in [0, 3] {
        for words in [false, true] {
            let model = program([&[one], &[other]]);
            let model = match words {
                true => shares(model),
                false => model,
            };
            let model = ThreadModel {
                suspects,
                ..deadlocks(model)
            };
            sound(model, &[ThreadSight::Told]);
        }
    }
}

/// One thread is told that it waits for ever, whatever happens first.
fn deadlocks(model: ThreadModel) -> ThreadModel {
    let deadlocks = true;
    ThreadModel { deadlocks, ..model }
}

#[test]
fn a_deadlock_through_other_things_than_locks_is_found() {
    let told = &[ThreadSight::Told];
    let barrier: &[ThreadOp] = &[Barrier(1, 2)];
    let acquires: &[ThreadOp] = &[Acquire(2)];
    let awaits: &[ThreadOp] = &[Lock(1), Await(4, 1), Unlock(1)];
    sound(deadlocks(program([&[barrier], &[acquires]])), told);
    sound(deadlocks(program([&[awaits], &[acquires]])), told);
    sound(deadlocks(program([&[awaits, barrier], &[&[]]])), told);
    sound(deadlocks(program([&[acquires], &[&[]], &[awaits]])), told);
    // A thread ends with a lock that another one wants.
    let keeps: &[ThreadOp] = &[Lock(1)];
    let wants: &[ThreadOp] = &[Acquire(2), Lock(1), Unlock(1)];
    let posts: &[ThreadOp] = &[Lock(1), Post(2)];
    sound(deadlocks(program([&[&[], posts], &[wants]])), told);
    sound(deadlocks(shares(program([&[posts], &[wants, keeps]]))), &[]);
}

#[test]
fn no_deadlock_is_found_while_something_is_under_way() {
    let suspects = |model| ThreadModel {
        suspects: 3,
        ..model
    };
    let acquires: &[ThreadOp] = &[Acquire(1), Post(2)];
    let posts: &[ThreadOp] = &[Post(1), Acquire(2)];
    sound(
        suspects(program([&[acquires], &[posts]])),
        &[ThreadSight::Probe],
    );
    sound(
        suspects(program([&[AWAITS], &[SIGNALS]])),
        &[ThreadSight::Probe],
    );
    let twice: &[ThreadOp] = &[Barrier(1, 2), Barrier(1, 2)];
    sound(
        suspects(program([&[twice], &[twice]])),
        &[ThreadSight::Probe],
    );
}

#[test]
fn planted_bugs_of_the_wait_for_graph_are_caught() {
    let told = &[ThreadSight::Told];
    let one: &[ThreadOp] = &[Lock(1), Lock(2), Unlock(2), Unlock(1)];
    let other: &[ThreadOp] = &[Lock(2), Lock(1), Unlock(1), Unlock(2)];
    let barrier: &[ThreadOp] = &[Barrier(1, 3)];
    let acquires: &[ThreadOp] = &[Acquire(2)];
    let awaits: &[ThreadOp] = &[Lock(1), Await(4, 1), Unlock(1)];
    let forgotten = [
        (ThreadBug::NoEdgeOfLocks, [one, other]),
        (ThreadBug::NoEdgeOfBarriers, [barrier, barrier]),
        (ThreadBug::NoEdgeOfConditions, [awaits, awaits]),
        (ThreadBug::NoEdgeOfSemaphores, [acquires, acquires]),
    ];
    for (bug, [one, other]) in forgotten {
        let model = || deadlocks(program([&[one], &[other]]));
        sound(model(), told);
        finds(ThreadFault::Stuck, Some(bug), model());
    }
    let suspects = |model| ThreadModel {
        suspects: 3,
        ..model
    };
    // The first waits for the second. That waited for the third, before this waits for the first.
    let [two, three]: [&[ThreadOp]; 2] = [
        &[Lock(2), Lock(3), Unlock(3), Unlock(2)],
        &[Lock(3), Lock(1), Unlock(1), Unlock(3)],
    ];
    let in_turn = || ThreadModel {
        suspects: 1,
        room: 3,
        ..deadlocks(program([&[one], &[two], &[three]]))
    };
    sound(in_turn(), told);
    finds(
        ThreadFault::Deadlock,
        Some(ThreadBug::StaleEdges),
        in_turn(),
    );
    let posts: &[ThreadOp] = &[Post(2)];
    let in_flight = suspects(program([&[acquires], &[posts]]));
    finds(
        ThreadFault::Deadlock,
        Some(ThreadBug::ForgetTraffic),
        in_flight,
    );
}

#[test]
fn no_deadlock_is_found_where_locks_are_acquired_in_both_orders_at_different_times() {
    let one: &[ThreadOp] = &[Lock(1), Lock(2), Unlock(2), Unlock(1)];
    let chain: &[ThreadOp] = &[Lock(1), Unlock(1), Lock(2), Unlock(2)];
    let back: &[ThreadOp] = &[Lock(2), Unlock(2), Lock(1), Unlock(1)];
    let model = program([&[chain], &[back], &[one]]);
    let suspects = 1;
    sound(ThreadModel { suspects, ..model }, &[ThreadSight::Probe]);
}

/// Locks are words that all nodes have in common.
fn shares(model: ThreadModel) -> ThreadModel {
    ThreadModel {
        shares_locks: true,
        ..model
    }
}

#[test]
fn shared_locks_are_one_thread_s_and_conditions_release_them() {
    let tries: &[ThreadOp] = &[Try(1), Try(1)];
    sound(shares(program([&[TWICE, HOLDS], &[TWICE, tries]])), &[]);
    let all: &[ThreadOp] = &[Lock(1), Set(4), Signal(4, true), Unlock(1)];
    sound(shares(program([&[AWAITS], &[SIGNALS]])), &[]);
    sound(shares(program([&[AWAITS, AWAITS], &[all]])), &[]);
    sound(shares(program([&[AWAITS], &[all], &[AWAITS]])), &[]);
    let stray: &[ThreadOp] = &[Signal(4, false)];
    let overtakes = [ThreadSight::SignalOvertakes];
    sound(shares(program([&[AWAITS, stray], &[SIGNALS]])), &overtakes);
    let lost = || shares(program([&[AWAITS], &[SIGNALS]]));
    finds(ThreadFault::Stuck, Some(ThreadBug::LostSignal), lost());
    finds(ThreadFault::Stuck, Some(ThreadBug::EarlyRelease), lost());
}

#[test]
fn a_deadlock_of_shared_locks_is_found_where_there_is_one_alone() {
    let one: &[ThreadOp] = &[Lock(1), Lock(2), Unlock(2), Unlock(1)];
    let other: &[ThreadOp] = &[Lock(2), Lock(1), Unlock(1), Unlock(2)];
    let suspects = |model| ThreadModel {
        suspects: 3,
        ..shares(model)
    };
    sound(suspects(program([&[one], &[one]])), &[]);
    let chain: &[ThreadOp] = &[Lock(1), Unlock(1), Lock(2), Unlock(2)];
    let back: &[ThreadOp] = &[Lock(2), Unlock(2), Lock(1), Unlock(1)];
    sound(
        suspects(program([&[chain], &[back], &[one]])),
        &[ThreadSight::Probe],
    );
    let crossed = deadlocks(suspects(program([&[one], &[other]])));
    sound(crossed, &[ThreadSight::Told]);
}

#[test]
fn planted_bugs_are_caught() {
    let locks = || program([&[TWICE], &[TWICE], &[TWICE]]);
    finds(ThreadFault::NotAlone, Some(ThreadBug::TwoTokens), locks());
    finds(ThreadFault::Stuck, Some(ThreadBug::LostToken), locks());
    let barrier: &[ThreadOp] = &[Barrier(1, 3), Barrier(1, 3)];
    let barriers = || program([&[barrier], &[barrier], &[barrier]]);
    finds(
        ThreadFault::TooEarly,
        Some(ThreadBug::OneTooFew),
        barriers(),
    );
    finds(
        ThreadFault::TooEarly,
        Some(ThreadBug::CountedTwice),
        barriers(),
    );
    finds(ThreadFault::TooEarly, Some(ThreadBug::AllFirst), barriers());
    let conditions = || program([&[AWAITS], &[SIGNALS]]);
    finds(
        ThreadFault::Stuck,
        Some(ThreadBug::LostSignal),
        conditions(),
    );
    finds(
        ThreadFault::Stuck,
        Some(ThreadBug::EarlyRelease),
        conditions(),
    );
    let semaphore = program([&[&[Acquire(1)]], &[&[Post(1)]]]);
    finds(ThreadFault::Stuck, Some(ThreadBug::LostPost), semaphore);
}
