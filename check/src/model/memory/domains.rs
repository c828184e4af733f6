//! Nodes of one domain, which have the same memory.

use dhole_protocol::memory::Permission;

use super::{MemoryFault, Step};

impl Step<'_> {
    /// What the memory of a node holds, which is that of its domain.
    pub(super) fn value(&self, at: usize, of: usize) -> u8 {
        self.moment.nodes[self.model.leader(at)].copies[of].1
    }

    pub(super) fn set_value(&mut self, at: usize, of: usize, value: u8) {
        self.node(self.model.leader(at), |node| node.copies[of].1 = value);
    }

    /// Whether the domain of a writer of a minipage is alone, and no node may do more than its
    /// leader.
    pub(super) fn look(&mut self, of: usize) {
        let may = |at: usize| self.moment.nodes[at].copies[of].0;
        let domain = |at: usize| self.model.leader(at);
        let all = 0..self.moment.nodes.len();
        let has_more = all.clone().any(|at| may(at) > may(domain(at)));
        let mut writers = all.clone().filter(|at| may(*at) == Permission::Write);
        let is_met = writers.any(|writer| {
            let mut readers = all.clone().filter(|at| may(*at) >= Permission::Read);
            readers.any(|reader| domain(reader) != domain(writer))
        });
        if is_met || has_more {
            self.fault(MemoryFault::NotAlone);
        }
    }
}
