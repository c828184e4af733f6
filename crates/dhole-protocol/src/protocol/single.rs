//! Misses of one object that nothing else comes of ([`lazy`](crate::lazy)). What is done here is
//! what [`step`](Protocol::step) does with the same event or message, and the commands that it
//! would lead to are said by what is returned; where that is nothing, nothing has happened.

use dhole_model::{NodeId, Version};

use super::Protocol;
use crate::command::{Unread, WorkerIs};
use crate::lazy::Answer;
use crate::message::check;
use crate::single::Single;
use crate::{Sent, Wanted};

impl Protocol {
    /// As [`Event::ReadMiss`](crate::Event::ReadMiss) where all that comes of it is this message
    /// to this node.
    pub fn ask_singly(&mut self, miss: &Unread) -> Option<(NodeId, Single)> {
        if self.has_to_tell_more() {
            return None;
        }
        let (to, round, wanted) = self.lazy.ask_singly(miss)?;
        let fetch = Single::Fetch {
            round,
            wanted,
            beside: 0,
        };
        Some((to, fetch))
    }

    /// As the delivery of a [`Message::Fetch`](crate::Message::Fetch) of one object where all that
    /// comes of it is a reply of that alone, and
    /// [`Command::MakeClean`](crate::Command::MakeClean) before it where the answer says so.
    pub fn answer_singly(
        &mut self,
        from: NodeId,
        wanted: Wanted,
        worker: WorkerIs,
    ) -> Option<Answer> {
        match self.may_be_single(from, wanted.need) {
            true => self.lazy.answer_singly(from, wanted, worker),
            false => None,
        }
    }

    /// Whether all that comes of the delivery of a
    /// [`Message::FetchReply`](crate::Message::FetchReply) of one object is that it is installed
    /// and the worker's wait is over.
    pub fn is_answered_singly(&self, from: NodeId, round: u32, sent: Sent) -> bool {
        !self.over
            && self.may_be_single(from, sent.version)
            && self.lazy.is_answered_singly(from, round, sent)
    }

    /// The object of [such a reply](Protocol::is_answered_singly) was installed; whether it is to
    /// be kept is what the reply says.
    pub fn install_singly(&mut self, sent: Sent, keep: bool) {
        self.lazy.install_singly(sent, keep);
    }

    fn may_be_single(&self, from: NodeId, version: Version) -> bool {
        let nodes = self.lazy.time().nodes();
        from.index() < nodes && check::may_be(version, nodes) && !self.has_to_tell_more()
    }

    /// Whether the next step, whatever it is, tells at a barrier what is done here since.
    fn has_to_tell_more(&self) -> bool {
        self.barrier.has_untold(self.lazy.time().of(self.me))
    }
}
