//! The waits of a node's worker and processes, and what of locks, barriers, sync objects and
//! collectives the node keeps: its edges of the wait-for graph ([`dhole_sync`]).
//!
//! A node that waits for a lock waits for the node that holds it. A node that waits for a
//! read-write lock waits for every node that holds it, if its manager knows that the request is
//! behind one of a writer. A node that waits on the condition of a read-write lock waits for the
//! nodes that hold the lock. A node at a barrier waits for every node that has not arrived. A node
//! in a collective waits for those of its neighbours in the tree that have not sent what it needs.
//! Any node may end a wait for a permit, on a condition, for an operation or for a process.

use dhole_model::{CallSite, NodeId};
use dhole_sync::{Edges, ThreadOf};

use crate::BarrierId;
use crate::sync::barrier::{Barrier, MANAGER};
use crate::sync::collective::Collectives;
use crate::sync::lock::Locks;
use crate::sync::sync_objects::SyncObjects;
use crate::waiting::{Waiter, WaitingFor};

/// The waits of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct WaitFor {
    me: NodeId,
    /// The wait that the worker is in, if it waits for a lock, at a barrier or a sync object, or on
    /// a condition.
    current: Option<Waiter>,
    /// Numbers the waits.
    waits: u64,
    /// The waits of processes that let others of their node go on meanwhile.
    parked: Vec<Waiter>,
}

/// The edges that a node's worker and processes are at.
#[derive(Clone, Copy)]
pub(crate) struct WorkerEdges<'a> {
    pub wait_for: &'a WaitFor,
    pub locks: &'a Locks,
    pub sync_objects: &'a SyncObjects,
    pub barrier: &'a Barrier,
    pub collectives: &'a Collectives,
}

impl WorkerEdges<'_> {
    /// Whether this node keeps what a wait is for, and the line where it acquired it.
    fn keeps(&self, wait: &Waiter) -> Option<Option<CallSite>> {
        let me = self.wait_for.me;
        match wait.waiting_for {
            WaitingFor::Lock(lock) => self.locks.holder(lock).map(Some),
            WaitingFor::SyncObject(sync_object) => {
                let lock = sync_object.rw_lock()?;
                self.sync_objects.held_since(lock).map(Some)
            }
            // Who is woken needs the lock first.
            WaitingFor::RwLockCondition(lock) => self.sync_objects.held_since(lock).map(Some),
            WaitingFor::Barrier(barrier) => {
                let waits_at = self.barrier.waits_at().map(|(at, _)| at);
                let is_missing = waits_at != Some(barrier) && !self.barrier.has_passed(barrier);
                is_missing.then_some(None)
            }
            WaitingFor::Collective(at) => {
                let next = self.barrier.next_number();
                let is_missing = self.collectives.is_needed(me, wait.node, at)
                    && !self.collectives.has_given(at, next);
                is_missing.then_some(None)
            }
            WaitingFor::Condition(_)
            | WaitingFor::Operation(_)
            | WaitingFor::Process(_)
            | WaitingFor::Begin(_)
            | WaitingFor::Thread(_) => None,
        }
    }
}

impl Edges<Waiter> for WorkerEdges<'_> {
    fn add_waits(&self, waits: &mut Vec<Waiter>) {
        waits.extend(self.wait_for.current);
        waits.extend(self.wait_for.parked.iter().map(|wait| Waiter {
            thread: PROCESSES | wait.wait,
            ..*wait
        }));
    }

    fn add_keepers(&self, wait: &Waiter, keeps: &mut dyn FnMut(ThreadOf, Option<CallSite>, bool)) {
        // A process that lets others go on holds nothing.
        if let Some(since) = self.keeps(wait) {
            keeps(ThreadOf::worker(self.wait_for.me), since, false);
        }
    }

    fn is_ending(&self, wait: &Waiter) -> bool {
        match wait.waiting_for {
            WaitingFor::SyncObject(sync_object) => {
                let manages = self.sync_objects.manager(sync_object) == self.wait_for.me;
                let lock = sync_object.rw_lock().filter(|_| manages);
                lock.is_some_and(|lock| !self.sync_objects.is_kept_from(lock, wait.node))
            }
            // Its number is that of the next barrier too.
            WaitingFor::Barrier(barrier @ BarrierId::Collection(_)) => {
                self.wait_for.me == MANAGER && !self.barrier.has_arrived(wait.node, barrier)
            }
            _ => false,
        }
    }
}

/// The threads by which the wait-for graph knows processes that let others of their node go on.
const PROCESSES: u64 = 1 << 63;

impl WaitFor {
    pub fn new(me: NodeId) -> WaitFor {
        WaitFor {
            me,
            current: None,
            waits: 0,
            parked: Vec::new(),
        }
    }

    /// The worker waits from now on; which of its waits this is.
    pub fn begin(&mut self, waiting_for: WaitingFor, site: CallSite) -> u64 {
        self.waits += 1;
        let wait = Waiter::of_worker(self.me, waiting_for, site, self.waits);
        self.current = Some(wait);
        self.waits
    }

    pub fn end(&mut self) {
        self.current = None;
    }

    /// Sets the worker's wait aside.
    pub fn park(&mut self) -> Option<Waiter> {
        let wait = self.current.take()?;
        self.parked.push(wait);
        Some(wait)
    }

    /// A wait that was set aside is over, or the worker's `again`.
    pub fn unpark(&mut self, wait: Waiter, again: bool) {
        self.parked.retain(|parked| *parked != wait);
        if again {
            self.current = Some(wait);
        }
    }

    /// The waits that are set aside.
    pub fn parked(&self) -> &[Waiter] {
        &self.parked
    }

    /// The wait that the worker is in.
    pub fn current(&self) -> Option<Waiter> {
        self.current
    }

    /// A cycle was found: whether this node is still in the wait that lies on it. The cycle may say
    /// more of what is waited for.
    pub fn is_on(&self, cycle: &[Waiter]) -> bool {
        let is_on = |me: Waiter| {
            let is_me =
                |it: &Waiter| it.raw_thread().is_none() && (it.node, it.wait) == (me.node, me.wait);
            cycle.iter().any(is_me)
        };
        self.current.is_some_and(is_on)
    }

    pub fn is_waiting(&self) -> bool {
        self.current.is_some()
    }
}
