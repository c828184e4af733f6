//! Locks, and condition variables that belong to them.

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};
use std::sync::atomic::Ordering;

use dhole_heap::Share;
use dhole_model::CallSite;
use dhole_protocol::{ConditionId, Event, LockId};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::guards::{Guard, held};
use crate::holding::Holding;
use crate::sync_error::SyncError;
use crate::worker::Worker;

/// Numbers below this are the program's own.
const FIRST_MADE: u64 = 1 << 32;

/// Numbers that are made have the run's own number, counted from 1, above so many bits.
const MADE_BITS: u32 = 39;

impl Worker<'_> {
    /// A lock that no other call gives out. It can be stored in shared objects.
    pub fn new_lock(&mut self) -> Lock {
        Lock(numbered(self.new_number()))
    }

    /// A condition variable of `lock` that no other call gives out.
    pub fn new_condvar(&mut self, lock: Lock) -> Condvar {
        Condvar(condition(lock, self.new_number()))
    }

    /// A number that no other call gives out; modulo the number of nodes it is this node.
    pub(crate) fn new_number(&mut self) -> u64 {
        let made = self.link.node.numbers_made.fetch_add(1, Ordering::Relaxed);
        let number = made * self.nodes() as u64 + self.node().index() as u64;
        // So that the number modulo the nodes is this node, whatever number they begin with.
        let first = (self.link.node.cluster.number() + 1) << MADE_BITS;
        first.next_multiple_of(self.nodes() as u64) + number
    }

    /// Tests that something with this number was made in this run, or has a number of the
    /// program's own.
    pub(crate) fn check_made(
        &self,
        what: &'static str,
        number: u64,
        site: CallSite,
    ) -> Result<(), SyncError> {
        let run = self.link.node.cluster.number() + 1;
        match number < FIRST_MADE || number >> MADE_BITS == run {
            true => Ok(()),
            false => Err(SyncError::OtherRun {
                what,
                node: self.node(),
                site,
            }),
        }
    }
}

/// A number as a word that is never zero.
pub(crate) const fn numbered(number: u64) -> NonZeroU64 {
    NonZeroU64::MIN.saturating_add(number)
}

/// A lock: the same on all nodes, by its number. What was written before a release is visible
/// after the next acquire of the same lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Share, Serialize, Deserialize)]
#[share(crate = "dhole_heap", nullable)]
#[repr(transparent)]
pub struct Lock(NonZeroU64);

impl Lock {
    /// The lock of this number. Its manager is node `number` modulo the number of nodes.
    pub const fn numbered(number: u32) -> Lock {
        Lock(numbered(number as u64))
    }

    fn id(self) -> LockId {
        LockId(self.0.get() - 1)
    }

    /// Waits for the lock. Free of messages when this node held it last.
    ///
    /// # Errors
    /// [`SyncError::Protocol`] when this node holds it already, [`SyncError::Deadlock`] when it
    /// will never be released, [`SyncError::OtherRun`] when it was made in another run,
    /// [`SyncError::Ended`] when another node fails meanwhile.
    #[track_caller]
    pub fn acquire(self, w: &mut Worker<'_>) -> Result<Held, SyncError> {
        let (lock, site) = (self.id(), CallSite::caller());
        w.check_made("lock", lock.0, site)?;
        w.acquire(Event::Acquire { lock, site }, site)?;
        Ok(Held(Guard::new(w, Holding::Lock(lock), site)))
    }

    /// Runs `f` with the lock held.
    ///
    /// # Errors
    /// As [`acquire`](Lock::acquire), or the error of `f`; the lock is released either way.
    #[track_caller]
    pub fn with<R>(
        self,
        w: &mut Worker<'_>,
        f: impl FnOnce(&mut Worker<'_>) -> Result<R>,
    ) -> Result<R> {
        let Held(guard) = self.acquire(w)?;
        guard.during(w, CallSite::caller(), f)
    }
}

impl Worker<'_> {
    /// Waits for something that is counted as a lock.
    pub(crate) fn acquire(&mut self, event: Event, site: CallSite) -> Result<(), SyncError> {
        let called = self.exclusive(site, |link, call| {
            let remote = link.and_wait(call, event)?;
            let counted = &mut call.split().1.counting.all;
            match remote {
                true => counted.lock_acquires_remote += 1,
                false => counted.lock_acquires_local += 1,
            }
            Ok(())
        });
        called.map_err(|failure| self.link.sync_error(*failure, site))
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lock").field(&self.id().0).finish()
    }
}

held! {
    /// A lock that this node holds. It does not borrow the worker, so locks can be taken hand over
    /// hand. Dropped unreleased, it is released at the node's next call that synchronises or
    /// writes, and the run's report says so.
    Held
}

/// A condition variable: it belongs to a [`Lock`], under which nodes wait until what they need is
/// so, and wake each other when they have changed it. Waits and notifications cost no message
/// until a notification wakes a node: the lock carries the list of waiting nodes. A woken node
/// may find that another was faster, so wait in a loop.
///
/// ```
/// # use dhole_node::{Condvar, Lock, Result, Worker};
/// # fn example(w: &mut Worker<'_>) -> Result<()> {
/// let lock = Lock::numbered(1);
/// let ready = Condvar::numbered(lock, 0);
/// let flag = w.once(|w| Ok(w.alloc(false)))?;
/// let mut held = lock.acquire(w)?;
/// if w.node().index() == 0 {
///     *flag.get_mut(w) = true;
///     ready.notify_all(w)?;
/// }
/// while !flag.read(w) {
///     held = ready.wait(w, held)?;
/// }
/// held.release(w)?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Share, Serialize, Deserialize)]
#[share(crate = "dhole_heap", nullable)]
#[repr(transparent)]
pub struct Condvar(NonZeroU128);

/// The lock's word, and above it the condition's number.
const fn condition(lock: Lock, number: u64) -> NonZeroU128 {
    let lock = NonZeroU128::MIN.saturating_add(lock.0.get() as u128 - 1);
    lock.saturating_add((number as u128) << 64)
}

impl Condvar {
    /// The condition variable of this number among those of `lock`.
    pub const fn numbered(lock: Lock, number: u32) -> Condvar {
        Condvar(condition(lock, number as u64))
    }

    fn id(self) -> ConditionId {
        let word = self.0.get();
        ConditionId {
            lock: LockId(word as u64 - 1),
            number: (word >> 64) as u64,
        }
    }

    /// Releases the lock and waits, in one step: a notification by the next holder of the lock is
    /// not lost. Returns with the lock held again; what the notifier wrote before it released the
    /// lock is visible.
    ///
    /// # Errors
    /// [`SyncError::OtherLock`] when `held` is not the lock that the condition belongs to,
    /// [`SyncError::NotHere`] when another worker acquired it, [`SyncError::Deadlock`] when all
    /// nodes wait and none can wake another.
    #[track_caller]
    pub fn wait(self, w: &mut Worker<'_>, held: Held) -> Result<Held, SyncError> {
        let (condition, site) = (self.id(), CallSite::caller());
        let Held(guard) = held;
        w.check_made("condition", condition.number, site)?;
        if guard.holding != Holding::Lock(condition.lock) {
            return Err(SyncError::OtherLock {
                condition,
                node: w.node(),
                site,
                holding: guard.holding,
                acquired: guard.site,
            });
        }
        let holding = guard.let_go(w, site)?;
        w.acquire(Event::WaitOn { condition, site }, site)?;
        Ok(Held(Guard::new(w, holding, site)))
    }

    /// Wakes the node that has waited longest, if any waits.
    ///
    /// # Errors
    /// [`SyncError::Protocol`] when this node does not hold the condition's lock.
    #[track_caller]
    pub fn notify_one(self, w: &mut Worker<'_>) -> Result<(), SyncError> {
        self.notify(w, false, CallSite::caller())
    }

    /// Wakes all nodes that wait.
    ///
    /// # Errors
    /// As [`notify_one`](Condvar::notify_one).
    #[track_caller]
    pub fn notify_all(self, w: &mut Worker<'_>) -> Result<(), SyncError> {
        self.notify(w, true, CallSite::caller())
    }

    fn notify(self, w: &mut Worker<'_>, all: bool, site: CallSite) -> Result<(), SyncError> {
        w.check_made("condition", self.id().number, site)?;
        let event = Event::Notify {
            condition: self.id(),
            all,
            site,
        };
        w.local(Some(event), site)
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Condvar({})", self.id())
    }
}
