//! What can go wrong with a name.

use std::sync::Arc;

use dhole_model::{CallSite, NodeId};
use thiserror::Error;

use super::table::{LONGEST_NAME, MOST_NAMES};
use crate::into_error::IntoError;
use crate::object_error::ObjectError;
use crate::sync_error::SyncError;

/// A call about a name failed.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// A value is bound to the name, or a node makes one.
    #[error(
        "binding the name {name:?} on {node} at {site}: {by} has taken it, at {at}. Bind another \
         name, `unbind` it first, or use `bind_or_get`"
    )]
    Taken {
        /// The name.
        name: Arc<str>,
        /// The node that called.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// The node that has the name.
        by: NodeId,
        /// Where in the program it took the name.
        at: CallSite,
    },
    /// No value is bound to the name.
    #[error(
        "the name {name:?} on {node} at {site}: no value is bound to it{}",
        did_you_mean(similar)
    )]
    NoSuch {
        /// The name.
        name: Arc<str>,
        /// The node that called.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// A name that is bound and differs little.
        similar: Option<Arc<str>>,
    },
    /// A value of another type is bound to the name.
    #[error(
        "the name {name:?} on {node} at {site}: a {asked_as} was asked for, and {by} has bound a \
         {bound_as} at {at}"
    )]
    OtherType {
        /// The name.
        name: Arc<str>,
        /// The node that called.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// The type of the value.
        bound_as: Arc<str>,
        /// The type that was asked for.
        asked_as: &'static str,
        /// The node that bound it.
        by: NodeId,
        /// Where in the program.
        at: CallSite,
    },
    /// The name or the value is too long.
    #[error(
        "the name {name:?} on {node} at {site}: the {what} has {bytes} bytes, and may have {most}"
    )]
    TooLong {
        /// `name` or `value`.
        what: &'static str,
        /// The name, or how it begins.
        name: Arc<str>,
        /// The node that called.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// How many bytes it has.
        bytes: usize,
        /// How many it may have.
        most: usize,
    },
    /// The run has as many names as it may have.
    #[error(
        "binding the name {name:?} on {node} at {site}: the run has {MOST_NAMES} names, the most"
    )]
    TooMany {
        /// The name.
        name: Arc<str>,
        /// The node that called.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// The value cannot be written as bytes, or the bytes are no such value.
    #[error("the name {name:?} on {node} at {site}: {cause}")]
    Value {
        /// The name.
        name: Arc<str>,
        /// The node that called.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// What is wrong with it.
        cause: Arc<str>,
    },
    /// No node can bind the name any more, and this node waits for it.
    #[error(
        "waiting for the name {name:?} on {node} at {site}: no node can bind it any more. {cause}"
    )]
    Endless {
        /// The name.
        name: Arc<str>,
        /// The node that waits.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Which nodes wait for what.
        cause: Box<SyncError>,
    },
    /// The operation on the table of names failed.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

dhole_model::debug_in_words!(NameError);

impl IntoError for NameError {}

fn did_you_mean(similar: &Option<Arc<str>>) -> String {
    match similar {
        Some(similar) => format!(". {similar:?} is bound"),
        None => String::new(),
    }
}

/// So much of a name that is too long as one that is not may have.
pub(super) fn shortened(name: &str) -> Arc<str> {
    name[..name.floor_char_boundary(LONGEST_NAME)].into()
}
