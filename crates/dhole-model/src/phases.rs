use dhole_macros::{Counts, Variants};
use serde::{Deserialize, Serialize};

/// What a node's worker spends its time on, in the order in which a report names it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, Variants,
)]
#[variants(name)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The program computes, or the runtime works for it without waiting.
    #[variants("computed")]
    Computing,
    /// It waits for objects or elements of arrays that another node sends.
    #[variants("misses")]
    Miss,
    /// It reads objects in the memory of other nodes.
    #[variants("one-sided reads")]
    OneSided,
    /// It waits for a lock, a read-write lock, a semaphore or a condition.
    #[variants("locks")]
    Lock,
    /// It waits for the other nodes, at a barrier or in a collective.
    #[variants("barriers")]
    Barrier,
    /// It waits for an operation on an object, for a process, or for ids.
    #[variants("operations")]
    Operation,
}

/// How long a node spent in each [`Phase`], in nanoseconds of its clock: virtual ones in a
/// simulation. The time of one-sided reads is an estimate from a sample of them. In a sum over
/// nodes each of these is the sum of the nodes' times.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, Counts)]
#[counts(saturating)] // the estimate of one-sided reads may become less
pub struct PhaseTimes {
    /// From the beginning to the end of the program on the node.
    pub whole_ns: u64,
    /// Of those, [`Phase::Miss`].
    pub miss_ns: u64,
    /// [`Phase::OneSided`].
    pub one_sided_ns: u64,
    /// [`Phase::Lock`].
    pub lock_ns: u64,
    /// [`Phase::Barrier`].
    pub barrier_ns: u64,
    /// [`Phase::Operation`].
    pub operation_ns: u64,
    /// A part of the time in which the program did not wait: as much of it as was compared with the
    /// processor's time. None in a simulation.
    pub compared_ns: u64,
    /// The processor's time in that part. Where it is well below [`compared_ns`], other programs or
    /// other nodes had the node's processor.
    ///
    /// [`compared_ns`]: PhaseTimes::compared_ns
    pub processor_ns: u64,
    /// Processor time of the worker's own thread, from the beginning to the end of the program on
    /// the node. None in a simulation.
    pub worker_processor_ns: u64,
    /// Of that, about [`Phase::Miss`]: an estimate from a sample of the waits, as the next three.
    pub miss_processor_ns: u64,
    /// [`Phase::Lock`].
    pub lock_processor_ns: u64,
    /// [`Phase::Barrier`].
    pub barrier_processor_ns: u64,
    /// [`Phase::Operation`].
    pub operation_processor_ns: u64,
}

impl PhaseTimes {
    /// How long the node was in a phase. It computed for what is left of the whole.
    pub fn of(&self, phase: Phase) -> u64 {
        match phase {
            Phase::Computing => self.whole_ns.saturating_sub(self.apart_ns()),
            Phase::Miss => self.miss_ns,
            Phase::OneSided => self.one_sided_ns,
            Phase::Lock => self.lock_ns,
            Phase::Barrier => self.barrier_ns,
            Phase::Operation => self.operation_ns,
        }
    }

    /// All phases but computing.
    fn apart_ns(&self) -> u64 {
        self.waited_ns().saturating_add(self.one_sided_ns)
    }

    /// All phases that are waits.
    pub fn waited_ns(&self) -> u64 {
        let waits = [self.lock_ns, self.barrier_ns, self.operation_ns];
        waits.into_iter().fold(self.miss_ns, u64::saturating_add)
    }

    /// The same, in which one-sided reads, whose time is an estimate, take no more than the waits
    /// leave of the whole.
    #[must_use]
    pub fn within_whole(self) -> PhaseTimes {
        let most = self.whole_ns.saturating_sub(self.waited_ns());
        PhaseTimes {
            one_sided_ns: self.one_sided_ns.min(most),
            ..self
        }
    }

    /// How long the worker's own thread had a processor in a phase; `None` where that is not known.
    /// A one-sided read does not wait: it has a processor for all of its time.
    pub fn processor_of(&self, phase: Phase) -> Option<u64> {
        let waits = [Phase::Miss, Phase::Lock, Phase::Barrier, Phase::Operation];
        let all_ns = self.worker_processor_ns;
        let apart_ns = waits.map(|wait| *self.processor_in(wait));
        let apart_ns = apart_ns.into_iter().fold(0, u64::saturating_add);
        let not_waiting_ns = all_ns.saturating_sub(apart_ns);
        let read_ns = self.one_sided_ns.min(not_waiting_ns);
        let ns = match phase {
            Phase::Computing => not_waiting_ns - read_ns,
            Phase::OneSided => read_ns,
            wait => *self.processor_in(wait),
        };
        (all_ns > 0).then_some(ns)
    }

    /// The processor's time in a phase that is a wait; the whole otherwise.
    fn processor_in(&self, wait: Phase) -> &u64 {
        match wait {
            Phase::Miss => &self.miss_processor_ns,
            Phase::Lock => &self.lock_processor_ns,
            Phase::Barrier => &self.barrier_processor_ns,
            Phase::Operation => &self.operation_processor_ns,
            Phase::Computing | Phase::OneSided => &self.worker_processor_ns,
        }
    }

    /// The time of a phase that ends a wait.
    ///
    /// # Panics
    /// For [`Phase::Computing`], which is what is left.
    pub fn of_mut(&mut self, phase: Phase) -> &mut u64 {
        match phase {
            Phase::Computing => panic!("a node computes for what is left of its time"),
            Phase::Miss => &mut self.miss_ns,
            Phase::OneSided => &mut self.one_sided_ns,
            Phase::Lock => &mut self.lock_ns,
            Phase::Barrier => &mut self.barrier_ns,
            Phase::Operation => &mut self.operation_ns,
        }
    }

    /// The part of its computing for which the node had a processor, between 0 and 1, where that
    /// is known.
    pub fn processor_share(&self) -> Option<f64> {
        let share = self.processor_ns as f64 / self.compared_ns as f64;
        (self.compared_ns > 0).then_some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_computes_for_what_is_left_of_its_time() {
        let one = PhaseTimes {
            whole_ns: 100,
            miss_ns: 10,
            one_sided_ns: 5,
            lock_ns: 3,
            barrier_ns: 20,
            operation_ns: 2,
            compared_ns: 50,
            processor_ns: 25,
            worker_processor_ns: 70,
            miss_processor_ns: 8,
            lock_processor_ns: 1,
            barrier_processor_ns: 12,
            operation_processor_ns: 2,
        };
        let processor = Phase::ALL.map(|phase| one.processor_of(phase));
        assert_eq!(processor, [42, 8, 5, 1, 12, 2].map(Some));
        assert_eq!(PhaseTimes::default().processor_of(Phase::Miss), None);
        let sum: u64 = Phase::ALL.iter().map(|phase| one.of(*phase)).sum();
        assert_eq!((one.of(Phase::Computing), sum), (60, 100));
        assert_eq!(one.processor_share(), Some(0.5));
        let mut two = one;
        two.add(&one);
        assert_eq!(two.of(Phase::Computing), 120);
        assert_eq!(two.since(&one), one);
        assert_eq!(PhaseTimes::default().processor_share(), None);
    }
}
