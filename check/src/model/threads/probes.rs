//! The wait-for graph in the model of threads: probes on their way, and what an outsider knows of
//! who waits for ever.

use dhole_model::{CallSite, NodeId};
use dhole_protocol::wait_graph::Wait as _;
use dhole_protocol::{BarrierId, DeadlockProbe, ThreadWait, Waiter, WaitingFor};

use super::{Happening, Moment, Said, Step, ThreadBug, ThreadFault, ThreadModel, ThreadOp, id};

/// The threads that wait when nothing else can happen, and have not looked since.
pub(super) fn last_askers(moment: &Moment, model: &ThreadModel) -> Vec<Happening> {
    let mut all = Vec::new();
    for (at, (node, ops)) in moment.nodes.iter().zip(&model.nodes).enumerate() {
        for (number, (thread, ops)) in node.threads.iter().zip(ops).enumerate() {
            if thread.waits && !thread.told && !thread.asked && thread.done < ops.len() {
                all.push(Happening::Ask(at, number));
            }
        }
    }
    all
}

impl Step<'_> {
    /// A thread has waited for long.
    pub(super) fn asks(&mut self, at: usize, thread: usize) {
        let asker = self.at(at, |node, _| node.machine.edge_of(id(at, thread)));
        if let Some(asker) = asker {
            self.visited(at, Box::new(DeadlockProbe::begin(asker)));
        }
    }

    /// A probe visits a node, or ends there.
    pub(super) fn visited(&mut self, at: usize, mut probe: Box<DeadlockProbe>) {
        if probe.edges.is_over {
            if let Some(waits) = probe.found() {
                let asker = probe.edges.asker;
                self.at(at, |node, out| node.machine.told(&asker, waits, out));
            }
            return;
        }
        let me = NodeId::at(at);
        let worker_ops = self.model.nodes[at].first().map_or(0, Vec::len);
        self.at(at, |node, _| {
            probe.edges.visit(&node.machine);
            if node.machine.computes_beside() {
                probe.edges.finds_computing();
            }
            let worker = node.threads[0];
            if worker.told || worker.done == worker_ops {
                let at_end = WaitingFor::Barrier(BarrierId::End(0));
                let site = CallSite::runtime("the end");
                let wait = Waiter::of_worker(me, at_end, site, 1);
                probe.edges.round.waits.push(wait);
            }
            probe.edges.adds_traffic(node.traffic[0], node.traffic[1]);
        });
        if let Some(bug) = self.model.bug {
            spoils(bug, at, &mut probe);
        }
        let to = (at + 1) % self.moment.nodes.len();
        if probe.edges.pass(me, NodeId::at(to), &[]) {
            self.says(at, NodeId::at(to), Said::Probe(probe));
        }
    }

    /// Where no probe is under way, states are one that differ only in what was sent and received
    /// long ago: the next probe compares sums from its own first visit on.
    pub(super) fn forgets_traffic(&mut self) {
        let parcels = || self.moment.parcels().map(|it| &it.message);
        if parcels().any(|it| matches!(it, Said::Probe(_))) {
            return;
        }
        let counts = self.model.suspects > 0 || self.model.deadlocks;
        let under_way = parcels().filter(|_| counts).count() as u64;
        for at in 0..self.moment.nodes.len() {
            let traffic = [if at == 0 { under_way } else { 0 }, 0];
            if self.moment.nodes[at].traffic != traffic {
                self.at(at, |node, _| node.traffic = traffic);
            }
        }
    }

    /// A thread is told that it waits for ever.
    pub(super) fn is_told(&mut self, at: usize, thread: usize) {
        if !self.model.deadlocks || self.moves()[at][thread] {
            return self.fault(ThreadFault::Deadlock);
        }
        self.at(at, |node, _| {
            let state = &mut node.threads[thread];
            (state.waits, state.told) = (false, true);
            node.machine.ends_beside(id(at, thread));
        });
    }

    /// Which threads of which nodes go on at some time, whatever happens.
    fn moves(&self) -> Vec<Vec<bool>> {
        let nodes = &self.moment.nodes;
        let is_said = |said: &Said| matches!(said, Said::Thread(_));
        let comes = self.moment.parcels().any(|it| is_said(&it.message));
        let mut moves: Vec<Vec<bool>> = nodes
            .iter()
            .map(|it| vec![false; it.threads.len()])
            .collect();
        loop {
            let before = moves.clone();
            for (at, node) in nodes.iter().enumerate() {
                for (number, thread) in node.threads.iter().enumerate() {
                    let ops = &self.model.nodes[at][number];
                    let Some(op) = ops.get(thread.done).filter(|_| !thread.told) else {
                        continue;
                    };
                    let any = comes || before.iter().flatten().any(|moves| *moves);
                    moves[at][number] = !thread.waits
                        || match *op {
                            ThreadOp::Lock(key) => match self.moment.holders.get(&key) {
                                Some(by) => before[by.node().index()][by.number() as usize],
                                None => true,
                            },
                            ThreadOp::Acquire(key) => {
                                any || self.moment.has.get(&key).is_some_and(|has| *has > 0)
                            }
                            _ => any,
                        };
                }
            }
            if moves == before {
                return moves;
            }
        }
    }
}

/// A planted bug changes what a node has added to a probe.
fn spoils(bug: ThreadBug, at: usize, probe: &mut DeadlockProbe) {
    let lacks = |wait: &Waiter| match wait.waiting_for {
        WaitingFor::Thread(ThreadWait::Lock(_)) => bug == ThreadBug::NoEdgeOfLocks,
        WaitingFor::Thread(ThreadWait::Barrier(_)) => bug == ThreadBug::NoEdgeOfBarriers,
        WaitingFor::Thread(ThreadWait::Condition(_)) => bug == ThreadBug::NoEdgeOfConditions,
        WaitingFor::Thread(ThreadWait::Semaphore(_)) => bug == ThreadBug::NoEdgeOfSemaphores,
        _ => false,
    };
    let edges = &mut probe.edges;
    edges.round.waits.retain(|wait| !lacks(wait));
    if bug == ThreadBug::ForgetTraffic {
        (edges.round.sent, edges.round.received) = (0, 0);
    }
    if let (ThreadBug::StaleEdges, Some(first)) = (bug, &edges.first) {
        let stale = first.waits.iter();
        let of_node = stale.filter(|wait| wait.thread().node.index() == at);
        let lacking = of_node.filter(|wait| !edges.round.waits.contains(wait));
        let lacking: Vec<Waiter> = lacking.copied().collect();
        edges.round.waits.extend(lacking);
    }
}
