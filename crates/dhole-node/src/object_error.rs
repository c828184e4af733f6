//! What can go wrong with an operation.

use dhole_model::{CallSite, NodeId, ObjectId};
use dhole_protocol::objects::Refusal;
use thiserror::Error;

use crate::sync_error::SyncError;

/// An operation on a shared object failed.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum ObjectError {
    /// The operation was not executed, or did not come to its end.
    #[error("{operation} of {object} on {node} at {site}: {cause}")]
    Refused {
        /// The operation, with its type.
        operation: &'static str,
        /// The object.
        object: ObjectId,
        /// The node that called it.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Why.
        cause: Refusal,
    },
    /// An object could not be made.
    #[error("making an object ({type_name}) on {node} at {site}: {cause}")]
    NotMade {
        /// Its type.
        type_name: &'static str,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Why.
        cause: Refusal,
    },
    /// The operation waits for ever, or the run has ended meanwhile.
    #[error(transparent)]
    Sync(#[from] SyncError),
}

dhole_model::debug_in_words!(ObjectError);
