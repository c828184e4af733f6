use std::fmt;

use serde::{Deserialize, Serialize};

use crate::NodeId;

/// A shared object with operations: the same number on every node, never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ObjectId(pub u64);

impl ObjectId {
    /// The object that `creator`, one of `nodes` nodes, makes after `made` others.
    pub fn new(creator: NodeId, nodes: usize, made: u64) -> ObjectId {
        ObjectId(made * nodes as u64 + creator.index() as u64)
    }

    /// The node that made the object: whom to ask where it is while nothing is known of it.
    pub fn creator(self, nodes: usize) -> NodeId {
        NodeId::at((self.0 % nodes.max(1) as u64) as usize)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {}", self.0)
    }
}
