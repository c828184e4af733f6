//! The sections that wait at a node, by the locks under which they are to run.

use dhole_model::SortedMap;

use crate::RwLockId;

/// What a node knows of the sections that wait here.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Sections {
    /// The locks for which sections wait. A release tries them before other nodes pass.
    waiting: SortedMap<RwLockId, ()>,
    /// A section waits for the worker's next call that owns its token.
    deferred: bool,
}

impl Sections {
    /// Whether sections wait for a lock from here on.
    pub fn wait(&mut self, lock: RwLockId, waits: bool) {
        match waits {
            true => drop(self.waiting.insert(lock, ())),
            false => drop(self.waiting.remove(&lock)),
        }
    }

    /// Whether sections wait for the lock.
    pub fn is_waited_for(&self, lock: RwLockId) -> bool {
        self.waiting.contains_key(&lock)
    }

    /// The locks for which sections wait.
    pub fn waiting(&self) -> impl Iterator<Item = RwLockId> {
        self.waiting.keys().copied()
    }

    /// A section waits for the worker's next call that owns its token.
    pub fn defer(&mut self) {
        self.deferred = true;
    }

    /// Whether one does.
    pub fn are_deferred(&self) -> bool {
        self.deferred
    }

    /// The worker is in such a call. Whether a section has waited for that.
    pub fn undefer(&mut self) -> bool {
        std::mem::take(&mut self.deferred)
    }
}
