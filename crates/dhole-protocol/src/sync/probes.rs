//! Probes that nodes send each other to find that they wait for ever.

use std::sync::Arc;

use dhole_model::NodeId;

use crate::sync::quiescence_probe::QuiescenceProbe;
use crate::waiting::{Waiter, WaitingFor};

/// A probe on its way along the wait-for graph.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Probe {
    pub path: Vec<Waiter>,
    pub confirms: Vec<Waiter>,
}

impl Probe {
    /// The node that must come next for the probe to confirm its cycle.
    pub fn next_to_confirm(&self) -> Option<NodeId> {
        let next = self.confirms.get(self.path.len()).or(self.confirms.first());
        next.map(|waiter| waiter.node)
    }
}

/// How a step sends probes, and what they have found.
pub(crate) trait SendProbes {
    /// Sends a probe to a node: one that the last of its path waits for, or the manager of what
    /// that one waits for.
    fn probe(&mut self, to: NodeId, probe: Probe, at_manager_of: Option<WaitingFor>);

    /// Sends a quiescence probe to a node.
    fn quiescence_probe(&mut self, to: NodeId, probe: QuiescenceProbe);

    /// Tells a node that these waits never end.
    fn deadlock(&mut self, to: NodeId, waits: Arc<[Waiter]>);
}
