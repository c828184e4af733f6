//! The locks of the threads of a run whose nodes are one domain: words in the memory of the domain,
//! which take no message.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use dhole_protocol::memory::sync::{SharedLocks, ThreadId, ThreadRefusal};
use dhole_space::{DomainFile, DomainLocks, LockAttempt};

use crate::page_words::LOCKS_AT;

/// The locks of a domain, which is the whole run.
#[derive(Clone, Debug)]
pub(crate) struct RunLocks(Arc<DomainLocks>);

/// The machine knows them by this.
#[derive(Debug)]
struct Known(Arc<DomainLocks>);

impl SharedLocks for Known {
    fn holder(&self, key: u64) -> Option<ThreadId> {
        self.0.holder(key).map(ThreadId)
    }

    fn release(&self, key: u64, thread: ThreadId) -> bool {
        self.0.release(key, thread.0)
    }
}

impl RunLocks {
    /// Those in the file of the domain.
    ///
    /// # Errors
    /// The system's own.
    pub fn map(file: &DomainFile) -> io::Result<RunLocks> {
        let locks = DomainLocks::map(file, LOCKS_AT)?;
        Ok(RunLocks(Arc::new(locks)))
    }

    /// The locks, as the machine of a node knows them.
    pub fn known(&self) -> Arc<dyn SharedLocks> {
        Arc::new(Known(Arc::clone(&self.0)))
    }

    pub fn holds(&self, thread: ThreadId, key: u64) -> bool {
        self.0.holder(key) == Some(thread.0)
    }

    /// A thread releases a lock.
    #[inline]
    pub fn unlock(&self, thread: ThreadId, key: u64) -> Result<(), ThreadRefusal> {
        match self.0.release(key, thread.0) {
            true => Ok(()),
            false => Err(ThreadRefusal::NotHeld(key)),
        }
    }

    /// Whether a thread takes a lock now; `None` where that cannot be said in this moment.
    pub fn tries(&self, thread: ThreadId, key: u64) -> Result<Option<bool>, ThreadRefusal> {
        match self.0.take(key, thread.0, false) {
            LockAttempt::Taken => Ok(Some(true)),
            LockAttempt::Own | LockAttempt::Busy => Ok(Some(false)),
            LockAttempt::Adding => Ok(None),
            LockAttempt::Full => Err(full()),
        }
    }

    /// Whether a thread takes a lock now, for which it may have slept.
    #[inline]
    pub fn takes(
        &self,
        thread: ThreadId,
        key: u64,
        has_slept: bool,
    ) -> Result<bool, ThreadRefusal> {
        match self.0.take(key, thread.0, has_slept) {
            LockAttempt::Taken => Ok(true),
            LockAttempt::Busy | LockAttempt::Adding => Ok(false),
            LockAttempt::Own => Err(ThreadRefusal::Held(key)),
            LockAttempt::Full => Err(full()),
        }
    }

    /// Whether a lock seems to be free.
    pub fn may_take(&self, key: u64) -> bool {
        self.0.may_take(key)
    }

    /// Sleeps until a lock may be free, and at most so long.
    pub fn sleep(&self, key: u64, at_most: Duration) {
        self.0.sleep(key, at_most);
    }

    /// A thread that may have slept for a lock does not want it any more.
    pub fn leave(&self, key: u64) {
        self.0.leave(key);
    }
}

fn full() -> ThreadRefusal {
    let (what, most) = ("locks of a domain that are held", DomainLocks::ROOM);
    ThreadRefusal::Full { what, most }
}
