//! Every interleaving of threads that take locks, under loom. A table has one slot for a key, so a
//! key that is added takes the slot of another one.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::*;

/// Locks in so many slots, and a number that each lock guards.
struct Guarded {
    locks: LockWords<Vec<Slot>>,
    numbers: [UnsafeCell<u32>; 2],
}

impl Guarded {
    fn new(slots: usize) -> Arc<Guarded> {
        let slots = (0..=slots).map(|_| Slot::default()).collect();
        Arc::new(Guarded {
            locks: LockWords::new(slots),
            numbers: Default::default(),
        })
    }

    /// Takes a lock, adds to its number, and releases it.
    fn add_one(&self, key: u64, thread: u64) {
        let mut has_slept = false;
        loop {
            match self.locks.take(key, thread, has_slept) {
                LockAttempt::Taken => break,
                LockAttempt::Busy => {
                    self.locks.sleep(key, Duration::MAX);
                    has_slept = true;
                    thread::yield_now();
                }
                LockAttempt::Adding | LockAttempt::Full => thread::yield_now(),
                LockAttempt::Own => panic!("thread {thread} has lock {key}"),
            }
        }
        // loom finds out whether two threads are here at once.
        self.numbers[key as usize].with_mut(|number| {
            // SAFETY: the lock is this thread's.
            unsafe { *number += 1 };
        });
        assert_eq!(self.locks.holder(key), Some(thread));
        assert!(self.locks.release(key, thread));
    }

    fn sum(&self) -> u32 {
        // SAFETY: all threads have ended.
        let number = |of: &UnsafeCell<u32>| of.with(|number| unsafe { *number });
        self.numbers.iter().map(number).sum()
    }
}

/// Every interleaving with so many preemptions.
fn check(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 20_000;
    model.check(run);
}

/// Threads add to numbers, each under these locks in turn.
fn adds(slots: usize, threads: &'static [&'static [u64]], preemptions: usize) {
    check(preemptions, move || {
        let shared = Guarded::new(slots);
        let runs = threads.iter().enumerate().skip(1).map(|(thread, keys)| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                keys.iter()
                    .for_each(|key| shared.add_one(*key, thread as u64));
            })
        });
        let runs: Vec<_> = runs.collect();
        threads[0].iter().for_each(|key| shared.add_one(*key, 0));
        runs.into_iter().for_each(|run| run.join().unwrap());
        let all: usize = threads.iter().map(|keys| keys.len()).sum();
        assert_eq!(shared.sum() as usize, all);
    });
}

#[test]
fn a_lock_is_one_thread_s_and_no_wake_is_lost() {
    adds(1, &[&[0, 0], &[0]], 3);
    adds(1, &[&[0], &[0], &[0]], 1);
}

/// A thread has lock 0 when others want these locks. It releases it, and takes some more.
fn all_are_woken(keys: [u64; 2], more: &'static [u64], preemptions: usize) {
    check(preemptions, move || {
        let shared = Guarded::new(1);
        assert_eq!(shared.locks.take(0, 0, false), LockAttempt::Taken);
        let runs = [1, 2].map(|thread: usize| {
            let shared = Arc::clone(&shared);
            let key = keys[thread - 1];
            thread::spawn(move || shared.add_one(key, thread as u64))
        });
        assert!(shared.locks.release(0, 0));
        more.iter().for_each(|key| shared.add_one(*key, 0));
        runs.into_iter().for_each(|run| run.join().unwrap());
        assert_eq!(shared.sum() as usize, 2 + more.len());
    });
}

#[test]
fn a_thread_that_is_woken_wakes_the_next() {
    all_are_woken([0, 0], &[], 2);
    all_are_woken([0, 1], &[], 2);
    all_are_woken([0, 0], &[1], 1);
}

#[test]
fn a_slot_that_becomes_another_key_s_is_one_thread_s_too() {
    adds(1, &[&[0], &[1]], 3);
    adds(1, &[&[0, 1], &[0]], 2);
    adds(1, &[&[0], &[0], &[1]], 1);
}
