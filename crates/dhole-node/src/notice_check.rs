//! What no sound node says of what was written: what only a node can tell that knows
//! the ids of the run, and where its worker is.

use dhole_model::NodeId;
use dhole_protocol::{Message, ProtocolError, WriteNotices};

use crate::step::Step;

/// Whether a message tells of objects and arrays whose ids nodes were given.
pub(crate) fn check_ids(
    from: NodeId,
    message: &Message,
    step: &Step<'_, '_>,
) -> Result<(), ProtocolError> {
    let told = message.news().into_iter().flat_map(WriteNotices::ids);
    match step.heap.cluster().given_to_nobody(told) {
        None => Ok(()),
        Some(ids) => Err(ProtocolError::UnknownIds { from, ids }),
    }
}

/// Notices came though the worker computes: its sender says what no sound node says.
pub(crate) fn not_awaited(from: NodeId) -> ProtocolError {
    ProtocolError::BadMessage {
        from,
        what: "news that its worker did not wait for",
    }
}
