//! Litmus tests over ten thousand seeds of the simulator, in which messages overtake each other.
//! They have a program of their own: ten times the seeds need half the ids of a process.

mod exclusive;
mod family;

use conformance::litmus::{
    CAUSALITY, COHERENCE, Guard, IRIW, LOAD_BUFFERING, Litmus, MESSAGE_PASSING, ONE_WAY,
    OVERWRITING, STORE_BUFFERING, Tally,
};
use conformance::{Detected, Meeting, OnThreads, Platform, Remote, Simulated, seeds};
use dhole::{Barriers, Detector};

const SEEDS: u64 = 10_000;

fn tally(litmus: Litmus, guard: Guard, share: u64) -> Tally {
    litmus.tally(&Simulated::default(), guard, seeds(0..SEEDS / share))
}

#[test]
fn message_passing_works_under_locks() {
    for guard in [Guard::Locks, Guard::OneLock] {
        let tally = tally(MESSAGE_PASSING, guard, 2);
        tally.never("the flag without the data", |r| r == [1, 0]);
        tally.sometimes("both", |r| r == [1, 1]);
        tally.sometimes("neither", |r| r == [0, 0]);
        tally.sometimes("the data before the flag", |r| r == [0, 1]);
    }
}

#[test]
fn message_passing_and_two_stores_work_under_read_write_locks_and_permits() {
    for guard in [Guard::OneRwLock, Guard::OnePermit] {
        let passed = tally(MESSAGE_PASSING, guard, 2);
        passed.never("the flag without the data", |r| r == [1, 0]);
        passed.sometimes("both", |r| r == [1, 1]);
        passed.sometimes("neither", |r| r == [0, 0]);
        let stored = tally(STORE_BUFFERING, guard, 2);
        stored.never("none is seen", |r| r == [0, 0]);
        stored.sometimes("both are seen", |r| r == [1, 1]);
    }
}

#[test]
fn message_passing_without_locks_may_show_the_flag_without_the_data() {
    let tally = tally(MESSAGE_PASSING, Guard::Nothing, 1);
    tally.sometimes("the flag without the data", |r| r == [1, 0]);
    tally.sometimes("neither", |r| r == [0, 0]);
    tally.sometimes("both", |r| r == [1, 1]);
}

#[test]
fn of_two_stores_under_locks_or_before_a_barrier_one_is_seen() {
    for guard in [Guard::Locks, Guard::OneLock] {
        let tally = tally(STORE_BUFFERING, guard, 3);
        tally.never("none is seen", |r| r == [0, 0]);
        tally.sometimes("both are seen", |r| r == [1, 1]);
        tally.sometimes("one is seen", |r| r == [0, 1]);
    }
    for meeting in [Guard::Barrier, Guard::AllReduce] {
        let tally = tally(STORE_BUFFERING, meeting, 3);
        tally.never("one is not seen", |r| r != [1, 1]);
    }
    let central = Meeting(Simulated::default(), Barriers::Central);
    let tally = STORE_BUFFERING.tally(&central, Guard::Barrier, seeds(0..SEEDS / 3));
    tally.never("one is not seen", |r| r != [1, 1]);
}

#[test]
fn what_was_written_before_a_collective_is_seen_by_who_is_told() {
    let told = tally(ONE_WAY, Guard::Nothing, 5);
    told.never("something older", |r| r.iter().any(|seen| *seen < 2));
    let threads = ONE_WAY.tally(&OnThreads, Guard::Nothing, seeds(0..200));
    threads.never("something older", |r| r.iter().any(|seen| *seen < 2));
    for guard in [Guard::Barrier, Guard::AllReduce] {
        let passed = MESSAGE_PASSING.tally(&OnThreads, guard, seeds(0..200));
        passed.never("the data is not seen", |r| r[1] != 1);
    }
}

#[test]
fn two_stores_without_locks_may_both_be_missed() {
    let tally = tally(STORE_BUFFERING, Guard::Nothing, 1);
    tally.sometimes("none is seen", |r| r == [0, 0]);
    tally.sometimes("one is seen", |r| r == [1, 0]);
}

#[test]
fn nothing_is_read_before_it_is_written() {
    for guard in [Guard::Nothing, Guard::Locks] {
        let tally = tally(LOAD_BUFFERING, guard, 2);
        tally.never("out of thin air", |r| r == [1, 1]);
        tally.sometimes("one is read", |r| r == [0, 1]);
    }
}

#[test]
fn readers_under_locks_agree_on_the_order_of_two_writes() {
    for guard in [Guard::Locks, Guard::OneLock] {
        let tally = tally(IRIW, guard, 2);
        tally.never("they disagree", |r| r == [1, 0, 1, 0]);
        tally.sometimes("one sees x first", |r| r[..2] == [1, 0]);
        tally.sometimes("one sees y first", |r| r[2..] == [1, 0]);
    }
}

#[test]
fn readers_without_locks_may_disagree_on_the_order_of_two_writes() {
    let tally = tally(IRIW, Guard::Nothing, 1);
    tally.sometimes("they disagree", |r| r == [1, 0, 1, 0]);
}

#[test]
fn a_reader_never_goes_back() {
    for guard in [Guard::Nothing, Guard::Locks] {
        let tally = tally(COHERENCE, guard, 2);
        tally.never("it goes back", |r| r[0] > r[1] || r[1] > r[2]);
        tally.sometimes("it sees nothing", |r| r == [0, 0, 0]);
        tally.sometimes("it sees the last", |r| r == [2, 2, 2]);
    }
}

#[test]
fn of_writes_of_which_one_has_seen_the_other_the_later_one_wins() {
    let tally = tally(OVERWRITING, Guard::Nothing, 2);
    tally.never("two winners", |r| r[1] != r[2]);
    tally.never("what was written over wins", |r| r[0] > 0 && r[0] == r[1]);
    tally.sometimes("a later write wins", |r| r[0] > 0 && r[1] == 10);
    tally.sometimes("a racing write wins", |r| r[1] == 3);
}

#[test]
fn a_reader_under_locks_sees_each_write_in_turn() {
    let tally = tally(COHERENCE, Guard::Locks, 2);
    tally.sometimes("it sees each", |r| r[0] == 0 && r[2] == 2);
    tally.sometimes("it sees the first", |r| r.contains(&1));
}

#[test]
fn what_a_reader_saw_before_its_own_write_is_seen_by_who_sees_that() {
    for guard in [Guard::Locks, Guard::OneLock] {
        let tally = tally(CAUSALITY, guard, 2);
        tally.never("the effect without the cause", |r| r == [1, 1, 0]);
        tally.sometimes("both", |r| r == [1, 1, 1]);
    }
}

#[test]
fn without_locks_an_effect_may_be_seen_without_its_cause() {
    let tally = tally(CAUSALITY, Guard::Nothing, 1);
    tally.sometimes("the effect without the cause", |r| r == [1, 1, 0]);
}

#[test]
fn on_threads_nothing_happens_under_locks_that_must_not() {
    let tally = |litmus: Litmus| litmus.tally(&OnThreads, Guard::Locks, seeds(0..500));
    tally(MESSAGE_PASSING).never("the flag without the data", |r| r == [1, 0]);
    tally(STORE_BUFFERING).never("none is seen", |r| r == [0, 0]);
    tally(LOAD_BUFFERING).never("out of thin air", |r| r == [1, 1]);
    tally(IRIW).never("they disagree", |r| r == [1, 0, 1, 0]);
    tally(COHERENCE).never("it goes back", |r| r[0] > r[1] || r[1] > r[2]);
    tally(CAUSALITY).never("the effect without the cause", |r| r == [1, 1, 0]);
}

/// What must not be seen is not, where objects are read in the memory of other nodes, and what
/// may be is.
fn with_remote_memory(many: u64) {
    let remote = Remote::default();
    let tally = |litmus: Litmus, guard| litmus.tally(&remote, guard, seeds(0..many));
    for guard in [Guard::Locks, Guard::OneRwLock] {
        tally(MESSAGE_PASSING, guard).never("the flag without the data", |r| r == [1, 0]);
        tally(STORE_BUFFERING, guard).never("none is seen", |r| r == [0, 0]);
        tally(IRIW, guard).never("they disagree", |r| r == [1, 0, 1, 0]);
        tally(COHERENCE, guard).never("it goes back", |r| r[0] > r[1] || r[1] > r[2]);
        tally(CAUSALITY, guard).never("the effect without the cause", |r| r == [1, 1, 0]);
    }
    let passed = tally(STORE_BUFFERING, Guard::Barrier);
    passed.never("one is not seen", |r| r != [1, 1]);
    tally(LOAD_BUFFERING, Guard::Nothing).never("out of thin air", |r| r == [1, 1]);
    let read = tally(COHERENCE, Guard::Nothing);
    read.never("it goes back", |r| r[0] > r[1] || r[1] > r[2]);
    read.sometimes("it sees the last", |r| r == [2, 2, 2]);
    let won = tally(OVERWRITING, Guard::Nothing);
    won.never("two winners", |r| r[1] != r[2]);
    let passed = tally(MESSAGE_PASSING, Guard::Nothing);
    passed.sometimes("the flag without the data", |r| r == [1, 0]);
    passed.sometimes("both", |r| r == [1, 1]);
}

#[test]
fn what_is_read_in_the_memory_of_others_is_as_consistent() {
    with_remote_memory(300);
}

/// As above, where both cells are elements of one block.
fn elements_with_remote_memory(many: u64) {
    let remote = Remote::default();
    let platforms: [(&dyn Platform, u64); 2] = [(&remote, many), (&OnThreads, many / 3)];
    for (platform, many) in platforms {
        let tally =
            |litmus: Litmus, guard| litmus.tally_of_elements(platform, guard, seeds(0..many));
        for guard in [Guard::Locks, Guard::OneRwLock] {
            tally(MESSAGE_PASSING, guard).never("the flag without the data", |r| r == [1, 0]);
            tally(STORE_BUFFERING, guard).never("none is seen", |r| r == [0, 0]);
            tally(IRIW, guard).never("they disagree", |r| r == [1, 0, 1, 0]);
            tally(COHERENCE, guard).never("it goes back", |r| r[0] > r[1] || r[1] > r[2]);
            tally(CAUSALITY, guard).never("the effect without the cause", |r| r == [1, 1, 0]);
        }
        let passed = tally(STORE_BUFFERING, Guard::Barrier);
        passed.never("one is not seen", |r| r != [1, 1]);
        tally(LOAD_BUFFERING, Guard::Nothing).never("out of thin air", |r| r == [1, 1]);
        let read = tally(COHERENCE, Guard::Nothing);
        read.never("it goes back", |r| r[0] > r[1] || r[1] > r[2]);
        let won = tally(OVERWRITING, Guard::Nothing);
        won.never("two winners", |r| r[1] != r[2]);
    }
}

#[test]
fn elements_that_are_read_in_the_memory_of_others_are_as_consistent() {
    elements_with_remote_memory(300);
}

#[test]
#[ignore = "a hundred thousand seeds take minutes; see docs/testing.md"]
fn elements_read_in_the_memory_of_others_are_as_consistent_over_a_hundred_thousand_seeds() {
    elements_with_remote_memory(100_000);
}

#[test]
#[ignore = "a hundred thousand seeds take minutes; see docs/testing.md"]
fn what_is_read_in_the_memory_of_others_is_as_consistent_over_a_hundred_thousand_seeds() {
    with_remote_memory(100_000);
}

#[test]
fn under_the_detector_vm_nothing_happens_that_must_not() {
    let threads = Detected(OnThreads, Detector::Vm);
    let simulated = Detected(Simulated::default(), Detector::Vm);
    let platforms: [(&dyn Platform, u64); 2] = [(&threads, 100), (&simulated, 1000)];
    for (platform, many) in platforms {
        let tally = |litmus: Litmus, guard| litmus.tally(platform, guard, seeds(0..many));
        for guard in [Guard::Locks, Guard::OneRwLock] {
            tally(MESSAGE_PASSING, guard).never("the flag without the data", |r| r == [1, 0]);
            tally(STORE_BUFFERING, guard).never("none is seen", |r| r == [0, 0]);
            tally(IRIW, guard).never("they disagree", |r| r == [1, 0, 1, 0]);
            tally(CAUSALITY, guard).never("the effect without the cause", |r| r == [1, 1, 0]);
        }
        tally(LOAD_BUFFERING, Guard::Nothing).never("out of thin air", |r| r == [1, 1]);
        let read = tally(COHERENCE, Guard::Nothing);
        read.never("it goes back", |r| r[0] > r[1] || r[1] > r[2]);
    }
    let passed = MESSAGE_PASSING.tally(&simulated, Guard::Nothing, seeds(0..1000));
    passed.sometimes("the flag without the data", |r| r == [1, 0]);
    passed.sometimes("both", |r| r == [1, 1]);
}
