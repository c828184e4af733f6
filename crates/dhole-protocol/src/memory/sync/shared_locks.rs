//! Locks that are words of memory which the threads of all nodes have in common.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use dhole_model::CallSite;
use dhole_part::PartEffects;

use super::{ThreadId, ThreadRefusal, ThreadSync, WaitsOn};

/// Locks that threads of all nodes take without messages.
pub trait SharedLocks: Debug + Send + Sync {
    /// The thread that holds a lock.
    fn holder(&self, key: u64) -> Option<ThreadId>;

    /// A thread releases a lock; whether it had it.
    fn release(&self, key: u64, thread: ThreadId) -> bool;
}

/// The shared locks of a node, if it has some. They are no part of its state.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared(Option<Arc<dyn SharedLocks>>);

impl Shared {
    pub(super) fn locks(&self) -> Option<&dyn SharedLocks> {
        self.0.as_deref()
    }
}

impl PartialEq for Shared {
    fn eq(&self, other: &Shared) -> bool {
        self.0.is_some() == other.0.is_some()
    }
}

impl Eq for Shared {}

impl Hash for Shared {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.is_some().hash(state);
    }
}

impl ThreadSync {
    /// From here on the locks of all nodes are these. Threads take and release them by themselves.
    /// [`lock`](ThreadSync::lock) and its kin are of locks that go by messages.
    pub fn share_locks(&mut self, locks: Arc<dyn SharedLocks>) {
        self.shared = Shared(Some(locks));
    }

    /// The holder of a shared lock. Another process has written it.
    pub(super) fn shared_holder(&self, locks: &dyn SharedLocks, key: u64) -> Option<ThreadId> {
        let holder = locks.holder(key);
        holder.filter(|holder| holder.node().index() < self.nodes)
    }

    /// A thread of this node waits for a shared lock, until it says that it does not.
    ///
    /// # Errors
    /// [`ThreadRefusal::Full`]
    pub fn wait_for_shared(
        &mut self,
        thread: ThreadId,
        key: u64,
        site: CallSite,
    ) -> Result<(), ThreadRefusal> {
        self.begin(thread, WaitsOn::Lock(key), site)
    }

    /// A thread waits no more; the refusal that it got meanwhile.
    pub fn end_wait(&mut self, thread: ThreadId) -> Option<ThreadRefusal> {
        let wait = self.waits.remove(&thread)?;
        wait.result?.err()
    }

    /// A thread whose wait on a condition begins releases its shared lock.
    pub(super) fn release_shared(
        &mut self,
        thread: ThreadId,
        key: u64,
        out: &mut impl PartEffects<Self>,
    ) -> Result<(), ThreadRefusal> {
        match self.shared.locks() {
            Some(locks) if locks.release(key, thread) => Ok(()),
            Some(_) => Err(ThreadRefusal::NotHeld(key)),
            None => self.release(thread, key, out),
        }
    }
}
