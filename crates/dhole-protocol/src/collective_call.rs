//! Calls of collectives and barriers: of which kind they are, and where two nodes differ.

use std::fmt;

use dhole_model::{CallSite, NodeId};
use dhole_wire::Wire;
use serde::{Deserialize, Serialize};

use crate::sync_id::BarrierId;

/// What is done with the values of all nodes.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub enum CollectiveKind {
    /// Node 0's value goes to all.
    Broadcast,
    /// The values are combined, for node 0.
    Reduce,
    /// The values are combined, for all.
    AllReduce,
    /// Node 0 gets all values.
    Gather,
    /// All get all values.
    AllGather,
}

impl CollectiveKind {
    /// The name of the worker's method.
    pub const fn name(self) -> &'static str {
        match self {
            CollectiveKind::Broadcast => "broadcast",
            CollectiveKind::Reduce => "reduce",
            CollectiveKind::AllReduce => "all_reduce",
            CollectiveKind::Gather => "gather",
            CollectiveKind::AllGather => "all_gather",
        }
    }

    /// Whether values go from the nodes to node 0.
    pub fn goes_up(self) -> bool {
        self != CollectiveKind::Broadcast
    }

    /// Whether values go from node 0 to the nodes.
    pub fn goes_down(self) -> bool {
        use CollectiveKind::*;
        matches!(self, Broadcast | AllReduce | AllGather)
    }
}

impl fmt::Display for CollectiveKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a worker waits for in a collective.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub struct CollectiveWait {
    /// Its number.
    pub number: u64,
    /// What is done with the values.
    pub kind: CollectiveKind,
    /// Whether it waits for its children's values, and not for its parent's.
    pub up: bool,
}

impl fmt::Display for CollectiveWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (number {})", self.kind, self.number)
    }
}

/// What a node calls, where all nodes should call the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Called {
    /// A collective.
    Collective(CollectiveKind),
    /// A barrier, or what is one too.
    Barrier,
    /// A value that node 0 makes for all.
    Once,
    /// Nothing more: the program is over.
    End,
}

impl Called {
    /// What a node calls that is at this barrier.
    pub(crate) fn at(barrier: BarrierId) -> Called {
        match barrier {
            BarrierId::End(_) => Called::End,
            BarrierId::Once(_) => Called::Once,
            _ => Called::Barrier,
        }
    }
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Called::Collective(kind) => kind.fmt(f),
            Called::Barrier => f.write_str("a barrier"),
            Called::Once => f.write_str("once"),
            Called::End => f.write_str("nothing more"),
        }
    }
}

/// A call of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CalledAt {
    /// The node.
    pub node: NodeId,
    /// What it calls.
    pub what: Called,
    /// Where in its program.
    pub site: CallSite,
}

/// Two nodes that do not call the same collectives and barriers in the same order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mismatch {
    /// The call of the node that found it.
    pub here: CalledAt,
    /// The call of the other.
    pub there: CalledAt,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { here, there } = self;
        let (node, what, site) = (here.node, here.what, here.site);
        let (other, other_site) = (there.node, there.site);
        match what == there.what {
            true => write!(
                f,
                "{node} calls {what} at {site} with values of another type than {other} does at \
                 {other_site}"
            )?,
            false => write!(
                f,
                "{node} calls {what} at {site}, where {other} calls {} at {other_site}",
                there.what
            )?,
        }
        f.write_str(
            ": all nodes call the same collectives and barriers, in the same order and with values \
             of the same types",
        )
    }
}
