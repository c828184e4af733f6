//! Why acquiring, releasing or waiting fails.

use std::sync::Arc;

use dhole_heap::Foreign;
use dhole_model::{CallSite, NodeId, Oid};
use dhole_protocol::group::Ending;
use dhole_protocol::objects::Refusal;
use dhole_protocol::{AbortReason, ConditionId, ProtocolError, RwLockId, Waiter, WaitingFor};
use thiserror::Error;

use crate::holding::Holding;
use crate::race::RaceReport;

/// A node holds more shared objects than the machine has memory for.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error("the pages of shared objects are {held_bytes} bytes, and memory is for {limit_bytes}")]
pub struct OutOfMemory {
    /// Bytes of the pages that hold objects.
    pub held_bytes: u64,
    /// Bytes for which there is memory.
    pub limit_bytes: u64,
}

/// The run ended on another node before an operation could finish here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunEnded {
    /// The node on which it ended.
    pub on: NodeId,
    /// Why.
    pub reason: AbortReason,
}

impl RunEnded {
    /// Whether this node has ended the run, for a reason of its own.
    pub(crate) fn is_own(&self, node: NodeId) -> bool {
        self.on == node && !matches!(self.reason, AbortReason::Lost(_))
    }
}

impl std::fmt::Display for RunEnded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.reason {
            AbortReason::Panicked(words) => write!(f, "{} panicked: {words}", self.on),
            AbortReason::Failed(words) => write!(f, "{} failed: {words}", self.on),
            AbortReason::Deadlocked(_) => write!(f, "{} is in a deadlock", self.on),
            AbortReason::Lost(how) => write!(f, "{} was lost: {how}", self.on),
        }
    }
}

/// Acquiring, releasing or waiting failed.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum SyncError {
    /// All nodes' programs take part in it, and no process that was started during the run.
    #[error(
        "{what} on {node} at {site}, in a process that was started during the run: only the \
             program itself takes part"
    )]
    InProcess {
        /// What.
        what: &'static str,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// This node waits for itself, through others.
    #[error("{node} is in a deadlock: {}", cycle_text(cycle))]
    Deadlock {
        /// The node that reports it.
        node: NodeId,
        /// Who waits for what, each for the next and the last for the first.
        cycle: Arc<[Waiter]>,
    },
    /// A lock is released by another worker than the one that acquired it.
    #[error("releasing {holding} on {node} at {site}: another worker acquired it at {acquired}")]
    NotHere {
        /// The lock.
        holding: Holding,
        /// The node that would release it.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Where it was acquired.
        acquired: CallSite,
    },
    /// A condition is waited on with another lock than its own; that lock counts as dropped.
    #[error(
        "waiting on {condition} on {node} at {site}: it was given {holding}, acquired at {acquired}"
    )]
    OtherLock {
        /// The condition.
        condition: ConditionId,
        /// The node that would wait.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// The lock that it was given.
        holding: Holding,
        /// Where that was acquired.
        acquired: CallSite,
    },
    /// The condition of a read-write lock is waited on with another lock; that lock counts as
    /// dropped.
    #[error(
        "waiting on the condition of {lock} on {node} at {site}: it was given {holding}, acquired \
         at {acquired}"
    )]
    OtherRwLock {
        /// The lock that has the condition.
        lock: RwLockId,
        /// The node that would wait.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// The lock that it was given.
        holding: Holding,
        /// Where that was acquired.
        acquired: CallSite,
    },
    /// A lock, read-write lock, semaphore or condition was made in another run.
    #[error("using a {what} on {node} at {site}: it was made in another run")]
    OtherRun {
        /// What it is.
        what: &'static str,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// The object whose lock is used is none of this cluster.
    #[error("using the lock of {oid} on {node} at {site}: {cause}")]
    NoObject {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// What the id is instead.
        cause: Foreign,
    },
    /// A task, or what a node does with its numbers of a `for_each`, waits for all nodes.
    #[error(
        "{what} on {node} at {site}, within what the call at {outer} runs: it would wait for the \
         other nodes, which run other tasks. Return what it needs from the tasks, and call it \
         after the call at {outer}"
    )]
    InTask {
        /// What waits for all nodes.
        what: &'static str,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Where the tasks are run.
        outer: CallSite,
    },
    /// Node 0 calls `once` within what another `once` runs there alone: it would wait for all
    /// nodes, and they wait for it.
    #[error("once on {node} at {site}, within the one at {outer}: node 0 alone is there")]
    OnceWithinOnce {
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Where the outer one is.
        outer: CallSite,
    },
    /// This node found a race, and [races are errors](dhole_protocol::Races::Fail).
    #[error("synchronising on {node} at {site}: {race}")]
    Race {
        /// The node that found it.
        node: NodeId,
        /// Where it synchronised.
        site: CallSite,
        /// The race.
        race: Arc<RaceReport>,
    },
    /// Since an allocation the node holds more shared objects than it has memory for.
    #[error("calling the runtime on {node} at {site}: {cause}")]
    Memory {
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// How much.
        cause: OutOfMemory,
    },
    /// In a run that survives the loss of nodes: this node is no part of it any more.
    #[error("calling the runtime on {node} at {site}: this node is out of the run: {why}")]
    Out {
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Why.
        why: Ending,
    },
    /// In a run that survives the loss of nodes: those that are left cannot meet.
    #[error("waiting for all nodes on {node} at {site}: {cause}")]
    Apart {
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Why.
        cause: Refusal,
    },
    /// The run was ended on another node.
    #[error("waiting on {node} at {site}: {ended}")]
    Ended {
        /// The node that waited.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// How the run ended.
        ended: RunEnded,
    },
    /// The program or a peer did what it must not.
    #[error("{node}: {cause}")]
    Protocol {
        /// The node.
        node: NodeId,
        /// What.
        cause: ProtocolError,
    },
}

dhole_model::debug_in_words!(OutOfMemory, SyncError);

/// So many different waits of a cycle are written, and the number of the rest.
const MOST_WAITS: usize = 16;

/// The waits of a cycle, each once. The limits that others have come to are written first.
pub(crate) fn cycle_text(cycle: &[Waiter]) -> String {
    let is_limit = |wait: &&Waiter| matches!(wait.waiting_for, WaitingFor::Begin(_));
    let limits = cycle.iter().filter(is_limit);
    let all = limits.chain(cycle.iter().filter(|wait| !is_limit(wait)));
    let (mut waits, mut more): (Vec<(String, usize)>, usize) = (Vec::new(), 0);
    for wait in all.map(Waiter::to_string) {
        match waits.iter().position(|(known, _)| *known == wait) {
            Some(at) => waits[at].1 += 1,
            None if waits.len() < MOST_WAITS => waits.push((wait, 1)),
            None => more += 1,
        }
    }
    let times = |(wait, times): (String, usize)| match times {
        1 => wait,
        _ => format!("{wait} ({times} processes)"),
    };
    let mut waits: Vec<String> = waits.into_iter().map(times).collect();
    waits.extend((more > 0).then(|| match more {
        1 => "and 1 more waits".to_owned(),
        _ => format!("and {more} more wait"),
    }));
    waits.join(", ")
}
