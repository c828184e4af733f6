//! What can go wrong with tasks.

use dhole_model::{CallSite, NodeId, ObjectId};
use dhole_node::IntoError;
use dhole_node::object::ObjectError;
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
    /// The tree of a run that survives lacks what a lost node was to bring.
    #[error(
        "running a tree of tasks on {node} at {site}: {lost} was lost before it gave its roots. \
         Push the roots of all nodes in `once`, and call `Tasks::reduce`"
    )]
    RootsLost {
        /// The lost node.
        lost: NodeId,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// What tasks came to cannot be written as bytes, or made of them again.
    #[error("combining the results of tasks on {node} at {site}: {cause}")]
    Result {
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// What serde says.
        cause: String,
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

impl IntoError for TasksError {}
