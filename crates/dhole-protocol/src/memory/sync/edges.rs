//! The threads of a node in the wait-for graph: which of them wait, and which keep what others wait
//! for.

use std::sync::Arc;

use dhole_model::CallSite;
use dhole_part::PartEffects;
use dhole_sync::{Edges, ThreadOf};

use super::{Attempt, ThreadAttempt, ThreadId, ThreadRefusal, ThreadSync, Wait, WaitsOn};
use crate::waiting::{ThreadWait, Waiter, WaitingFor};

impl WaitsOn {
    /// What the wait is for, as the wait-for graph knows it.
    pub(super) fn as_edge(self) -> ThreadWait {
        match self {
            WaitsOn::Lock(key) => ThreadWait::Lock(key),
            WaitsOn::Barrier(key) => ThreadWait::Barrier(key),
            WaitsOn::Queue { condition, .. } | WaitsOn::Condition { condition, .. } => {
                ThreadWait::Condition(condition)
            }
            WaitsOn::Semaphore(key) => ThreadWait::Semaphore(key),
            WaitsOn::Thread(thread) => ThreadWait::End(thread),
            WaitsOn::Beginning(thread) => ThreadWait::Begin(thread),
            WaitsOn::Starts => ThreadWait::Starts,
            WaitsOn::Ends => ThreadWait::Ends,
        }
    }
}

impl ThreadSync {
    /// A thread begins, or is about to, beside the worker of this node.
    pub fn runs_beside(&mut self, thread: ThreadId) {
        self.beside.insert(thread, ());
    }

    /// A thread that ran beside the worker has ended, or did not begin.
    pub fn ends_beside(&mut self, thread: ThreadId) {
        self.beside.remove(&thread);
    }

    /// A thread runs in the worker's place: a process of the node.
    pub fn runs_in_place(&mut self, thread: ThreadId) {
        self.in_place.insert(thread, ());
    }

    /// Where a thread that begins to wait acquired the locks that it has.
    pub fn acquired_at(&mut self, thread: ThreadId, locks: &[(u64, CallSite)]) {
        match locks.is_empty() {
            true => drop(self.acquired.remove(&thread)),
            false => drop(self.acquired.insert(thread, locks.to_vec())),
        }
    }

    /// The wait of a thread ends by itself after some time.
    pub fn wait_is_timed(&mut self, thread: ThreadId) {
        if let Some(wait) = self.waits.get_mut(&thread) {
            wait.is_timed = true;
        }
    }

    /// The worker waits until a thread that is started here is to [begin](ThreadSync::starts_come)
    /// in its place.
    ///
    /// # Errors
    /// [`ThreadRefusal::Full`]
    pub fn wait_for_starts(&mut self, thread: ThreadId, site: CallSite) -> Attempt {
        if !self.waits.contains_key(&thread) {
            self.begin(thread, WaitsOn::Starts, site)?;
        }
        Ok(ThreadAttempt::Waits)
    }

    /// A thread waits for the ends of those beside it that nobody started, until it says that it
    /// [does not](ThreadSync::end_wait).
    ///
    /// # Errors
    /// [`ThreadRefusal::Full`]
    pub fn wait_for_ends(&mut self, thread: ThreadId, site: CallSite) -> Result<(), ThreadRefusal> {
        self.begin(thread, WaitsOn::Ends, site)
    }

    /// The threads beside the worker that nobody started.
    fn scoped(&self) -> impl Iterator<Item = ThreadId> {
        let beside = self.beside.keys().copied();
        beside.filter(|thread| !self.was_started(*thread))
    }

    /// The worker that waits for threads to begin is to look, or does not wait any more.
    pub fn starts_come(&mut self, out: &mut impl PartEffects<Self>) {
        let waits = self.waits.iter();
        let of = waits.filter(|(_, wait)| wait.on == WaitsOn::Starts && wait.result.is_none());
        let of: Vec<ThreadId> = of.map(|(thread, _)| *thread).collect();
        for thread in of {
            self.finish(thread, Ok(1), out);
        }
    }

    /// The wait of a thread, as an edge of the wait-for graph. One that is over is none, nor one
    /// that ends by itself or by what this node does.
    pub fn edge_of(&self, thread: ThreadId) -> Option<Waiter> {
        let wait = self.waits.get(&thread)?;
        let waits = wait.result.is_none() && !wait.is_timed;
        let is_there = match wait.on {
            // It has its lock still, and gives it up when it hears that its wait has begun.
            WaitsOn::Queue { .. } => false,
            WaitsOn::Lock(key) => match self.shared.locks() {
                // Where nobody has it, the thread is about to take it.
                Some(locks) => self.shared_holder(locks, key).is_some(),
                // One that only tries is told that the lock is another's.
                None => !self.locks.only_tries(key, thread),
            },
            // It is about to go on.
            WaitsOn::Ends => self.scoped().next().is_some(),
            // One that is to be told to the manager, now or after a moment.
            WaitsOn::Barrier(key) => !self.has_unsent(key),
            _ => true,
        };
        (waits && is_there).then(|| self.edge(thread, wait))
    }

    fn edge(&self, thread: ThreadId, wait: &Wait) -> Waiter {
        let waiting_for = WaitingFor::Thread(wait.on.as_edge());
        Waiter {
            thread: thread.vertex().thread,
            ..Waiter::of_worker(self.me, waiting_for, wait.site, wait.wait)
        }
    }

    /// Whether a thread of this node that runs beside the worker does not wait.
    pub fn computes_beside(&self) -> bool {
        let mut beside = self.beside.keys();
        beside.any(|thread| self.edge_of(*thread).is_none())
    }

    /// Whether a thread has ended, so that it gives up nothing any more.
    fn has_ended(&self, thread: ThreadId) -> bool {
        let runs = self.beside.contains_key(&thread)
            || self.in_place.contains_key(&thread)
            || self.is_running(thread) == Some(true);
        thread.number() > 0 && !runs
    }

    /// The thread of the graph that gives up what a thread has: one that ran in the worker's place
    /// is its worker.
    fn vertex_of(&self, thread: ThreadId) -> ThreadOf {
        match self.in_place.contains_key(&thread) {
            true => ThreadOf::worker(self.me),
            false => thread.vertex(),
        }
    }

    /// A thread that waits is told that it waits for ever, if it is in that very wait.
    pub fn told(&mut self, wait: &Waiter, waits: Arc<[Waiter]>, out: &mut impl PartEffects<Self>) {
        let Some(thread) = wait.raw_thread() else {
            return;
        };
        if self.edge_of(thread) != Some(*wait) {
            return;
        }
        if let Some(WaitsOn::Lock(key)) = self.waits_on(thread) {
            self.locks.forget(key, thread);
        }
        self.finish(thread, Err(ThreadRefusal::Deadlock(waits)), out);
    }
}

impl Edges<Waiter> for ThreadSync {
    fn add_waits(&self, waits: &mut Vec<Waiter>) {
        for thread in self.waits.keys() {
            let Some(wait) = self.edge_of(*thread) else {
                continue;
            };
            waits.push(wait);
            if wait.thread != 0 && !self.beside.contains_key(thread) {
                // The worker waits meanwhile.
                waits.push(Waiter { thread: 0, ..wait });
            }
        }
    }

    fn add_keepers(&self, wait: &Waiter, keeps: &mut dyn FnMut(ThreadOf, Option<CallSite>, bool)) {
        let is_own = |thread: &ThreadId| thread.node() == self.me;
        match wait.waiting_for {
            WaitingFor::Thread(ThreadWait::Lock(key)) => {
                let Some(holder) = self.holder(key).filter(is_own) else {
                    return;
                };
                let acquired = self.acquired.get(&holder);
                let mut acquired = acquired.iter().flat_map(|locks| locks.iter());
                let since = acquired
                    .find(|(own, _)| *own == key)
                    .map(|(_, since)| *since);
                keeps(self.vertex_of(holder), since, self.has_ended(holder));
            }
            WaitingFor::Thread(ThreadWait::Ends) if wait.node == self.me => {
                self.scoped()
                    .for_each(|thread| keeps(thread.vertex(), None, false));
            }
            WaitingFor::Thread(ThreadWait::End(thread))
                if is_own(&thread) && self.is_running(thread) == Some(true) =>
            {
                keeps(thread.vertex(), None, false);
            }
            _ => {}
        }
    }
}
