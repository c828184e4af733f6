//! What can go wrong, one type for each kind of operation.

use std::sync::Arc;

use dhole_heap::{Absent, AllocError, BindError, BorrowError, Foreign};
use dhole_model::{CallSite, Coherence, Counted, Elements, NodeId, Oid};
use dhole_protocol::group::Ending;
use dhole_protocol::{ProtocolError, Waiter};
use thiserror::Error;

use crate::collective_error::CollectiveError;
use crate::machine::{LostNode, StartError};
use crate::object_error::ObjectError;
use crate::process_error::ProcessError;
use crate::race::RaceReport;
use crate::set_by::Said;
use crate::sync_error::{OutOfMemory, RunEnded, SyncError, cycle_text};

/// TreadMarks keeps whole pages consistent, whatever lies on them, so it is the protocol of all
/// objects of a run or of none.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "objects under {asked} on {node} at {site}: the run is under {run}, and treadmarks is a \
     setting of a whole run (Config::coherence)"
)]
pub struct MixedProtocols {
    /// The protocol that was asked for.
    pub asked: Coherence,
    /// The run's.
    pub run: Coherence,
    /// The node.
    pub node: NodeId,
    /// Where in the program.
    pub site: CallSite,
}

/// A protocol that the program brings was chosen for what such protocols cannot do yet.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "{what} under {protocol} on {node} at {site}: a protocol that the program brings keeps nothing \
     consistent in a run that survives the loss of nodes, and arrays only if it has several writers"
)]
pub struct ProtocolLacks {
    /// The protocol.
    pub protocol: Coherence,
    /// What it cannot do.
    pub what: &'static str,
    /// The node.
    pub node: NodeId,
    /// Where in the program.
    pub site: CallSite,
}

/// Reading or writing an object failed. `get` and `get_mut` unwind with it to the node's
/// boundary, and `run` returns it; `try_get` and `try_get_mut` return it at once.
#[derive(Clone, PartialEq, Error)]
pub enum AccessError {
    /// The reference is not one of this cluster.
    #[error("accessing {oid} ({type_name}) on {node} at {site}: {cause}")]
    Foreign {
        /// The object.
        oid: Oid,
        /// Its type.
        type_name: &'static str,
        /// The node that accessed it.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Where the reference comes from.
        cause: Foreign,
    },
    /// The object is of another type than the reference says.
    #[error("accessing {oid} on {node} at {site}: {cause}")]
    Type {
        /// The object.
        oid: Oid,
        /// The node that accessed it.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Which types.
        cause: BindError,
    },
    /// The protocol here met something that must not be.
    #[error("accessing {oid} on {node} at {site}: {cause}")]
    Protocol {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// What.
        cause: ProtocolError,
    },
    /// This node waits for itself, through others.
    #[error(
        "accessing {oid} on {node}, which is in a deadlock: {}",
        cycle_text(cycle)
    )]
    Deadlock {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
        /// Who waits for what, each for the next and the last for the first.
        cycle: Arc<[Waiter]>,
    },
    /// The object was freed.
    #[error(
        "accessing {oid} ({type_name}) on {node} at {site}: {}",
        freed_text(by, at)
    )]
    Freed {
        /// The object.
        oid: Oid,
        /// Its type.
        type_name: &'static str,
        /// The node that accessed it.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Who freed it, if that is known here.
        by: Option<NodeId>,
        /// Where in the program, which is known for a while.
        at: Option<CallSite>,
    },
    /// A part of an array was to be freed, or to change protocol.
    #[error(
        "{doing} {elements} ({type_name}) on {node} at {site}: an array is one, with all {len}"
    )]
    PartOfArray {
        /// `freeing` or `switching`.
        doing: &'static str,
        /// The elements that were named.
        elements: Elements,
        /// How many the array has.
        len: u64,
        /// Their type.
        type_name: &'static str,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// Elements of an array are not combined with updates.
    #[error("combining elements of {oid} with updates on {node} at {site}: {why}")]
    NotCombined {
        /// The array.
        oid: Oid,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Why not.
        why: &'static str,
    },
    /// The run ends because this node found a race.
    #[error("accessing {oid} on {node}: {race}")]
    Race {
        /// The object that was accessed.
        oid: Oid,
        /// The node.
        node: NodeId,
        /// The race.
        race: Arc<RaceReport>,
    },
    /// The node holds more shared objects than it has memory for.
    #[error("accessing {oid} on {node} at {site}: {cause}")]
    Memory {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// How much.
        cause: OutOfMemory,
    },
    /// In a run that survives the loss of nodes: this node is no part of it any more.
    #[error("accessing {oid} on {node} at {site}: this node is out of the run: {why}")]
    Out {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Why.
        why: Ending,
    },
    /// The run was ended while the access waited.
    #[error("accessing {oid} on {node} at {site}: {ended}")]
    Ended {
        /// The object.
        oid: Oid,
        /// The node that accessed it.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// How the run ended.
        ended: RunEnded,
    },
}

fn freed_text(by: &Option<NodeId>, at: &Option<CallSite>) -> String {
    let by = by.map_or(String::new(), |node| format!(" by {node}"));
    let at = at.map_or(String::new(), |site| format!(" at {site}"));
    format!("it was freed{by}{at}")
}

/// What a program on a node can end with. `?` turns the runtime's own errors into it, and others as
/// [`IntoError`](crate::IntoError) says.
#[derive(Error)]
pub enum Error {
    /// Reading or writing an object.
    #[error(transparent)]
    Access(AccessError),
    /// Synchronising.
    #[error(transparent)]
    Sync(SyncError),
    /// An operation on an object.
    #[error(transparent)]
    Object(ObjectError),
    /// A value that all nodes have a part in.
    #[error(transparent)]
    Collective(CollectiveError),
    /// Starting a process, or how one ended.
    #[error(transparent)]
    Process(ProcessError),
    /// Borrowing several objects at once.
    #[error(transparent)]
    Borrow(BorrowError<AccessError>),
    /// Reading in a scoped thread what is not present.
    #[error(transparent)]
    Absent(Absent),
    /// Allocating.
    #[error(transparent)]
    Alloc(AllocError),
    /// A protocol that does not go with the run's.
    #[error(transparent)]
    Mixed(MixedProtocols),
    /// A protocol that the program brings, for what it cannot do.
    #[error(transparent)]
    Lacks(ProtocolLacks),
    /// What went wrong on a node in another process, in its own words.
    #[error("{0}")]
    Elsewhere(Arc<str>),
    /// The program's own, with its causes.
    #[error("{}", dhole_model::with_causes(&**.0))]
    Program(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Wraps an error of the program's own: any that `?` turns into a boxed error, one of `anyhow`
    /// or a string too.
    ///
    /// ```
    /// # use dhole_node::{Error, Result};
    /// fn job(jobs: &[u32], number: usize) -> Result<u32> {
    ///     let job = jobs.get(number);
    ///     job.copied().ok_or_else(|| Error::program(format!("there is no job {number}")))
    /// }
    /// assert_eq!(job(&[7], 1).unwrap_err().to_string(), "there is no job 1");
    /// ```
    pub fn program(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Program(error.into())
    }

    /// The waits of the deadlock of which the error tells, if it tells of one.
    pub(crate) fn cycle(&self) -> Option<&Arc<[Waiter]>> {
        match self {
            Error::Sync(SyncError::Deadlock { cycle, .. })
            | Error::Object(ObjectError::Sync(SyncError::Deadlock { cycle, .. }))
            | Error::Process(ProcessError::Sync(SyncError::Deadlock { cycle, .. }))
            | Error::Access(AccessError::Deadlock { cycle, .. })
            | Error::Borrow(BorrowError::Access(AccessError::Deadlock { cycle, .. })) => {
                Some(cycle)
            }
            _ => None,
        }
    }

    /// Whether the error only says that the run was ended on another node.
    pub fn is_consequence(&self) -> bool {
        match self {
            Error::Sync(SyncError::Ended { node, ended, .. })
            | Error::Object(ObjectError::Sync(SyncError::Ended { node, ended, .. }))
            | Error::Collective(CollectiveError::Sync(SyncError::Ended { node, ended, .. }))
            | Error::Process(ProcessError::Sync(SyncError::Ended { node, ended, .. }))
            | Error::Access(AccessError::Ended { node, ended, .. })
            | Error::Borrow(BorrowError::Access(AccessError::Ended { node, ended, .. })) => {
                !ended.is_own(*node)
            }
            _ => false,
        }
    }
}

dhole_model::debug_in_words!(
    MixedProtocols,
    ProtocolLacks,
    AccessError,
    Error,
    ConfigError
);

/// What a function over shared objects returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A setting that no cluster can have.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// Too few or too many nodes.
    #[error("a cluster of {nodes} nodes: the number of nodes is from 1 to {most}")]
    Nodes {
        /// What was asked for.
        nodes: usize,
        /// The most there can be.
        most: usize,
    },
    /// A node that is not in the run is to manage raw memory.
    #[error("{node} is to manage raw memory, and the run has no more nodes than {nodes}")]
    Manager {
        /// The node.
        node: NodeId,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A variable of the environment asks for what there is not.
    #[error("{variable} is `{value}`: {expected} is expected")]
    Variable {
        /// Which.
        variable: &'static str,
        /// What it says.
        value: String,
        /// What it could say.
        expected: String,
    },
    /// The environment has a variable that is none of dhole's.
    #[error(transparent)]
    UnknownVariable(#[from] dhole_model::UnknownVariable),
    /// The settings of a simulation, given or found in the environment, are impossible.
    #[error("simulating a cluster: {cause}")]
    Simulation {
        /// What is wrong with them.
        cause: String,
    },
    /// The environment asks for what the program is built without.
    #[error(transparent)]
    Feature(#[from] dhole_model::MissingFeature),
    /// Two settings contradict each other.
    #[error("{} contradicts {}: {why}", both[0], both[1])]
    Conflict {
        /// The two.
        both: Box<[Said; 2]>,
        /// Why, and what to do.
        why: &'static str,
    },
    /// Every process has its own space of addresses.
    #[error(
        "the nodes are processes, and {what} needs one space of addresses for all of them: run it \
         on threads, or simulate it"
    )]
    ProcessesPlaceByTouch {
        /// What was asked for.
        what: &'static str,
    },
    /// The file of the run's timeline cannot be written.
    #[error("writing the timeline of the run to {path}: {cause}")]
    Trace {
        /// The file.
        path: String,
        /// The system's error.
        cause: String,
    },
    /// The program was built so that a panic ends the process, and `get` could not unwind.
    #[error(
        "this program is built with panic=abort, under which a failed access cannot unwind: \
         build it with panic=unwind"
    )]
    PanicAbort,
}

/// Why a run gave no result.
#[derive(Error)]
pub enum RunError {
    /// The settings are impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// This process was started as one of a cluster, and could not join it.
    #[error("joining the cluster: {0}")]
    Join(Arc<dhole_join::JoinError>),
    /// The machine could not start the nodes.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is no room for the nodes' tables.
    #[error("starting {nodes} nodes: {cause}")]
    Reserve {
        /// Nodes asked for.
        nodes: usize,
        /// Why.
        cause: dhole_heap::ReserveError,
    },
    /// The process of a node is gone, or was cut off from the others.
    #[error("{lost}")]
    Lost {
        /// The first that was found lost, and how.
        lost: LostNode,
        /// Failures of other nodes that do not follow from this one.
        others: Vec<(NodeId, Error)>,
    },
    /// The program on a node panicked.
    #[error("{node} panicked: {message}")]
    Panicked {
        /// The first node that did.
        node: NodeId,
        /// Its words.
        message: Arc<str>,
        /// Failures of other nodes that do not follow from this one.
        others: Vec<(NodeId, Error)>,
    },
    /// The program on a node ended with an error.
    #[error("{node} failed: {error}")]
    Failed {
        /// The first node that did.
        node: NodeId,
        /// Its error.
        error: Box<Error>,
        /// Failures of other nodes that do not follow from this one: of those that lay on the
        /// same cycle of waits, say.
        others: Vec<(NodeId, Error)>,
    },
}

/// So many failures of other nodes are written, and the number of the rest.
const MOST_OTHERS: usize = 3;

/// What a `main` that returns the error prints: the words of its `Display`, in lines that fit a
/// terminal, and the failures of other nodes.
impl std::fmt::Debug for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        dhole_model::write_error(self, f)?;
        let others = self.others();
        for (node, error) in others.iter().take(MOST_OTHERS) {
            f.write_str("\n")?;
            dhole_model::write_wrapped(&format!("{node} failed too: {error}"), f)?;
        }
        match others.len().saturating_sub(MOST_OTHERS) {
            0 => Ok(()),
            more => write!(
                f,
                "\nand {} failed",
                Counted(more as u64, "more node", "more nodes")
            ),
        }
    }
}

impl RunError {
    /// Failures of other nodes that the error's own words do not tell: who lies on the same cycle
    /// of waits is named there.
    fn others(&self) -> Vec<&(NodeId, Error)> {
        let (cycle, others) = match self {
            RunError::Failed { error, others, .. } => (error.cycle(), others),
            RunError::Lost { others, .. } | RunError::Panicked { others, .. } => (None, others),
            _ => return Vec::new(),
        };
        let told = |error: &Error| cycle.is_some() && error.cycle() == cycle;
        others.iter().filter(|(_, error)| !told(error)).collect()
    }
}
