//! Locks, the barrier, and values that one node makes for all.

use std::cell::RefCell;
use std::rc::Rc;

use dhole_heap::Share;
use dhole_model::CallSite;
use dhole_protocol::{Event, LockId};

use crate::error::{Error, Result, SyncError};
use crate::worker::Worker;

impl Worker<'_> {
    /// Waits until every node has reached this barrier. What any node wrote before it is visible
    /// to every node after it. 2(n-1) messages; node 0 manages it.
    ///
    /// # Errors
    /// [`SyncError::Deadlock`] when not all nodes will reach it, [`SyncError::Ended`] when
    /// another node fails meanwhile.
    #[track_caller]
    pub fn barrier(&mut self) -> Result<(), SyncError> {
        self.arrive(false, CallSite::caller())
    }

    /// Runs `f` on node 0 alone and gives its value to every node. It is a barrier too, so what
    /// `f` allocated and wrote is visible to all. Whatever the program's roots are, this is how
    /// the other nodes learn of them.
    ///
    /// # Errors
    /// The error of `f` on node 0; [`SyncError::OnceWithinOnce`] where `f` calls `once`;
    /// otherwise as [`barrier`](Worker::barrier).
    #[track_caller]
    pub fn once<T: Share + Copy>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let site = CallSite::caller();
        if self.node().index() == 0 {
            if let Some(outer) = self.link.in_once {
                let node = self.node();
                return Err(SyncError::OnceWithinOnce { node, site, outer }.into());
            }
            self.link.in_once = Some(site);
            let made = f(self);
            self.link.in_once = None;
            let value = made?;
            let mut guard = self.link.node.monitor.lock();
            let packed = &mut guard.split().1.value;
            packed.clear();
            packed.extend_from_slice(&fingerprint::<T>());
            dhole_heap::pack(&value, packed);
        }
        self.arrive(true, site)?;
        let mut guard = self.link.node.monitor.lock();
        let (heap, state) = guard.split();
        let bad = |what: String| Error::program(format!("the value of once at {site}: {what}"));
        let Some(packed) = state.value.strip_prefix(&fingerprint::<T>()) else {
            let expected = std::any::type_name::<T>();
            return Err(bad(format!(
                "node 0 made a value of another type than {expected}"
            )));
        };
        heap.unpack::<T>(packed)
            .map_err(|error| bad(error.to_string()))
    }

    fn arrive(&mut self, once: bool, site: CallSite) -> Result<(), SyncError> {
        let called = self.exclusive(|link, call| {
            link.and_wait(call, Event::Arrive { once, site })?;
            call.split().1.counting.all.barriers += 1;
            Ok(())
        });
        called.map_err(|failure| self.link.sync_error(failure, site))
    }

    /// Waits until every node has finished the program.
    pub(crate) fn finish(&mut self) -> Result<(), SyncError> {
        let site = CallSite::runtime("the end of the run");
        let called = self.exclusive(|link, call| {
            link.release_forgotten(call)?;
            link.and_wait(call, Event::Finish).map(drop)
        });
        called.map_err(|failure| self.link.sync_error(failure, site))
    }

    /// A lock that no other call gives out. It can be stored in shared objects.
    pub fn new_lock(&mut self) -> Lock {
        let number = self.link.locks_made * self.nodes() as u64 + self.node().index() as u64;
        self.link.locks_made += 1;
        Lock(Lock::FIRST_MADE + number)
    }
}

/// A lock: the same on all nodes, by its number. What was written before a release is visible
/// after the next acquire of the same lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Share)]
#[share(crate = "dhole_heap")]
pub struct Lock(u64);

impl Lock {
    /// Numbers below this are the program's own.
    const FIRST_MADE: u64 = 1 << 32;

    /// The lock of this number. Its manager is node `number` modulo the number of nodes.
    pub const fn numbered(number: u32) -> Lock {
        Lock(number as u64)
    }

    /// Waits for the lock. Free of messages when this node held it last.
    ///
    /// # Errors
    /// [`SyncError::Protocol`] when this node holds it already, [`SyncError::Deadlock`] when it
    /// will never be released, [`SyncError::Ended`] when another node fails meanwhile.
    #[track_caller]
    pub fn acquire(self, w: &mut Worker<'_>) -> Result<Held, SyncError> {
        let (lock, site) = (LockId(self.0), CallSite::caller());
        let called = w.exclusive(|link, call| {
            let remote = link.and_wait(call, Event::Acquire { lock, site })?;
            let counted = &mut call.split().1.counting.all;
            match remote {
                true => counted.lock_acquires_remote += 1,
                false => counted.lock_acquires_local += 1,
            }
            Ok(())
        });
        called.map_err(|failure| w.link.sync_error(failure, site))?;
        let dropped = Rc::clone(&w.link.dropped);
        Ok(Held {
            lock,
            site,
            dropped,
            released: false,
        })
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
        let held = self.acquire(w)?;
        let result = f(w);
        held.release(w)?;
        result
    }
}

/// A lock that this node holds. It does not borrow the worker, so locks can be taken hand over
/// hand. Dropped unreleased, it is released at the node's next call that synchronises or writes;
/// forgotten, when the node has finished the program. The run's report says so.
#[must_use = "a lock is held until it is released"]
#[derive(Debug)]
pub struct Held {
    lock: LockId,
    site: CallSite,
    dropped: Rc<RefCell<Vec<(LockId, CallSite)>>>,
    released: bool,
}

impl Held {
    /// Releases the lock.
    ///
    /// # Errors
    /// [`SyncError::NotHere`] when `w` is not the worker that acquired it; the lock then counts
    /// as dropped by the worker that did.
    #[track_caller]
    pub fn release(mut self, w: &mut Worker<'_>) -> Result<(), SyncError> {
        let (lock, site) = (self.lock, CallSite::caller());
        if !Rc::ptr_eq(&self.dropped, &w.link.dropped) {
            return Err(SyncError::NotHere {
                lock,
                node: w.node(),
                site,
                acquired: self.site,
            });
        }
        self.released = true;
        let called = w.exclusive(|link, call| link.local(call, Some(Event::Release { lock })));
        called.map_err(|failure| w.link.sync_error(failure, site))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.released {
            self.dropped.borrow_mut().push((self.lock, self.site));
        }
    }
}

/// Tells a type from others, the same on every node: FNV-1a over its name and size.
fn fingerprint<T>() -> [u8; 8] {
    let name = std::any::type_name::<T>().bytes();
    let all = name.chain(size_of::<T>().to_le_bytes());
    let hash = all.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.to_le_bytes()
}
