//! Effects of the group that are carried out as it calls them, under the node's lock. An ordered
//! write that a worker waits for goes to the sequencer as bytes, and from there to all. What has
//! its turn is queued for the objects. All that is before the step is over.
//!
//! An effect goes *at once* where nothing is recorded or queued that comes before it; else it is
//! recorded, and carried out with the rest after the step, in its order.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use dhole_model::{MessageKind, NodeId, Notify};
use dhole_protocol::group::{GroupCommand, GroupEffects, GroupEvent, GroupMessage};
use dhole_protocol::objects::{Ordered, check_group, ordered_codec};
use dhole_protocol::{ProtocolError, WriteNotices};
use smallvec::SmallVec;

use super::step::{Turn, group_failed};
use crate::node::State;
use crate::step::{Posts, Step};

/// A message that was sent.
pub(super) struct Sent {
    pub to: SmallVec<[NodeId; 8]>,
    pub kind: MessageKind,
    pub bytes: usize,
    pub notices: u64,
}

impl Sent {
    /// One to nobody yet, of these bytes, some of which are notices.
    pub fn new(kind: MessageKind, bytes: usize, notices: u64) -> Sent {
        Sent {
            to: SmallVec::new(),
            kind,
            bytes,
            notices,
        }
    }
}

#[inline]
pub(super) fn notice_bytes(news: Option<&WriteNotices>) -> u64 {
    news.map_or(0, WriteNotices::notice_bytes)
}

/// Effects that are carried out as they come.
pub(super) struct Direct<'a, 's> {
    pub commands: &'a mut Vec<GroupCommand<Arc<Ordered>>>,
    pub delivered: &'a mut VecDeque<Turn>,
    /// The bytes of a message, but for arguments.
    pub head: &'a mut Vec<u8>,
    /// What was sent, and is still to be counted.
    pub sent: &'a mut Option<Sent>,
    pub posts: Posts<'a, 's>,
    pub me: NodeId,
    /// The call that the worker waits for.
    pub awaited: Option<u64>,
    /// Whether the originator of what is numbered waits for it.
    pub waits: bool,
    /// One message of the machine reaches all others.
    pub multicasts: bool,
    /// Nodes may be lost: then messages go with the others, for whom they are for is noted there.
    pub survives: bool,
}

impl Direct<'_, '_> {
    /// Whether the next message may be sent at once, if the port has room.
    #[inline]
    fn sends_at_once(&self) -> bool {
        let posts = &self.posts;
        let first = self.commands.is_empty() && posts.out.is_empty();
        first && !self.survives && posts.at_once.is_some()
    }

    /// Sends a message of these bytes, behind those of its head; whether the port had room.
    #[inline]
    fn post(&mut self, to: NodeId, arguments: &[u8], notify: Notify, notices: u64) -> bool {
        let at_once = self.posts.at_once.as_mut();
        let sent = at_once.is_some_and(|at_once| at_once(to, [self.head, arguments, &[]], notify));
        if sent {
            let bytes = self.head.len() + arguments.len();
            let first = || Sent::new(MessageKind::Ordered, bytes, notices);
            self.sent.get_or_insert_with(first).to.push(to);
        }
        sent
    }
}

/// Bytes of the notices in a message.
fn notices_of(message: &GroupMessage<Arc<Ordered>>) -> u64 {
    notice_bytes(message.body().and_then(|body| body.news()))
}

impl GroupEffects<Arc<Ordered>> for Direct<'_, '_> {
    #[inline]
    fn commands(&mut self) -> &mut Vec<GroupCommand<Arc<Ordered>>> {
        self.commands
    }

    #[inline]
    fn send(&mut self, to: NodeId, message: GroupMessage<Arc<Ordered>>) {
        let call = match &message {
            GroupMessage::Submit { body, .. } => body.by().map(|by| by.number),
            _ => None,
        };
        // Only what the worker waits for next goes in the way of what is waited for.
        let waits = call.is_some() && call == self.awaited && self.posts.from == self.me;
        if waits && self.sends_at_once() {
            self.head.clear();
            if let Some(arguments) = ordered_codec::write_head(&message, true, self.head)
                && self.post(to, arguments, Notify::Now, notices_of(&message))
            {
                return;
            }
        }
        self.commands.push(GroupCommand::Send { to, message });
    }

    #[inline]
    fn send_all(&mut self, members: &[NodeId], message: &GroupMessage<Arc<Ordered>>) {
        let several = members.len() > 2;
        self.head.clear();
        let arguments = match self.sends_at_once() && !(several && self.multicasts) {
            true => ordered_codec::write_head(message, false, self.head),
            false => None,
        };
        let (Some(arguments), GroupMessage::Data { part, .. }) = (arguments, message) else {
            let message = message.clone();
            self.commands.push(GroupCommand::SendAll { message });
            return;
        };
        let (me, origin, notices) = (self.me, part.origin, notices_of(message));
        // Its originator first, which waits for it, or is woken.
        let others = members.iter().filter(|to| **to != origin && **to != me);
        let to_origin = Some(&origin).filter(|to| **to != me);
        for to in to_origin.into_iter().chain(others) {
            let may = *to != origin || self.waits;
            if !may || !self.post(*to, arguments, Notify::Lazy, notices) {
                let (to, message) = (*to, message.clone());
                self.commands.push(GroupCommand::Send { to, message });
            }
        }
    }

    #[inline]
    fn deliver(&mut self, sequence: u64, from: NodeId, body: Arc<Ordered>) {
        let is_turn = |it: &GroupCommand<_>| !matches!(it, GroupCommand::Send { .. });
        if self.commands.iter().any(is_turn) {
            let deliver = GroupCommand::Deliver {
                sequence,
                from,
                body,
            };
            return self.commands.push(deliver);
        }
        self.delivered
            .push_back(Turn::Ordered(sequence, from, body));
    }
}

impl State {
    /// Takes an ordered write by its bytes. `None` where it is to be taken as a message; then
    /// nothing has happened.
    pub(crate) fn take_ordered(
        &mut self,
        from: NodeId,
        bytes: &[u8],
        step: &mut Step<'_, '_>,
    ) -> Option<Result<(), ProtocolError>> {
        if !self.may_take_object_bytes(from) {
            return None;
        }
        let (message, waits) = ordered_codec::parse(bytes)?;
        self.protocol.count_objects(from, false);
        Some(match check_group(&message, self.nodes) {
            Ok(()) => self.objects_directly(step, |_, _, fx| {
                let event = GroupEvent::Message { from, message };
                fx.step_group(event, waits).map_err(group_failed)
            }),
            Err(what) => Err(ProtocolError::BadMessage { from, what }),
        })
    }
}
