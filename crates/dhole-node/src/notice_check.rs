//! What no sound node says of what was written: what only a node can tell that knows
//! the ids of the run, and where its worker is.

use dhole_model::NodeId;
use dhole_protocol::{Message, ProtocolError, WriteNotices};

use crate::payload_check::check_payload;
use crate::step::Step;

/// Whether a message tells of objects and arrays whose ids nodes were given, and holds no more
/// bytes than it names.
pub(crate) fn check_message(
    from: NodeId,
    message: &Message,
    step: &mut Step<'_, '_>,
) -> Result<(), ProtocolError> {
    let told = message.news().into_iter().flat_map(WriteNotices::ids);
    match step.heap.cluster().given_to_nobody(told) {
        None => check_payload(from, message.payload(), step),
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
