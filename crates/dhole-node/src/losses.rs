//! Losses of nodes, in a run that goes on without them: the setting [`survive`](crate::Settings).
//!
//! The port, or the simulator, says that a node is lost by a message of this node to itself. Only
//! the group hears of that: its members agree who is left, and from which place in the order of
//! multicasts on. From there on objects go on without those that are gone, what they still say
//! about anything else is not listened to, and whoever waits for them is told.

use std::sync::Arc;

use dhole_model::NodeId;
use dhole_protocol::group::{Ending, GroupEvent};
use dhole_protocol::objects::ObjectsEvent;
use dhole_protocol::{AbortReason, Message, ProtocolError, WaitingFor};

use crate::ended::Ended;
use crate::machine::LostNode;
use crate::membership::is_of_group;
use crate::node::{Node, State};
use crate::step::Step;

impl Node {
    /// The nodes that the run went on without.
    pub(crate) fn lost(&self) -> Vec<LostNode> {
        self.monitor.lock().split().1.membership.gone.clone()
    }

    /// Why this node is no part of the run any more, if it is not.
    pub(crate) fn is_out(&self) -> bool {
        matches!(self.monitor.lock().split().1.ended(), Some(Ended::Out(_)))
    }
}

impl State {
    /// Takes a message that tells of a loss, or that a lost node has sent; whether it was one.
    pub(crate) fn take_loss(
        &mut self,
        from: NodeId,
        message: &Message,
        step: &mut Step<'_, '_>,
    ) -> Result<bool, ProtocolError> {
        if !self.membership.is_on() {
            return Ok(false);
        }
        match message {
            // What others have lost they tell the group.
            Message::Abort {
                node,
                reason: AbortReason::Lost(how),
            } => {
                if from == self.id {
                    self.membership.told.push((*node, Arc::clone(how)));
                    self.step_group(GroupEvent::Lost(*node), step)?;
                }
                Ok(true)
            }
            // It may not know that the group has gone on without it.
            message if is_of_group(message) => Ok(false),
            _ => Ok(self.membership.is_gone(from)),
        }
    }

    /// The group goes on without these nodes from here on.
    pub(crate) fn go_on_without(
        &mut self,
        nodes: Vec<NodeId>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        for node in &nodes {
            let mut told = self.membership.told.iter();
            let how = told.find(|(lost, _)| lost == node);
            let how = how.map_or("another node lost it", |(_, how)| how).into();
            self.membership.gone.push(LostNode { node: *node, how });
        }
        self.protocol.lose(&nodes);
        self.step_objects(ObjectsEvent::Gone(nodes), step)?;
        // It may just have been ended by that.
        if self.membership.waits
            && !self.is_over()
            && let Some(lost) = self.waits_for_lost()
        {
            self.refuse(lost);
        }
        Ok(())
    }

    /// The group has no place for this node any more.
    pub(crate) fn is_out(&mut self, why: Ending) {
        self.end(Ended::Out(why));
    }

    /// The worker is to wait now.
    ///
    /// # Errors
    /// When a node is lost for which it would.
    pub(crate) fn begin_to_wait(&mut self) -> Result<(), ProtocolError> {
        if let Some(lost) = self.waits_for_lost() {
            self.give_up(lost.clone());
            return Err(lost);
        }
        self.membership.waits = true;
        Ok(())
    }

    /// A lost node for which the worker waits, or may wait: who holds a lock, and who is before
    /// this node in its queue, nobody knows but those who do.
    fn waits_for_lost(&mut self) -> Option<ProtocolError> {
        let first = self.membership.gone.first()?.node;
        if self.here.awaited.is_some() {
            return None;
        }
        let is_gone = |node: &NodeId| self.membership.is_gone(*node);
        let asked = self.protocol.asked().find(is_gone);
        let sent_to = || self.membership.sent_to.iter().copied().find(is_gone);
        let waits = || {
            let waiter = self.protocol.wait()?;
            let operation = matches!(waiter.waiting_for, WaitingFor::Operation(_));
            (!operation).then_some(first)
        };
        let node = asked.or_else(sent_to).or_else(waits)?;
        Some(ProtocolError::Lost { node })
    }

    fn refuse(&mut self, lost: ProtocolError) {
        self.give_up(lost.clone());
        self.refuse_wait(lost);
    }

    fn give_up(&mut self, lost: ProtocolError) {
        self.membership.cut = Some(lost);
        self.protocol.give_up();
    }
}
