//! Read-write locks and semaphores.

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};

use dhole_heap::Share;
use dhole_model::CallSite;
use dhole_protocol::{Event, RwLockId, SemaphoreId, SyncObject};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::guards::{Guard, held};
use crate::holding::Holding;
use crate::lock::numbered;
use crate::sync_error::SyncError;
use crate::worker::Worker;

impl Worker<'_> {
    /// A read-write lock that no other call gives out. It can be stored in shared objects.
    pub fn new_rw_lock(&mut self) -> RwLock {
        RwLock(numbered(self.new_number()))
    }

    /// A semaphore that no other call gives out, with so many permits. It can be stored in shared
    /// objects.
    pub fn new_semaphore(&mut self, permits: u32) -> Semaphore {
        Semaphore(semaphore(self.new_number(), permits))
    }
}

/// A read-write lock: many nodes read under it at once, or one writes. Nodes get it in the order
/// in which they ask, so neither readers nor writers starve. What was written under it is visible
/// to the nodes that get it later; what a reader wrote elsewhere, to the next writer.
///
/// It has a condition, which its manager keeps: a node that holds the lock to write
/// [waits](RwLock::wait) until another one has changed what it needs and
/// [notifies](RwLock::notify_one) it. To wait takes one message, which releases the lock, and one
/// that brings it back. To notify takes none: the notification goes with the release. A woken node
/// may find that another was faster, so wait in a loop.
///
/// ```
/// # use dhole_node::{Result, RwLock, Worker};
/// # fn example(w: &mut Worker<'_>) -> Result<()> {
/// let pair = w.once(|w| Ok(w.alloc([0_u64; 2])))?;
/// let lock = RwLock::numbered(1);
/// lock.with_write(w, |w| {
///     pair.get_mut(w)[0] += 1;
///     pair.get_mut(w)[1] += 1;
///     Ok(())
/// })?;
/// let [a, b] = lock.with_read(w, |w| Ok(pair.read(w)))?;
/// assert_eq!(a, b);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Share, Serialize, Deserialize)]
#[share(crate = "dhole_heap", nullable)]
#[repr(transparent)]
pub struct RwLock(NonZeroU64);

impl RwLock {
    /// The read-write lock of this number. Its manager is node `number` modulo the number of
    /// nodes.
    pub const fn numbered(number: u32) -> RwLock {
        RwLock(numbered(number as u64))
    }

    fn id(self) -> RwLockId {
        RwLockId(self.0.get() - 1)
    }

    /// Waits for the lock to read: until no node holds it to write, and no earlier request to write
    /// waits.
    ///
    /// # Errors
    /// [`SyncError::Protocol`] when this node holds the lock, to read or to write,
    /// [`SyncError::Deadlock`] when it will never be free, [`SyncError::Ended`] when another node
    /// fails meanwhile.
    #[track_caller]
    pub fn read(self, w: &mut Worker<'_>) -> Result<HeldShared, SyncError> {
        let site = CallSite::caller();
        self.made_here(w, site)?.read(w, site)
    }

    /// Waits for the lock to write: until no other node holds it.
    ///
    /// # Errors
    /// As [`read`](RwLock::read).
    #[track_caller]
    pub fn write(self, w: &mut Worker<'_>) -> Result<HeldExclusive, SyncError> {
        let site = CallSite::caller();
        self.made_here(w, site)?.write(w, site)
    }

    /// Releases the lock and waits until it is notified, in one step. Returns with the lock held to
    /// write again; what the notifier wrote before it released the lock is visible.
    ///
    /// ```
    /// # use dhole_node::{Result, RwLock, Worker};
    /// # fn example(w: &mut Worker<'_>) -> Result<()> {
    /// let lock = RwLock::numbered(1);
    /// let flag = w.once(|w| Ok(w.alloc(false)))?;
    /// let mut held = lock.write(w)?;
    /// if w.node().index() == 0 {
    ///     *flag.get_mut(w) = true;
    ///     lock.notify_all(w)?;
    /// }
    /// while !flag.read(w) {
    ///     held = lock.wait(w, held)?;
    /// }
    /// held.release(w)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`SyncError::OtherRwLock`] when `held` is another lock, [`SyncError::NotHere`] when another
    /// worker acquired it, [`SyncError::Deadlock`] when no node can notify it, or the lock will
    /// never be free, [`SyncError::Ended`] when another node fails meanwhile.
    #[track_caller]
    pub fn wait(self, w: &mut Worker<'_>, held: HeldExclusive) -> Result<HeldExclusive, SyncError> {
        Waits(self.id()).wait(w, held, CallSite::caller())
    }

    /// Wakes the node that has waited longest, if any waits, when this node releases the lock.
    ///
    /// # Errors
    /// [`SyncError::Protocol`] when this node does not hold the lock, to read or to write.
    #[track_caller]
    pub fn notify_one(self, w: &mut Worker<'_>) -> Result<(), SyncError> {
        let site = CallSite::caller();
        self.made_here(w, site)?.notify(w, false, site)
    }

    /// Wakes all nodes that wait when this node releases the lock: each gets it in turn.
    ///
    /// # Errors
    /// As [`notify_one`](RwLock::notify_one).
    #[track_caller]
    pub fn notify_all(self, w: &mut Worker<'_>) -> Result<(), SyncError> {
        let site = CallSite::caller();
        self.made_here(w, site)?.notify(w, true, site)
    }

    /// Tests that the lock is one of this run.
    fn made_here(self, w: &Worker<'_>, site: CallSite) -> Result<Waits, SyncError> {
        let lock = self.id();
        w.check_made("read-write lock", lock.0, site)?;
        Ok(Waits(lock))
    }

    /// Runs `f` while no node writes under the lock.
    ///
    /// # Errors
    /// As [`read`](RwLock::read), or the error of `f`; the lock is released either way.
    #[track_caller]
    pub fn with_read<R>(
        self,
        w: &mut Worker<'_>,
        f: impl FnOnce(&mut Worker<'_>) -> Result<R>,
    ) -> Result<R> {
        let site = CallSite::caller();
        self.made_here(w, site)?.with_read(w, site, f)
    }

    /// Runs `f` while no other node reads or writes under the lock.
    ///
    /// # Errors
    /// As [`with_read`](RwLock::with_read).
    #[track_caller]
    pub fn with_write<R>(
        self,
        w: &mut Worker<'_>,
        f: impl FnOnce(&mut Worker<'_>) -> Result<R>,
    ) -> Result<R> {
        let site = CallSite::caller();
        self.made_here(w, site)?.with_write(w, site, f)
    }
}

impl fmt::Debug for RwLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RwLock").field(&self.id().0).finish()
    }
}

/// A read-write lock of this run, a program's own or an object's, and what a node does with it.
#[derive(Clone, Copy)]
pub(crate) struct Waits(pub RwLockId);

impl Waits {
    pub fn read(self, w: &mut Worker<'_>, site: CallSite) -> Result<HeldShared, SyncError> {
        self.enter(w, SyncObject::Read(self.0), site)
            .map(HeldShared)
    }

    pub fn write(self, w: &mut Worker<'_>, site: CallSite) -> Result<HeldExclusive, SyncError> {
        self.enter(w, SyncObject::Write(self.0), site)
            .map(HeldExclusive)
    }

    fn enter(
        self,
        w: &mut Worker<'_>,
        sync_object: SyncObject,
        site: CallSite,
    ) -> Result<Guard, SyncError> {
        w.acquire(Event::Enter { sync_object, site }, site)?;
        Ok(Guard::new(w, Holding::SyncObject(sync_object), site))
    }

    /// Runs `f` with the lock held to write.
    pub fn with_write<R>(
        self,
        w: &mut Worker<'_>,
        site: CallSite,
        f: impl FnOnce(&mut Worker<'_>) -> Result<R>,
    ) -> Result<R> {
        let HeldExclusive(guard) = self.write(w, site)?;
        guard.during(w, site, f)
    }

    /// Runs `f` with the lock held to read.
    pub fn with_read<R>(
        self,
        w: &mut Worker<'_>,
        site: CallSite,
        f: impl FnOnce(&mut Worker<'_>) -> Result<R>,
    ) -> Result<R> {
        let HeldShared(guard) = self.read(w, site)?;
        guard.during(w, site, f)
    }

    pub fn wait(
        self,
        w: &mut Worker<'_>,
        held: HeldExclusive,
        site: CallSite,
    ) -> Result<HeldExclusive, SyncError> {
        self.wait_for(w, held, false, site)
    }

    /// Releases the lock, under which this node has written nothing, and waits until a node has.
    pub fn wait_until_written(
        self,
        w: &mut Worker<'_>,
        held: HeldExclusive,
        site: CallSite,
    ) -> Result<HeldExclusive, SyncError> {
        self.wait_for(w, held, true, site)
    }

    fn wait_for(
        self,
        w: &mut Worker<'_>,
        held: HeldExclusive,
        until_written: bool,
        site: CallSite,
    ) -> Result<HeldExclusive, SyncError> {
        let (lock, HeldExclusive(guard)) = (self.0, held);
        if guard.holding != Holding::SyncObject(SyncObject::Write(lock)) {
            return Err(SyncError::OtherRwLock {
                lock,
                node: w.node(),
                site,
                holding: guard.holding,
                acquired: guard.site,
            });
        }
        let holding = guard.let_go(w, site)?;
        let event = Event::WaitOnRwLock {
            lock,
            until_written,
            site,
        };
        w.acquire(event, site)?;
        Ok(HeldExclusive(Guard::new(w, holding, site)))
    }

    pub fn notify(self, w: &mut Worker<'_>, all: bool, site: CallSite) -> Result<(), SyncError> {
        let lock = self.0;
        w.local(Some(Event::NotifyRwLock { lock, all, site }), site)
    }
}

held! {
    /// A read-write lock, or an object's lock, under which this node reads. Dropped unreleased, it
    /// is released as [`Held`](crate::Held) is.
    HeldShared
}

held! {
    /// A read-write lock, or an object's lock, under which this node writes. Dropped unreleased, it
    /// is released as [`Held`](crate::Held) is.
    HeldExclusive
}

/// A semaphore: a number of permits. Who acquires one waits until there is one; nodes get them in
/// the order in which they ask. What was written before a release is visible after the acquire
/// that it lets through, whichever node released.
///
/// ```
/// # use dhole_node::{Result, Semaphore, Worker};
/// # fn example(w: &mut Worker<'_>) -> Result<()> {
/// let number = w.once(|w| Ok(w.alloc(0_u64)))?;
/// let ready = Semaphore::numbered(1, 0);
/// if w.node().index() == 0 {
///     *number.get_mut(w) = 7;
///     ready.release(w)?;
/// } else {
///     ready.acquire(w)?;
///     assert_eq!(number.read(w), 7);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Share, Serialize, Deserialize)]
#[share(crate = "dhole_heap", nullable)]
#[repr(transparent)]
pub struct Semaphore(NonZeroU128);

/// The number's word, and above it the permits.
const fn semaphore(number: u64, permits: u32) -> NonZeroU128 {
    let number = NonZeroU128::MIN.saturating_add(number as u128);
    number.saturating_add((permits as u128) << 64)
}

impl Semaphore {
    /// The semaphore of this number, with so many permits before anyone acquires or releases one:
    /// the same on every node. Its manager is node `number` modulo the number of nodes.
    pub const fn numbered(number: u32, permits: u32) -> Semaphore {
        Semaphore(semaphore(number as u64, permits))
    }

    fn id(self) -> SemaphoreId {
        let word = self.0.get();
        SemaphoreId {
            number: word as u64 - 1,
            permits: (word >> 64) as u32,
        }
    }

    /// Waits for a permit and takes it.
    ///
    /// # Errors
    /// [`SyncError::Deadlock`] when all nodes wait and none can release one,
    /// [`SyncError::Protocol`] when the semaphore was made with another number of permits,
    /// [`SyncError::Ended`] when another node fails meanwhile.
    #[track_caller]
    pub fn acquire(self, w: &mut Worker<'_>) -> Result<(), SyncError> {
        let (sync_object, site) = (SyncObject::Permit(self.id()), CallSite::caller());
        w.check_made("semaphore", sync_object.number(), site)?;
        w.acquire(Event::Enter { sync_object, site }, site)
    }

    /// Adds a permit, also if no node acquired one.
    ///
    /// # Errors
    /// [`SyncError::Protocol`] when the semaphore has `u32::MAX` permits. Where another node
    /// manages it, that node finds it out, and the run ends with its error.
    #[track_caller]
    pub fn release(self, w: &mut Worker<'_>) -> Result<(), SyncError> {
        let (sync_object, site) = (SyncObject::Permit(self.id()), CallSite::caller());
        w.check_made("semaphore", sync_object.number(), site)?;
        w.local(Some(Event::Leave { sync_object, site }), site)
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SemaphoreId { number, permits } = self.id();
        write!(f, "Semaphore({number}, {permits} permits)")
    }
}
