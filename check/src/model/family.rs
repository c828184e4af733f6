//! What a node tells its protocol of objects at home here that were changed, as in the engine.

use dhole_model::{CallSite, NodeId, Oid, VectorTime};
use dhole_protocol::{Changed, Commands};

use crate::model::node::Around;
use crate::model::{Fault, Node, WriteId};

impl Node {
    pub(crate) fn compare(
        &mut self,
        oid: Oid,
        site: Option<CallSite>,
        around: &mut Around<'_>,
    ) -> Result<(), Fault> {
        let (at, by) = (self.presence(), NodeId::at(self.me));
        let mut changed = Vec::new();
        for (leaf, number) in around.program.leaves(oid).zip(0_u64..) {
            if self.heap.diff(leaf, at)? != WriteId::UNCHANGED {
                changed.push(number);
            }
        }
        self.changed(Changed { oid, by, site }, changed, None, around)
    }

    /// Tells the protocol which leaves were changed, by their numbers in the object.
    pub(crate) fn changed(
        &mut self,
        changed: Changed,
        leaves: Vec<u64>,
        time: Option<&VectorTime>,
        around: &mut Around<'_>,
    ) -> Result<(), Fault> {
        let (mut found, leaves) = (Commands::new(), leaves.into_iter().map(|n| n..n + 1));
        self.protocol
            .changed_at_home(changed, leaves, time, &mut found);
        for command in found {
            if let Some(command) = around.after_bug(command) {
                self.carry_out(command, &mut std::iter::empty(), around)?;
            }
        }
        Ok(())
    }
}
