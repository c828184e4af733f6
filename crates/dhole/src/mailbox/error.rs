//! What can go wrong with a message.

use dhole_model::{CallSite, Counted, NodeId};
use dhole_node::object::ObjectError;
use dhole_node::{IntoError, SyncError};
use thiserror::Error;

/// A message was not sent, or none was received.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum MailboxError {
    /// The run has no such node.
    #[error(
        "{doing} {other} on {node} at {site}: the run has {}",
        Counted(*nodes as u64, "node", "nodes")
    )]
    NoNode {
        /// `sending to` or `receiving from`.
        doing: &'static str,
        /// The node that there is not.
        other: NodeId,
        /// The node that called.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// How many nodes there are.
        nodes: usize,
    },
    /// The other node is lost, and has sent no other message.
    #[error("{doing} {other} on {node} at {site}: that node is lost")]
    Lost {
        /// `sending to` or `receiving from`.
        doing: &'static str,
        /// The node that is lost.
        other: NodeId,
        /// The node that called.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
    },
    /// No node can send the message any more, and this node waits for it.
    #[error(
        "waiting for a message{} in the mailbox of {node} at {site}: no node can send one any \
         more. {cause}",
        of(from)
    )]
    Endless {
        /// The node whose message it is to be, if that matters.
        from: Option<NodeId>,
        /// The node that waits.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// Which nodes wait for what.
        cause: Box<SyncError>,
    },
    /// The operation on the mailbox failed.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

dhole_model::debug_in_words!(MailboxError);

impl IntoError for MailboxError {}

fn of(from: &Option<NodeId>) -> String {
    from.map_or_else(String::new, |from| format!(" of {from}"))
}
