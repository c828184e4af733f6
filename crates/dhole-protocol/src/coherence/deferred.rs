//! Requests for bytes that wait for the worker's next call.

use std::mem::discriminant;

use dhole_model::NodeId;

use crate::Message;
use crate::command::{Command, Commands};
use crate::error::ProtocolError;

/// The requests that wait, in the order in which they came. Each other node has at most one of each
/// kind, and waits for its answer.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct DeferredRequests(Vec<(NodeId, Message)>);

impl DeferredRequests {
    /// How many there are.
    #[inline]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Keeps a request.
    ///
    /// # Errors
    /// [`ProtocolError::BadMessage`] for a second one of its kind.
    pub fn keep(
        &mut self,
        from: NodeId,
        request: Message,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let kind = discriminant(&request);
        let mut all = self.0.iter();
        if all.any(|(other, kept)| *other == from && discriminant(kept) == kind) {
            let what = "a second request for bytes while its first one is open";
            return Err(ProtocolError::BadMessage { from, what });
        }
        self.0.push((from, request));
        out.push(Command::Deferred);
        Ok(())
    }

    /// Takes all out.
    pub fn take(&mut self) -> Vec<(NodeId, Message)> {
        std::mem::take(&mut self.0)
    }
}
