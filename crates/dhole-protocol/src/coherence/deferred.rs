//! Requests for bytes that wait for the worker's next call.

use std::collections::VecDeque;

use dhole_model::NodeId;

use crate::command::{Command, Commands};
use crate::error::ProtocolError;

/// Keeps a request, of which each other node has at most one open. `asker` says whose it is, and
/// `what` is said of a second one.
///
/// # Errors
/// [`ProtocolError::BadMessage`] for a second one.
pub(super) fn defer<R>(
    deferred: &mut VecDeque<R>,
    request: R,
    asker: impl Fn(&R) -> NodeId,
    what: &'static str,
    out: &mut Commands,
) -> Result<(), ProtocolError> {
    let from = asker(&request);
    if deferred.iter().any(|other| asker(other) == from) {
        return Err(ProtocolError::BadMessage { from, what });
    }
    deferred.push_back(request);
    out.push(Command::Deferred);
    Ok(())
}
