//! What can go wrong with a process.

use dhole_model::{CallSite, NodeId};
use dhole_protocol::objects::Refusal;
use thiserror::Error;

use crate::sync_error::SyncError;

/// A process could not be started, or did not come to a good end.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum ProcessError {
    /// It was not started.
    #[error("starting {name} from {node} at {site}: {cause}")]
    NotStarted {
        /// The function that it was to run.
        name: &'static str,
        /// The node of the worker that tried.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Why.
        cause: Refusal,
    },
    /// It panicked, or returned an error, or its result did not arrive.
    #[error("the process {name} on {on}, started from {node} at {site}: {cause}")]
    Ended {
        /// The function that it ran.
        name: &'static str,
        /// Where it ran.
        on: NodeId,
        /// The node of the worker that started it.
        node: NodeId,
        /// Where in the program it was started.
        site: CallSite,
        /// Why.
        cause: Refusal,
    },
    /// The handle is of a process that another worker has started.
    #[error("waiting on {node} at {site} for the process {name}, which another worker has started")]
    NotHere {
        /// The function that it runs.
        name: &'static str,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// It will never end, or the run has ended meanwhile.
    #[error(transparent)]
    Sync(#[from] SyncError),
}

dhole_model::debug_in_words!(ProcessError);
