//! Gates, behind which exclusive objects stay readable for nodes that see this one's memory.

use dhole_model::{Oid, Version};

use super::Protocol;

impl Protocol {
    /// The same protocol, of a node that [publishes](Protocol::publishing), whose exclusive objects
    /// go [behind the gates](crate::Command::Gate) of their chunks.
    pub fn gating(mut self) -> Protocol {
        self.coherence.keep_gates();
        self
    }

    /// The version in which others may read an object behind the gate of its chunk, while the gate
    /// is shut; `None` where it is not to be behind one.
    pub fn gated(&self, oid: Oid) -> Option<Version> {
        self.coherence.gated(oid)
    }

    /// The worker has opened the gate of an object's chunk: it may write what is behind the gate
    /// until [`ShutGate`](crate::Command::ShutGate). Those that somebody may have read were
    /// [passed on](Protocol::was_read), and are behind the gate no longer.
    pub fn opened_gate(&mut self, oid: Oid) {
        self.coherence.opened_gate(oid);
    }
}
