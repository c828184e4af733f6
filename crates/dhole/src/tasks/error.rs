//! What can go wrong with tasks.

use dhole_model::{CallSite, NodeId, ObjectId};
use dhole_node::object::ObjectError;
use dhole_node::{IntoError, Worker};
use thiserror::Error;

/// Tasks cannot be made, or a task was not taken.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum TasksError {
    /// As many tasks wait on the node as may.
    #[error(
        "pushing a task of {tasks} on {node} at {site}: the most that may wait there is {most}, \
         and so many do. A task that makes fewer at a time needs less memory; `Tasks::bounded` \
         sets the limit"
    )]
    Full {
        /// The first of the tasks' objects.
        tasks: ObjectId,
        /// The node that pushed.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// How many may wait on a node.
        most: u64,
    },
    /// Tasks on a lost node would be lost with it.
    #[error(
        "making tasks on {node} at {site}: a run that survives the loss of nodes has none, for \
         those of a lost node would be lost; a `JobQueue` gives out its jobs again"
    )]
    Survives {
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// A node divides other numbers than node 0, or divides them otherwise.
    #[error(
        "for_each on {node} at {site}: node 0 calls it with another range or schedule. All nodes \
         call it with the same"
    )]
    Differ {
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// An operation on the tasks of a node failed.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

dhole_model::debug_in_words!(TasksError);

impl TasksError {
    /// An error of the caller's line where the run survives the loss of nodes.
    #[track_caller]
    pub(super) fn unless_nodes_stay(w: &Worker<'_>) -> Result<(), TasksError> {
        let (node, site) = (w.node(), CallSite::caller());
        match w.survives() {
            true => Err(TasksError::Survives { node, site }),
            false => Ok(()),
        }
    }
}

impl IntoError for TasksError {}
