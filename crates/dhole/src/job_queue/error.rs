//! What can go wrong with a queue of jobs.

use dhole_model::{CallSite, NodeId, ObjectId};
use dhole_node::object::ObjectError;
use dhole_node::{IntoError, SyncError};
use thiserror::Error;

/// A queue of jobs did not take a job, or does not end.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum JobQueueError {
    /// The queue is closed, and the node that pushes has none of its jobs.
    #[error(
        "JobQueue::push to {queue} on {node} at {site}: the queue is closed, so it takes jobs only \
         from a node that has one of its jobs. Push before `close`, or make another queue"
    )]
    Closed {
        /// The queue.
        queue: ObjectId,
        /// The node that pushed.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// The queue is stopped.
    #[error(
        "JobQueue::push to {queue} on {node} at {site}: the queue was stopped, and gives out no \
         more jobs"
    )]
    Stopped {
        /// The queue.
        queue: ObjectId,
        /// The node that pushed.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// No node can push a job, close the queue or complete a job any more, and a node waits.
    #[error(
        "waiting for a job of {queue} on {node} at {site}: no node can push one or end the queue \
         any more. Call `close` after the last `push`, and `complete` every job. {cause}"
    )]
    Endless {
        /// The queue.
        queue: ObjectId,
        /// The node that waits.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Who waits for what.
        cause: Box<SyncError>,
    },
    /// The operation on the queue failed.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

dhole_model::debug_in_words!(JobQueueError);

impl IntoError for JobQueueError {}
