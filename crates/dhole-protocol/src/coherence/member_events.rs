//! Units under protocols that the program brings. Their states are the protocols' own: the table of
//! objects says only which protocol it is, and whether they were freed.

use dhole_model::{MemberId, NodeId};

use super::Protocols;
use crate::array_blocks::Unit;
use crate::coherence::member::{AnyMember, Around, Turn};
use crate::coherence::members::Waited;
use crate::command::{Command, Commands, WorkerIs};
use crate::effects::Effects;
use crate::error::{Freed, ProtocolError};
use crate::{MemberMessage, Message};

impl Protocols {
    /// What the worker waits for under protocols that the program brings.
    pub fn awaited_of_members(&self) -> impl Iterator<Item = Unit> {
        let awaited = self.members.awaited().iter();
        awaited.map(|unit| self.blocks.unit(*unit))
    }

    fn member_event<R>(
        &mut self,
        (member, from, message): (MemberId, NodeId, Option<&MemberMessage>),
        worker: WorkerIs,
        out: &mut Commands,
        event: impl FnOnce(&mut dyn AnyMember, Turn<'_>) -> Result<R, &'static str>,
    ) -> Result<R, &'static str> {
        let around = Around {
            member,
            me: self.me,
            nodes: self.intervals.time().nodes(),
            worker,
            from,
            message,
            objects: &self.objects,
            blocks: &self.blocks,
            writes: self.members.writes,
        };
        let inboxes = (
            &mut self.remembered.inbox,
            &mut self.arrays.remembered.inbox,
        );
        self.members.take(around, inboxes, out, event)
    }

    /// Lets a member take an event of this node.
    pub(crate) fn member_takes<R>(
        &mut self,
        member: MemberId,
        worker: WorkerIs,
        out: &mut Commands,
        event: impl FnOnce(&mut dyn AnyMember, Turn<'_>) -> R,
    ) -> R {
        let me = self.me;
        let taken = self.member_event((member, me, None), worker, out, |it, turn| {
            Ok(event(it, turn))
        });
        match taken {
            Ok(taken) => taken,
            Err(what) => unreachable!("an event of this node has happened: {what}"),
        }
    }

    /// A message of a member has come, perhaps not for the first time.
    pub fn member_message(
        &mut self,
        from: NodeId,
        message: MemberMessage,
        worker: WorkerIs,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.members.check_room(from)?;
        let waited = self.members.waited();
        let of = (message.member, from, Some(&message));
        let taken = self.member_event(of, worker, out, |it, turn| {
            it.deliver(from, &message.body, turn)
        });
        taken.map_err(|what| ProtocolError::BadMessage { from, what })?;
        if self.members.keeps(from) {
            let message = Message::Coherence(message);
            out.push(Command::DeliverAgain { from, message });
        }
        match waited {
            Some(Waited::Release) => self.released(out),
            Some(Waited::Access) => self.brought(out),
            None => {}
        }
        Ok(())
    }

    /// The worker goes on once all objects have come that it waits for.
    pub(crate) fn brought(&mut self, fx: &mut impl Effects) {
        let fetches = [
            self.fetching.fetches.is_over(),
            self.arrays.fetching.fetches.is_over(),
        ];
        if fetches.contains(&false) || !self.members.are_over() {
            return;
        }
        let gone = self.members.settle();
        let gone = gone.map(|unit| Freed::known_only(self.blocks.named(unit)));
        match self.gone.take().or(gone) {
            None => fx.done(),
            Some(gone) => fx.commands().push(Command::Gone(gone)),
        }
    }
}
