//! The wait-for graph, followed by probes (after Chandy, Misra and Haas).
//!
//! A node that waits for a lock waits for the node before it in the lock's queue, which holds the
//! lock or waits for it too; the lock's manager knows which node that is. A node at a barrier
//! waits for every node that has not arrived; in the rounds of a barrier it waits for the node
//! that it hears in its round, and knows it itself. A node in a collective waits for those of its
//! neighbours in the tree that have not sent what it needs, and knows them itself. A node that
//! waits for a read-write lock waits for every node that holds it: those before it in the queue
//! wait for the same. A node that has waited for long sends a *probe* along these edges; a node
//! that computes drops it. When a probe comes back to where it started, a second one follows the
//! same cycle: if every node on it is still in the very same wait, all of them waited at one
//! moment, and since none of them can have released anything meanwhile, the cycle is real. Its
//! nodes' waits then end with an error. Who waits for what any node may bring asks whether all
//! nodes wait (`quiescence_detection`).

use std::sync::Arc;

use dhole_model::{CallSite, NodeId};

use crate::sync::barrier::{Barrier, MANAGER};
use crate::sync::collective::Collectives;
use crate::sync::lock::Locks;
use crate::sync::probes::{Probe, SendProbes};
use crate::sync::sync_objects::SyncObjects;
use crate::sync_id::BarrierId;
use crate::waiting::{Waiter, WaitingFor};

/// One node's place in the graph.
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

/// What a node knows of locks, sync objects, the barrier and collectives: where the edges of the
/// graph are.
#[derive(Clone, Copy)]
pub(crate) struct Edges<'a> {
    pub locks: &'a Locks,
    pub sync_objects: &'a SyncObjects,
    pub barrier: &'a Barrier,
    pub collectives: &'a Collectives,
}

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
        self.current = Some(Waiter {
            node: self.me,
            waiting_for,
            site,
            wait: self.waits,
        });
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

    /// Whether it is for this node to ask whether all wait for ever.
    pub fn asks_for_a_stall(&self) -> bool {
        let mut waits = self.current.iter().chain(&self.parked);
        self.current.is_some() && waits.any(|wait| wait.waiting_for.any_node_may_end_it())
    }

    /// The waits that are set aside.
    pub fn parked(&self) -> &[Waiter] {
        &self.parked
    }

    /// The wait that the worker is in.
    pub fn current(&self) -> Option<Waiter> {
        self.current
    }

    /// The worker has waited for long: the first probe, and where it goes.
    pub fn suspect(&self, edges: Edges<'_>) -> Option<(Probe, NodeId)> {
        let me = self.current()?;
        let probe = Probe {
            path: vec![me],
            confirms: Vec::new(),
        };
        Some((probe, self.manager_of(me.waiting_for, edges)?))
    }

    /// At a manager: passes a probe on to the nodes that the last of its path waits for.
    pub fn pass_on(
        &self,
        probe: Probe,
        of: WaitingFor,
        edges: Edges<'_>,
        out: &mut impl SendProbes,
    ) {
        let Edges {
            locks,
            sync_objects,
            barrier,
            collectives,
        } = edges;
        let Some(last) = probe.path.last() else {
            return;
        };
        let awaited: Vec<NodeId> = match of {
            WaitingFor::Lock(lock) => locks.awaited_by(lock, last.node).into_iter().collect(),
            WaitingFor::Barrier(_) if barrier.is_in_rounds() && self.current == Some(*last) => {
                barrier.awaited_in_rounds().into_iter().collect()
            }
            WaitingFor::Barrier(barrier_id) => {
                if !barrier.has_arrived(last.node, barrier_id) {
                    return;
                }
                let missing = barrier.missing_at(barrier_id);
                let next = probe.next_to_confirm();
                missing
                    .filter(|node| next.is_none_or(|next| next == *node))
                    .collect()
            }
            WaitingFor::SyncObject(sync_object) => {
                let awaited = |lock| sync_objects.awaited_by(lock, last.node);
                let holders = sync_object.rw_lock().map(awaited);
                let next = probe.next_to_confirm();
                let holders = holders.into_iter().flatten();
                holders
                    .filter(|node| next.is_none_or(|next| next == *node))
                    .collect()
            }
            WaitingFor::Collective(_) => {
                if self.current != Some(*last) {
                    return;
                }
                let next = probe.next_to_confirm();
                let awaited = collectives.awaited().into_iter();
                awaited
                    .filter(|node| next.is_none_or(|next| next == *node))
                    .collect()
            }
            WaitingFor::Condition(_)
            | WaitingFor::Operation(_)
            | WaitingFor::Process(_)
            | WaitingFor::Begin(_) => Vec::new(),
        };
        for to in awaited {
            out.probe(to, probe.clone(), None);
        }
    }

    /// This node is waited for by the last of the probe's path.
    pub fn reached(&self, mut probe: Probe, edges: Edges<'_>, out: &mut impl SendProbes) {
        let (Some(me), Some(first)) = (self.current, probe.path.first()) else {
            return;
        };
        let still_there = probe
            .path
            .last()
            .is_some_and(|last| match last.waiting_for {
                WaitingFor::Lock(lock) => edges.locks.is_next(lock, last.node),
                WaitingFor::SyncObject(sync_object) => sync_object
                    .rw_lock()
                    .is_some_and(|lock| edges.sync_objects.holds(lock)),
                // What it said in a round may be on its way.
                WaitingFor::Barrier(barrier) => {
                    let told = matches!(barrier, BarrierId::Program(_))
                        && edges.barrier.has_told(last.node, barrier);
                    !told && !edges.barrier.has_passed(barrier)
                }
                // What it sent may be on its way.
                WaitingFor::Collective(wait) => {
                    let next = edges.barrier.next_number();
                    !edges.collectives.has_given(wait, next)
                }
                WaitingFor::Condition(_)
                | WaitingFor::Operation(_)
                | WaitingFor::Process(_)
                | WaitingFor::Begin(_) => false,
            });
        if !still_there {
            return;
        }
        if *first == me {
            self.closed(probe, edges, out);
        } else if probe.path.iter().all(|waiter| waiter.node != self.me) {
            let another_at_barrier = matches!(me.waiting_for, WaitingFor::Barrier(_))
                && !edges.barrier.is_in_rounds()
                && probe
                    .path
                    .iter()
                    .any(|waiter| waiter.waiting_for == me.waiting_for);
            if !another_at_barrier {
                probe.path.push(me);
                self.send_to_manager(probe, me.waiting_for, edges, out);
            }
        }
    }

    fn closed(&self, probe: Probe, edges: Edges<'_>, out: &mut impl SendProbes) {
        let Probe { path, confirms } = probe;
        if confirms.is_empty() {
            let first = path[0];
            let again = Probe {
                path: vec![first],
                confirms: path,
            };
            self.send_to_manager(again, first.waiting_for, edges, out);
        } else if path == confirms {
            let cycle: Arc<[Waiter]> = path.into();
            for waiter in cycle.iter() {
                out.deadlock(waiter.node, Arc::clone(&cycle));
            }
        }
    }

    /// A cycle was found: whether this node is still in the wait that lies on it. The cycle may say
    /// more of what is waited for.
    pub fn is_on(&self, cycle: &[Waiter]) -> bool {
        let is_on = |me: Waiter| {
            let mut waits = cycle.iter().map(|it| (it.node, it.wait));
            waits.any(|wait| wait == (me.node, me.wait))
        };
        self.current.is_some_and(is_on)
    }

    pub fn is_waiting(&self) -> bool {
        self.current.is_some()
    }

    /// Who knows whom this node waits for, if that can be said.
    fn manager_of(&self, waiting_for: WaitingFor, edges: Edges<'_>) -> Option<NodeId> {
        match waiting_for {
            WaitingFor::Lock(lock) => Some(edges.locks.manager(lock)),
            WaitingFor::Barrier(_) if edges.barrier.is_in_rounds() => Some(self.me),
            WaitingFor::Barrier(_) => Some(MANAGER),
            WaitingFor::Collective(_) => Some(self.me),
            _ if waiting_for.any_node_may_end_it() => None,
            WaitingFor::SyncObject(sync_object) => Some(edges.sync_objects.manager(sync_object)),
            WaitingFor::Condition(_)
            | WaitingFor::Operation(_)
            | WaitingFor::Process(_)
            | WaitingFor::Begin(_) => None,
        }
    }

    fn send_to_manager(
        &self,
        probe: Probe,
        of: WaitingFor,
        edges: Edges<'_>,
        out: &mut impl SendProbes,
    ) {
        let Some(to) = self.manager_of(of, edges) else {
            return;
        };
        out.probe(to, probe, Some(of));
    }
}
