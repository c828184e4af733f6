//! Why collectives fail.

use dhole_model::{CallSite, Counted, NodeId};
use dhole_protocol::CollectiveKind;
use thiserror::Error;

use crate::sync_error::SyncError;

/// A collective failed.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum CollectiveError {
    /// Waiting for the other nodes failed, or they call something else.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// Node 0 is alone within what a `once` runs.
    #[error("{kind} on {node} at {site}, within the once at {outer}: node 0 alone is there")]
    WithinOnce {
        /// The collective.
        kind: CollectiveKind,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Where the `once` is.
        outer: CallSite,
    },
    /// The tree along which values travel has every node in it.
    #[error(
        "{kind} on {node} at {site}: a run that survives the loss of nodes has no collectives; \
         keep what is shared in a replicated object"
    )]
    Survives {
        /// The collective.
        kind: CollectiveKind,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// There is no such node to have the values.
    #[error(
        "scatter on {node} at {site}: there is no {from}: the run has {}",
        Counted(*nodes as u64, "node", "nodes")
    )]
    NoSuchNode {
        /// The node that was to have them.
        from: NodeId,
        /// The node that calls.
        node: NodeId,
        /// How many there are.
        nodes: usize,
        /// Where in the program.
        site: CallSite,
    },
    /// A value for each node was wanted.
    #[error(
        "{kind} on {node} at {site}: {} for {}: pass one for each",
        Counted(*parts as u64, "value", "values"),
        Counted(*nodes as u64, "node", "nodes")
    )]
    Parts {
        /// The collective.
        kind: CollectiveKind,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// How many values were passed.
        parts: usize,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A value cannot be serialised.
    #[error("{kind} on {node} at {site}: serialising a {type_name}: {cause}")]
    Unserialisable {
        /// The collective.
        kind: CollectiveKind,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// The type of the value.
        type_name: &'static str,
        /// The serialiser's own words.
        cause: String,
    },
    /// What a node sends is longer than a message of a collective may be.
    #[error(
        "{kind} on {node} at {site}: a message of {bytes} bytes, and the most is {most}: share \
         large data in an array, of which every node fetches what it touches"
    )]
    TooLong {
        /// The collective.
        kind: CollectiveKind,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// How long it is.
        bytes: usize,
        /// The most that one message carries.
        most: usize,
    },
    /// What came is no such value.
    #[error("{kind} on {node} at {site}: what {from} sent is no {type_name}: {cause}")]
    Malformed {
        /// The collective.
        kind: CollectiveKind,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Whose message it came with.
        from: NodeId,
        /// The type that was to come.
        type_name: &'static str,
        /// What is wrong.
        cause: String,
    },
}

dhole_model::debug_in_words!(CollectiveError);
