//! The locks that objects have, which their homes manage.

use std::fmt;
use std::num::NonZeroU64;

use dhole_heap::{Array, Ref, Row, Share};
use dhole_model::{CallSite, Oid};
use dhole_protocol::RwLockId;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::sync_error::SyncError;
use crate::sync_object::{HeldExclusive, HeldShared, Waits};
use crate::worker::Worker;

/// What has a lock of its own: every object, row and array behind a reference (Jackal, section
/// 3.2). An [`Own`](dhole_heap::Own) has the lock of its object.
pub trait Lockable {
    /// The lock of the object. Nothing is stored for it, and to name it costs nothing.
    fn lock(&self) -> ObjectLock;
}

impl<T> Lockable for Ref<T> {
    fn lock(&self) -> ObjectLock {
        ObjectLock::of(self.oid())
    }
}

impl<T> Lockable for Row<T> {
    fn lock(&self) -> ObjectLock {
        ObjectLock::of(self.oid())
    }
}

impl<T> Lockable for Array<T> {
    fn lock(&self) -> ObjectLock {
        ObjectLock::of(self.oid())
    }
}

/// The lock of an object: a read-write lock with a condition, as [`RwLock`](crate::RwLock) is. Its
/// manager is the object's home, the node that allocated it. So a node locks what it allocated
/// itself without a message. Any other node takes two messages to acquire the lock and one to
/// release it, if the home was the last to release it.
///
/// It is 8 bytes, and can be stored in shared objects. It stays the lock of its object under each
/// protocol, also after a `switch`, and outlives the object. It excludes nodes that take the same
/// lock, and no others.
///
/// ```
/// # use dhole_node::{Lockable, Result, Worker};
/// # fn example(w: &mut Worker<'_>) -> Result<()> {
/// let queue = w.once(|w| Ok(w.alloc([0_u64; 8])))?;
/// let mut held = queue.lock().acquire(w)?;
/// if w.node().index() == 0 {
///     queue.get_mut(w)[0] = 7;
///     queue.lock().notify_all(w)?;
/// }
/// while queue.get(w)[0] == 0 {
///     held = queue.lock().wait(w, held)?;
/// }
/// held.release(w)?;
/// let first = queue.lock().with_read(w, |w| Ok(queue.get(w)[0]))?;
/// assert_eq!(first, 7);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Share, Serialize, Deserialize)]
#[share(crate = "dhole_heap", nullable)]
#[repr(transparent)]
pub struct ObjectLock(NonZeroU64);

impl ObjectLock {
    fn of(oid: Oid) -> ObjectLock {
        ObjectLock(NonZeroU64::new(oid.0).expect("an allocated id is not 0"))
    }

    /// The object.
    pub fn oid(self) -> Oid {
        Oid(self.0.get())
    }

    /// The lock in this run, with the home that manages it.
    pub(crate) fn at_home(self, w: &Worker<'_>, site: CallSite) -> Result<Waits, SyncError> {
        let oid = self.oid();
        match w.link.node.cluster.allocator(oid) {
            Ok(home) => Ok(Waits(RwLockId::of_object(oid, home))),
            Err(cause) => Err(SyncError::NoObject {
                oid,
                node: w.node(),
                site,
                cause,
            }),
        }
    }

    /// Waits for the lock to write: until no other node holds it.
    ///
    /// # Errors
    /// [`SyncError::NoObject`] when the object is of another cluster, [`SyncError::Protocol`] when
    /// this node holds the lock, to read or to write, [`SyncError::Deadlock`] when it will never be
    /// free, [`SyncError::Ended`] when another node fails meanwhile.
    #[track_caller]
    pub fn acquire(self, w: &mut Worker<'_>) -> Result<HeldExclusive, SyncError> {
        let site = CallSite::caller();
        self.at_home(w, site)?.write(w, site)
    }

    /// Waits for the lock to read: until no node holds it to write, and no earlier request to write
    /// waits.
    ///
    /// # Errors
    /// As [`acquire`](ObjectLock::acquire).
    #[track_caller]
    pub fn read(self, w: &mut Worker<'_>) -> Result<HeldShared, SyncError> {
        let site = CallSite::caller();
        self.at_home(w, site)?.read(w, site)
    }

    /// Releases the lock and waits until it is notified, in one step. Returns with the lock held to
    /// write again; what the notifier wrote before it released the lock is visible. A woken node
    /// may find that another was faster, so wait in a loop.
    ///
    /// # Errors
    /// [`SyncError::OtherRwLock`] when `held` is another lock, [`SyncError::NotHere`] when another
    /// worker acquired it, [`SyncError::Deadlock`] when no node can notify it, or the lock will
    /// never be free, [`SyncError::Ended`] when another node fails meanwhile.
    #[track_caller]
    pub fn wait(self, w: &mut Worker<'_>, held: HeldExclusive) -> Result<HeldExclusive, SyncError> {
        let site = CallSite::caller();
        self.at_home(w, site)?.wait(w, held, site)
    }

    /// Wakes the node that has waited longest, if any waits, when this node releases the lock.
    ///
    /// # Errors
    /// [`SyncError::Protocol`] when this node does not hold the lock, to read or to write.
    #[track_caller]
    pub fn notify_one(self, w: &mut Worker<'_>) -> Result<(), SyncError> {
        let site = CallSite::caller();
        self.at_home(w, site)?.notify(w, false, site)
    }

    /// Wakes all nodes that wait when this node releases the lock: each gets it in turn.
    ///
    /// # Errors
    /// As [`notify_one`](ObjectLock::notify_one).
    #[track_caller]
    pub fn notify_all(self, w: &mut Worker<'_>) -> Result<(), SyncError> {
        let site = CallSite::caller();
        self.at_home(w, site)?.notify(w, true, site)
    }

    /// Runs `f` while no other node reads or writes under the lock.
    ///
    /// # Errors
    /// As [`acquire`](ObjectLock::acquire), or the error of `f`; the lock is released either way.
    #[track_caller]
    pub fn with<R>(
        self,
        w: &mut Worker<'_>,
        f: impl FnOnce(&mut Worker<'_>) -> Result<R>,
    ) -> Result<R> {
        let site = CallSite::caller();
        self.at_home(w, site)?.with_write(w, site, f)
    }

    /// Runs `f` while no node writes under the lock.
    ///
    /// # Errors
    /// As [`with`](ObjectLock::with).
    #[track_caller]
    pub fn with_read<R>(
        self,
        w: &mut Worker<'_>,
        f: impl FnOnce(&mut Worker<'_>) -> Result<R>,
    ) -> Result<R> {
        let site = CallSite::caller();
        self.at_home(w, site)?.with_read(w, site, f)
    }
}

impl fmt::Debug for ObjectLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectLock").field(&self.oid()).finish()
    }
}
