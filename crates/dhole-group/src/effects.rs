//! What a step of a member does: it calls effects, as a step of the state machine
//! of `dhole-protocol` does.

use dhole_model::NodeId;

use super::command::GroupCommand;
use super::message::GroupMessage;

/// The effects of a step, in their order. The methods that are given here record them.
pub trait GroupEffects<B> {
    /// Where those effects are recorded that have no method of their own. What comes after a
    /// recorded effect is carried out after it.
    fn commands(&mut self) -> &mut Vec<GroupCommand<B>>;

    /// Sends a message to one member.
    #[inline]
    fn send(&mut self, to: NodeId, message: GroupMessage<B>) {
        self.commands().push(GroupCommand::Send { to, message });
    }

    /// Sends a message to all members but this one.
    #[inline]
    fn send_all(&mut self, _members: &[NodeId], message: &GroupMessage<B>)
    where
        B: Clone,
    {
        let message = message.clone();
        self.commands().push(GroupCommand::SendAll { message });
    }

    /// A broadcast has its turn.
    #[inline]
    fn deliver(&mut self, sequence: u64, from: NodeId, body: B) {
        self.commands().push(GroupCommand::Deliver {
            sequence,
            from,
            body,
        });
    }
}

impl<B> GroupEffects<B> for Vec<GroupCommand<B>> {
    #[inline]
    fn commands(&mut self) -> &mut Vec<GroupCommand<B>> {
        self
    }
}
