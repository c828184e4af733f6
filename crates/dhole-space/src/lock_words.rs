//! Locks by 64-bit keys, in memory that several processes map: each a word, which a thread takes
//! and releases by an atomic operation, and on which it sleeps in the system (a futex).
//!
//! A lock lies in a *slot*: its key, the thread that holds it, and its state. A slot is found by
//! its key, in the key's bucket or, where that was full once, in one of a few others. A key gets a
//! slot when it is first used. A slot whose lock is free may become another key's.
//!
//! Three rules make that safe:
//!
//! 1. *The key of a slot changes only while the thread that changes it holds the slot*, as it would
//!    hold the lock. So a thread that has taken a slot, and then finds its own key there, holds its
//!    lock; otherwise it releases the slot and looks for another one.
//! 2. *Keys are added one at a time*: by the thread that has the word `adding`. So no key has two
//!    slots.
//! 3. *A thread that has slept takes the lock as one for which others sleep*, and a release of such
//!    a lock wakes one thread. One that is woken and finds another key in its slot wakes all.
//!
//! A process that dies in the middle leaves a lock held, or `adding`. A thread that waits for
//! either sleeps for a limited time, and its caller looks whether the run has ended.

use std::time::Duration;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use futex::Sleepers;

#[cfg(not(loom))]
mod futex;
#[cfg(loom)]
#[path = "lock_words/loom_futex.rs"]
mod futex;
#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

/// Slots of a bucket.
pub(crate) const BUCKET: usize = if cfg!(loom) { 1 } else { 16 };
/// Buckets that follow each other for keys of one page: locks that lie together are found together.
const BUCKETS_OF_PAGE: u64 = 32;
/// Further buckets of a key whose own was full.
const MOST_SPILLED: u32 = 3;

/// The slot has no key yet.
const UNUSED: u32 = 0;
const FREE: u32 = 1;
const HELD: u32 = 2;
/// It is held, and threads may sleep on it.
const CONTENDED: u32 = 3;

/// A lock, or room for one. Zeros are an unused slot.
#[repr(C, align(32))]
#[derive(Default)]
pub(crate) struct Slot {
    key: AtomicU64,
    /// The thread that holds it, and 1; or 0.
    owner: AtomicU64,
    state: AtomicU32,
    /// Of the first slot of a bucket: how many further buckets its keys may be in.
    spilled: AtomicU32,
    sleepers: Sleepers,
}

/// What comes of an attempt to take a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockAttempt {
    /// The thread has it.
    Taken,
    /// The thread has it already.
    Own,
    /// Another thread has it.
    Busy,
    /// Another thread adds a key. The lock may be free.
    Adding,
    /// As many locks are held as there is room for.
    Full,
}

/// Locks, in slots that `S` keeps. The first slot is no lock: its state is the word `adding`.
#[derive(Debug)]
pub(crate) struct LockWords<S>(S);

impl<S: AsRef<[Slot]>> LockWords<S> {
    /// Locks in these slots: one, and as many whole buckets as there are.
    ///
    /// # Panics
    /// If that is none.
    pub(crate) fn new(slots: S) -> LockWords<S> {
        assert!(slots.as_ref().len() > BUCKET);
        LockWords(slots)
    }

    /// The bucket of a key, or one of its further buckets.
    fn bucket(&self, key: u64, which: u32) -> &[Slot] {
        let slots = &self.0.as_ref()[1..];
        let buckets = (slots.len() / BUCKET) as u64;
        let hash = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let bucket = match which {
            0 => hash(key >> 12) * BUCKETS_OF_PAGE + (key >> 7) % BUCKETS_OF_PAGE,
            which => hash(hash(key ^ key >> 32).wrapping_add(which.into())),
        };
        let first = (bucket % buckets) as usize * BUCKET;
        &slots[first..first + BUCKET]
    }

    /// The slots of a bucket, from the one on in which a key is looked for first.
    fn from_first(bucket: &[Slot], key: u64) -> impl Iterator<Item = &Slot> {
        let first = (key ^ key >> 3) as usize % BUCKET;
        bucket[first..].iter().chain(&bucket[..first])
    }

    /// The slot of a key, if it has one. It may be another key's in the next moment, unless the
    /// caller holds it.
    fn find(&self, key: u64) -> Option<&Slot> {
        let is_it = |slot: &&Slot| {
            slot.key.load(Ordering::Relaxed) == key && slot.state.load(Ordering::Acquire) != UNUSED
        };
        let own = self.bucket(key, 0);
        let found = Self::from_first(own, key).find(is_it);
        found.or_else(|| {
            let spilled = own[0].spilled.load(Ordering::Acquire);
            let further = 1..=spilled.min(MOST_SPILLED);
            let mut further = further.map(|which| self.bucket(key, which));
            further.find_map(|bucket| Self::from_first(bucket, key).find(is_it))
        })
    }

    /// Whether a thread may take a lock, as far as it can be seen: for threads that spin.
    #[cfg(not(loom))]
    pub(crate) fn may_take(&self, key: u64) -> bool {
        let slot = self.find(key);
        slot.is_none_or(|slot| slot.state.load(Ordering::Relaxed) == FREE)
    }

    /// A thread takes a lock if it is free. `has_slept` says that it has [slept](LockWords::sleep)
    /// for it.
    pub(crate) fn take(&self, key: u64, thread: u64, has_slept: bool) -> LockAttempt {
        let taken = if has_slept { CONTENDED } else { HELD };
        loop {
            let Some(slot) = self.find(key) else {
                match self.add(key, thread, taken) {
                    Some(attempt) => return attempt,
                    None => continue,
                }
            };
            let took =
                slot.state
                    .compare_exchange(FREE, taken, Ordering::Acquire, Ordering::Relaxed);
            if took.is_err() {
                // This thread's number is there only while it holds the slot, which keeps its key.
                let is_own = slot.owner.load(Ordering::Relaxed) == named(thread);
                return if is_own {
                    LockAttempt::Own
                } else {
                    LockAttempt::Busy
                };
            }
            if slot.key.load(Ordering::Relaxed) == key {
                slot.owner.store(named(thread), Ordering::Relaxed);
                return LockAttempt::Taken;
            }
            // It became another key's before it was taken.
            give_back(slot, true);
        }
    }

    /// Adds a key, whose lock the thread has then; `None` where another thread has added it.
    fn add(&self, key: u64, thread: u64, taken: u32) -> Option<LockAttempt> {
        let adding = &self.0.as_ref()[0].state;
        if adding
            .compare_exchange(UNUSED, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            return Some(LockAttempt::Adding);
        }
        let attempt = match self.find(key) {
            Some(_) => None,
            None => Some(self.add_new(key, thread, taken)),
        };
        adding.store(UNUSED, Ordering::Release);
        attempt
    }

    /// Adds a key that has no slot, by the thread that has `adding`.
    fn add_new(&self, key: u64, thread: u64, taken: u32) -> LockAttempt {
        for which in 0..=MOST_SPILLED {
            let spilled = &self.bucket(key, 0)[0].spilled;
            if spilled.load(Ordering::Relaxed) < which {
                spilled.store(which, Ordering::Release);
            }
            let bucket = self.bucket(key, which);
            let from_first = || Self::from_first(bucket, key);
            let is_unused = |slot: &&Slot| slot.state.load(Ordering::Relaxed) == UNUSED;
            if let Some(slot) = from_first().find(is_unused) {
                // Nobody else takes it: it is in use once its state says so.
                slot.key.store(key, Ordering::Relaxed);
                slot.owner.store(named(thread), Ordering::Relaxed);
                slot.state.store(taken, Ordering::Release);
                return LockAttempt::Taken;
            }
            let takes = |slot: &&Slot| {
                let took =
                    slot.state
                        .compare_exchange(FREE, taken, Ordering::Acquire, Ordering::Relaxed);
                took.is_ok()
            };
            if let Some(slot) = from_first().find(takes) {
                slot.key.store(key, Ordering::Relaxed);
                slot.owner.store(named(thread), Ordering::Relaxed);
                return LockAttempt::Taken;
            }
        }
        LockAttempt::Full
    }

    /// A thread releases a lock; whether it had it.
    pub(crate) fn release(&self, key: u64, thread: u64) -> bool {
        let slot = self.find(key);
        let slot = slot.filter(|slot| slot.owner.load(Ordering::Relaxed) == named(thread));
        let Some(slot) = slot else {
            return false;
        };
        slot.owner.store(0, Ordering::Relaxed);
        give_back(slot, false);
        true
    }

    /// The thread that holds a lock.
    pub(crate) fn holder(&self, key: u64) -> Option<u64> {
        let slot = self.find(key)?;
        let owner = slot.owner.load(Ordering::Acquire);
        let is_still = slot.key.load(Ordering::Relaxed) == key;
        owner.checked_sub(1).filter(|_| is_still)
    }

    /// Sleeps until a lock may be free, and at most so long. It returns sooner for no reason, too.
    pub(crate) fn sleep(&self, key: u64, at_most: Duration) {
        let Some(slot) = self.find(key) else {
            return;
        };
        let marks =
            slot.state
                .compare_exchange(HELD, CONTENDED, Ordering::Relaxed, Ordering::Relaxed);
        let is_marked = matches!(marks, Ok(_) | Err(CONTENDED));
        if is_marked && slot.key.load(Ordering::Relaxed) == key {
            slot.sleepers.sleep(&slot.state, CONTENDED, at_most);
        }
        if slot.key.load(Ordering::Relaxed) != key {
            slot.sleepers.wake_all(&slot.state);
        }
    }

    /// A thread that has [slept](LockWords::sleep) for a lock does not want it any more: another
    /// one is woken in its place.
    #[cfg(not(loom))]
    pub(crate) fn leave(&self, key: u64) {
        if let Some(slot) = self.find(key) {
            slot.sleepers.wake_one(&slot.state);
        }
    }
}

/// How a thread is named as the owner: 0 is none.
fn named(thread: u64) -> u64 {
    thread.wrapping_add(1)
}

/// Releases a slot that the caller has taken.
fn give_back(slot: &Slot, to_all: bool) {
    if slot.state.swap(FREE, Ordering::Release) == CONTENDED {
        match to_all {
            true => slot.sleepers.wake_all(&slot.state),
            false => slot.sleepers.wake_one(&slot.state),
        }
    }
}
