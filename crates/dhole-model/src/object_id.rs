use std::fmt;

use dhole_wire::Wire;
use serde::{Deserialize, Serialize};

use crate::{NodeId, Oid};

/// The id of a shared object with operations. It is the same on every node and is never used again,
/// not even by another run of the process.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, Wire,
)]
pub struct ObjectId(pub u64);

/// The bits below the number of the run, which is counted from 1.
const OF_RUN_BITS: u32 = 39;

/// The bit that tells the lock of an object from objects with operations.
const OF_LOCK: u64 = 1 << 63;

/// The bits of the home, below the id of the object whose lock it is.
const HOME_BITS: u32 = u16::BITS;

impl ObjectId {
    /// The table of names, which every run has. The objects that nodes make have higher ids.
    pub const NAMES: ObjectId = ObjectId(0);

    /// The id of the object that `creator` makes after `made` others in run `run`. The cluster has
    /// `nodes` nodes, and `run` is below 2^24 - 1.
    pub fn new(run: u64, creator: NodeId, nodes: usize, made: u64) -> ObjectId {
        ObjectId(((run + 1) << OF_RUN_BITS) + made * nodes as u64 + creator.index() as u64)
    }

    /// The lock of an object in the shared space, as what sections are called on: the lock's
    /// number, which has the highest bit. No object with operations has that bit. The home is
    /// below the highest number of a node, and the id below 2^47.
    pub fn of_lock(oid: Oid, home: NodeId) -> ObjectId {
        ObjectId(OF_LOCK | oid.0 << HOME_BITS | u64::from(home.0))
    }

    /// The object whose lock it is, and the home that manages the lock.
    #[inline]
    pub fn lock(self) -> Option<(Oid, NodeId)> {
        let is_lock = self.0 & OF_LOCK != 0;
        is_lock.then_some((Oid((self.0 & !OF_LOCK) >> HOME_BITS), NodeId(self.0 as u16)))
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
            _ => match self.lock() {
                Some((oid, _)) => write!(f, "the lock of {oid}"),
                None => write!(f, "object {}", self.in_run()),
            },
        }
    }
}
