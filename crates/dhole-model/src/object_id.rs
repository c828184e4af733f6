use std::fmt;

use serde::{Deserialize, Serialize};

use crate::NodeId;

/// A shared object with operations: the same number on every node, never used again, by no other
/// run of the process either.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ObjectId(pub u64);

/// Above so many bits stands the number of the run, counted from 1.
const OF_RUN_BITS: u32 = 39;

impl ObjectId {
    /// The object that `creator`, one of `nodes` nodes, makes after `made` others in the run of
    /// this number, which is below 2^24.
    pub fn new(run: u64, creator: NodeId, nodes: usize, made: u64) -> ObjectId {
        ObjectId(((run + 1) << OF_RUN_BITS) + made * nodes as u64 + creator.index() as u64)
    }

    /// The node that made the object: whom to ask where it is while nothing is known of it.
    pub fn creator(self, nodes: usize) -> NodeId {
        NodeId::at((self.in_run() % nodes.max(1) as u64) as usize)
    }

    /// Its number in its run.
    fn in_run(self) -> u64 {
        self.0 % (1 << OF_RUN_BITS)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {}", self.in_run())
    }
}
