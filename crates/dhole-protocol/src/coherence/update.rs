//! The update protocol, for objects and for elements of arrays: a release pushes what was written
//! to those that read it last.
//!
//! A node joins the *copyset* of a region when it fetches it from its last writer, and stays in it
//! from push to push until it says that it does not read any more, or another node writes it. What
//! is pushed waits in the [inbox](super::inbox) of its receiver. All else is as under
//! [lazy](super::lazy).

use dhole_model::{NodeId, OidRange};

use crate::coherence::region::{Region, RegionsByNode};

/// The nodes that read last what this node wrote.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct CopySets<R: Region>(RegionsByNode<R, bool>);

impl<R: Region> Default for CopySets<R> {
    fn default() -> Self {
        CopySets(RegionsByNode::default())
    }
}

impl<R: Region> CopySets<R> {
    /// Whether no region has readers.
    pub fn are_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The nodes that a new version of a region is sent to, each with the parts that it reads.
    pub fn of(&self, region: R) -> impl Iterator<Item = (NodeId, R)> {
        self.0.by_node(region)
    }

    /// A node has fetched the region here, or is to get it.
    pub fn join(&mut self, region: R, reader: NodeId) {
        self.0.update(region, reader, |_, reads| *reads = true);
    }

    /// A node does not read the region any more.
    pub fn leave(&mut self, region: R, reader: NodeId) {
        self.0.update(region, reader, |_, reads| *reads = false);
    }

    /// Another node has written the region: its readers fetch it there.
    pub fn forget(&mut self, region: R) {
        self.0.change_all(region, |_, _, reads| *reads = false);
    }

    /// The regions with these ids were freed.
    pub fn freed(&mut self, ids: OidRange) {
        self.0.forget(ids);
    }
}

#[cfg(test)]
mod tests {
    use dhole_model::{Elements, Oid};

    use super::*;

    #[test]
    fn readers_join_once_and_leave_part_by_part() {
        let mut copysets = CopySets::default();
        let part = |range| Elements::new(Oid(64), range);
        for reader in [2, 1, 2] {
            copysets.join(part(0..9), NodeId(reader));
        }
        copysets.leave(part(3..6), NodeId(1));
        let readers: Vec<_> = copysets.of(part(2..9)).collect();
        let [one, two] = [NodeId(1), NodeId(2)];
        assert_eq!(
            readers,
            [(one, part(2..3)), (one, part(6..9)), (two, part(2..9))]
        );
        copysets.forget(part(0..9));
        assert_eq!(copysets, CopySets::default());
    }
}
