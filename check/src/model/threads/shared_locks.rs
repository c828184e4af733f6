//! Locks that are words which the threads of all nodes have in common: a thread takes a free one at
//! once, or waits and takes it when it is free. What the machines see of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dhole_model::CallSite;
use dhole_protocol::memory::sync::{SharedLocks, ThreadId, ThreadRefusal};

use super::{Moment, Node, Step, ThreadFault, ThreadOp, id};

/// The locks that are held, for the step of a machine.
#[derive(Debug)]
struct Held(Mutex<BTreeMap<u64, ThreadId>>);

impl SharedLocks for Held {
    fn holder(&self, key: u64) -> Option<ThreadId> {
        self.0.lock().unwrap().get(&key).copied()
    }

    fn release(&self, key: u64, thread: ThreadId) -> bool {
        let mut held = self.0.lock().unwrap();
        let is_own = held.get(&key) == Some(&thread);
        is_own && held.remove(&key).is_some()
    }
}

/// The lock that a step takes, and whether it only tries.
pub(super) fn takes(op: ThreadOp) -> Option<(u64, bool)> {
    match op {
        ThreadOp::Lock(key) => Some((key, false)),
        ThreadOp::Try(key) => Some((key, true)),
        _ => None,
    }
}

/// The lock that a thread waits for in a step.
fn lock_of(op: ThreadOp) -> Option<u64> {
    match op {
        ThreadOp::Lock(key) | ThreadOp::Await(_, key) => Some(key),
        _ => None,
    }
}

/// Whether a thread that waits in a step can take its lock.
pub(super) fn is_free(moment: &Moment, op: ThreadOp) -> bool {
    lock_of(op).is_some_and(|key| !moment.shared.contains_key(&key))
}

impl Step<'_> {
    /// A step of a machine that knows the shared locks.
    pub(super) fn with_shared<R>(&mut self, node: &mut Node, f: impl FnOnce(&mut Node) -> R) -> R {
        let held = Arc::new(Held(Mutex::new(std::mem::take(&mut self.moment.shared))));
        let locks: Arc<dyn SharedLocks> = Arc::<Held>::clone(&held);
        node.machine.share_locks(locks);
        let result = f(node);
        self.moment.shared = held.0.lock().unwrap().clone();
        result
    }

    /// A thread takes a lock, or tries to.
    pub(super) fn takes_shared(&mut self, at: usize, thread: usize, (key, tries): (u64, bool)) {
        let is_free = !self.moment.shared.contains_key(&key);
        if is_free {
            self.moment.shared.insert(key, id(at, thread));
        }
        match is_free || tries {
            true => self.has_done(at, thread, is_free.into()),
            false => self.wants_shared(at, thread),
        }
    }

    /// Whether a thread that was woken in a wait on a condition does not hold its lock.
    pub(super) fn lacks_shared(&self, at: usize, thread: usize) -> bool {
        let held = |key: u64| self.moment.shared.get(&key) == Some(&id(at, thread));
        let lock = lock_of(self.op(at, thread));
        self.model.shares_locks && lock.is_some_and(|key| !held(key))
    }

    /// A thread waits for its lock.
    pub(super) fn wants_shared(&mut self, at: usize, thread: usize) {
        let Some(key) = lock_of(self.op(at, thread)) else {
            return;
        };
        let waits = self.at(at, |node, _| {
            node.threads[thread].takes = true;
            let site = CallSite::runtime("a step");
            node.machine.wait_for_shared(id(at, thread), key, site)
        });
        if waits.is_err() {
            self.fault(ThreadFault::Refused);
        }
    }

    /// A thread that has waited for its lock takes it.
    pub(super) fn gets_shared(&mut self, at: usize, thread: usize) {
        if let Some(key) = lock_of(self.op(at, thread)) {
            self.moment.shared.insert(key, id(at, thread));
        }
        self.at(at, |node, _| {
            node.threads[thread].takes = false;
            node.machine.end_wait(id(at, thread));
        });
        self.has_done(at, thread, 1);
    }

    /// A thread releases a lock.
    pub(super) fn unlock_shared(
        &mut self,
        thread: ThreadId,
        key: u64,
    ) -> Result<(), ThreadRefusal> {
        match self.moment.shared.remove(&key) {
            Some(holder) if holder == thread => Ok(()),
            _ => Err(ThreadRefusal::NotHeld(key)),
        }
    }
}
