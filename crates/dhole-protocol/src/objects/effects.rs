//! What a step of the objects' machine does: it calls effects, as a step of the protocol does
//! ([`Effects`](crate::Effects)).

use std::sync::Arc;

use dhole_model::NodeId;

use super::ObjectsCommand;
use super::call::Refusal;
use super::codec::{OperationReply, OperationRequest};
use super::message::Ordered;

/// The effects of a step, in their order. The methods that are given here record them.
pub trait ObjectsEffects {
    /// Where those effects are recorded that have no method of their own. What comes after a
    /// recorded effect is carried out after it.
    fn commands(&mut self) -> &mut Vec<ObjectsCommand>;

    /// Asks another node to execute an operation.
    #[inline]
    fn call(&mut self, to: NodeId, request: OperationRequest<'_>) {
        let message = request.into();
        self.commands().push(ObjectsCommand::Send { to, message });
    }

    /// Tells the caller what its operation came to.
    #[inline]
    fn reply(&mut self, to: NodeId, reply: OperationReply<'_>) {
        let message = reply.into();
        self.commands().push(ObjectsCommand::Send { to, message });
    }

    /// Multicasts this to all nodes, this one included, in the order that all agree on.
    #[inline]
    fn broadcast(&mut self, body: Arc<Ordered>) {
        self.commands().push(ObjectsCommand::Broadcast(body));
    }

    /// A call of this node's worker is over.
    #[inline]
    fn finished(&mut self, call: u64, outcome: Result<&[u8], Refusal>) {
        let outcome = outcome.map(Into::into);
        self.commands()
            .push(ObjectsCommand::Finished { call, outcome });
    }
}

impl ObjectsEffects for Vec<ObjectsCommand> {
    #[inline]
    fn commands(&mut self) -> &mut Vec<ObjectsCommand> {
        self
    }
}
