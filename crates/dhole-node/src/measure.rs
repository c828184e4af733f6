//! The part of a program that is measured: what the papers time, and count, are the steps of their
//! programs, without what goes before and what checks the results.

use dhole_model::{CallSite, Counters, LineCosts, NodeId};

use crate::machine::{Fiber, Machine};
use crate::measured::{Measured, Part};
use crate::node::{Node, State};
use crate::sync_error::SyncError;
use crate::worker::Worker;

impl Worker<'_> {
    /// What is measured begins here: a barrier, and from it on, up to [`end_measuring`], the
    /// report counts apart. For this to be exact, no node may need anything from another one
    /// while it waits here: another barrier should go before. Called again, it begins anew.
    ///
    /// ```
    /// # use dhole_node::{Result, Worker};
    /// # fn program(w: &mut Worker<'_>) -> Result<u64> {
    ///     let number = w.once(|w| Ok(w.alloc(7_u64)))?;
    ///     w.begin_measuring()?;
    ///     let seven = *number.get(w);
    ///     w.barrier()?;
    ///     w.end_measuring()?;
    /// #   Ok(seven)
    /// # }
    /// # struct Report { measured_per_node: Option<Vec<dhole_model::Counters>> }
    /// # fn reads(report: Report) {
    /// // In the report of the run:
    /// let measured = report.measured_per_node.expect("both nodes measured");
    /// // Without one-sided reads node 1 asks, and goes to one barrier; node 0 answers, and lets it
    /// // go on.
    /// assert_eq!([measured[0].messages, measured[1].messages], [2, 2]);
    /// assert_eq!(measured[1].fetch_rounds, 1);
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`barrier`](Worker::barrier).
    ///
    /// [`end_measuring`]: Worker::end_measuring
    #[track_caller]
    pub fn begin_measuring(&mut self) -> Result<(), SyncError> {
        let site = CallSite::caller();
        self.counting(|state, _| state.counting.measured = Measured::Behind(None));
        self.arrive(false, site)?;
        self.counting(|state, Now { at, costs, now }| {
            let mut began = match std::mem::take(&mut state.counting.measured) {
                Measured::Behind(Some(began)) => began,
                // A single node sends nothing.
                _ => Box::new(now.clone()),
            };
            began.barriers = now.barriers;
            began.waited_ns = now.waited_ns;
            began.barrier_waited_ns = now.barrier_waited_ns;
            began.computed_ns = now.computed_ns;
            began.phases = now.phases;
            state.counting.measured = Measured::Since(at, Box::new((*began, costs)));
        });
        Ok(())
    }

    /// What is measured ends here; then comes a barrier. For this to be exact, no node may need
    /// anything from another one any more: a barrier that is measured should go before.
    ///
    /// # Errors
    /// As [`barrier`](Worker::barrier).
    #[track_caller]
    pub fn end_measuring(&mut self) -> Result<(), SyncError> {
        let site = CallSite::caller();
        self.counting(|state, Now { at, costs, now }| {
            if let Measured::Since(from, began) = std::mem::take(&mut state.counting.measured) {
                let (counters, before) = *began;
                let mut counters = now.since(&counters);
                counters.phases = counters.phases.within_whole();
                let part = Part {
                    counters,
                    costs: costs.since(&before),
                    ns: [from, at.max(from)],
                };
                state.counting.measured = Measured::Whole(Box::new(part));
            }
        });
        self.arrive(false, site)
    }

    /// Calls `f` with how the counters stand. What is an estimate so far stays as it is.
    fn counting(&self, f: impl FnOnce(&mut State, Now)) {
        let link = &self.link;
        let id: NodeId = link.node.id;
        link.machine.enter(id);
        let (computed_ns, at) = (link.machine.computed(id), link.machine.now(id));
        let processor_ns = link.machine.worker_processor(id);
        let looked_ns = link.machine.processor(id);
        let mut guard = link.node.monitor.lock();
        let (mut heap, state) = guard.split();
        if link.fiber == Fiber::PROGRAM {
            state.counting.phases.worker_had(processor_ns);
        }
        if let Some(looked_ns) = looked_ns {
            state.counting.looks(link.fiber.0, at, looked_ns);
        }
        state.counting.settle();
        let costs = state.costs(&mut heap);
        let mut now = state.counters(heap.store_bytes());
        now.computed_ns = computed_ns;
        now.phases.whole_ns = at;
        now.allotted_bytes = heap.allotted_bytes();
        f(state, Now { at, costs, now });
        drop(guard);
        link.machine.leave(id);
    }
}

/// How the counters of a node stand.
struct Now {
    /// The node's clock.
    at: u64,
    costs: LineCosts,
    now: Counters,
}

impl Node {
    /// The program is over here at this time of the node's clock. The thread that calls is its.
    pub(crate) fn has_ended(&self, now_ns: u64, machine: &dyn Machine) {
        let processor_ns = machine.worker_processor(self.id);
        let mut guard = self.monitor.lock();
        let counting = &mut guard.split().1.counting;
        counting.all.computed_ns = machine.computed(self.id);
        counting.all.waits_ended_by_time += machine.lost_doorbells(self.id);
        counting.phases.worker_had(processor_ns);
        counting.phases.whole(now_ns);
    }

    /// What this node did in the part of the program that was measured, if it came to its end.
    pub(crate) fn measured(&self) -> Option<Part> {
        let mut guard = self.monitor.lock();
        match &guard.split().1.counting.measured {
            Measured::Whole(part) => Some((**part).clone()),
            _ => None,
        }
    }
}
