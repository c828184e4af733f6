use dhole_wire::Wire;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most nodes that one cluster may have.
pub const MAX_NODES: usize = 1024;

/// The number of a node in its cluster, counted from 0.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, Wire,
)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The node's place in a table of all nodes.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The node at this place in a table of all nodes.
    ///
    /// # Panics
    /// If `index` is not below [`MAX_NODES`].
    #[inline]
    pub const fn at(index: usize) -> NodeId {
        assert!(index < MAX_NODES, "a node's number is below MAX_NODES");
        NodeId(index as u16)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}
