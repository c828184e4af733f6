use std::fmt;

use dhole_wire::Wire;
use serde::{Deserialize, Serialize};

use crate::NodeId;

/// The id of a shared object with operations. It is the same on every node and is never used again,
/// not even by another run of the process.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, Wire,
)]
pub struct ObjectId(pub u64);

/// The bits below the number of the run, which is counted from 1.
const OF_RUN_BITS: u32 = 39;

impl ObjectId {
    /// The table of names, which every run has. The objects that nodes make have higher ids.
    pub const NAMES: ObjectId = ObjectId(0);

    /// The id of the object that `creator` makes after `made` others in run `run`. The cluster has
    /// `nodes` nodes, and `run` is below 2^24.
    pub fn new(run: u64, creator: NodeId, nodes: usize, made: u64) -> ObjectId {
        ObjectId(((run + 1) << OF_RUN_BITS) + made * nodes as u64 + creator.index() as u64)
    }

    /// The node that made the object. A node that knows nothing of the object asks this one where
    /// it is.
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
        match *self {
            ObjectId::NAMES => f.write_str("the table of names"),
            _ => write!(f, "object {}", self.in_run()),
        }
    }
}
