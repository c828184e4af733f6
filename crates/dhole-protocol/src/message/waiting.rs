//! What nodes wait for: the edges of the wait-for graph, and its nodes.

use std::fmt;

use dhole_model::{CallSite, NodeId, ObjectId};
use serde::{Deserialize, Serialize};

use super::passage_bytes;
use crate::{BarrierId, ConditionId, LockId, Passage};

/// What a node waits for, as an edge of the wait-for graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum WaitingFor {
    /// A lock that another node holds or waits for.
    Lock(LockId),
    /// A barrier that not all nodes have reached.
    Barrier(BarrierId),
    /// A read-write lock that others hold, or a permit.
    Gate(Passage),
    /// A condition that another node has to notify.
    Condition(ConditionId),
    /// An operation, until it was executed.
    Operation(Operation),
    /// A process, until it has come to its end.
    Process(Started),
}

/// A process, as an edge of the wait-for graph names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Started {
    /// Where it was started.
    pub on: NodeId,
    /// Its name.
    pub name: CallSite,
    /// Where in the program it was started.
    pub site: CallSite,
}

impl fmt::Display for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Started { on, name, site } = self;
        write!(f, "the process {name} on {on}, started at {site}")
    }
}

/// An operation of an object, as an edge of the wait-for graph names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Operation {
    /// The object.
    pub object: ObjectId,
    /// The names of its type and of the operation.
    pub name: CallSite,
}

impl Operation {
    /// Instead of an object, where the operation is one of the whole run.
    pub const NO_OBJECT: ObjectId = ObjectId(u64::MAX);
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.object == Operation::NO_OBJECT {
            true => write!(f, "{}", self.name),
            false => write!(f, "{} of {}", self.name, self.object),
        }
    }
}

impl WaitingFor {
    /// Whether it is not certain which nodes would have to end the wait.
    pub fn any_node_may_end_it(self) -> bool {
        matches!(
            self,
            WaitingFor::Condition(_)
                | WaitingFor::Gate(Passage::Permit(_))
                | WaitingFor::Operation(_)
                | WaitingFor::Process(_)
        )
    }

    pub(super) fn wire_bytes(self) -> u64 {
        1 + match self {
            WaitingFor::Lock(_) | WaitingFor::Barrier(_) => 8,
            WaitingFor::Gate(passage) => passage_bytes(passage),
            WaitingFor::Condition(_) | WaitingFor::Operation(_) => 16,
            WaitingFor::Process(_) => 18,
        }
    }
}

/// One node on a path of the wait-for graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Waiter {
    /// The node that waits.
    pub node: NodeId,
    /// For what.
    pub waiting_for: WaitingFor,
    /// Where in the program.
    pub site: CallSite,
    /// Which of the node's waits this is; a later wait has a higher number.
    pub wait: u64,
}

impl fmt::Display for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Waiter {
            node,
            waiting_for,
            site,
            ..
        } = self;
        match waiting_for {
            WaitingFor::Lock(lock) => write!(f, "{node} waits for {lock} at {site}"),
            WaitingFor::Barrier(BarrierId::End) => write!(f, "{node} waits at the end of the run"),
            WaitingFor::Barrier(barrier) => write!(f, "{node} waits at {barrier} at {site}"),
            WaitingFor::Gate(passage) => write!(f, "{node} waits for {passage} at {site}"),
            WaitingFor::Condition(condition) => write!(f, "{node} waits on {condition} at {site}"),
            WaitingFor::Operation(operation) => write!(f, "{node} waits for {operation} at {site}"),
            WaitingFor::Process(process) => write!(f, "{node} waits for {process}, at {site}"),
        }
    }
}

impl Waiter {
    pub(super) fn wire_bytes(&self) -> u64 {
        const NODE_SITE_WAIT: u64 = 2 + 8 + 8;
        NODE_SITE_WAIT + self.waiting_for.wire_bytes()
    }

    pub(super) fn all_bytes(waiters: &[Waiter]) -> u64 {
        waiters.iter().map(Waiter::wire_bytes).sum()
    }
}
