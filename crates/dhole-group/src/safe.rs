//! What can no longer be lost: a member's broadcast, once so many members have delivered it that
//! none who could go on without them would be a quorum.
//!
//! That a member has delivered a broadcast does not make it safe: if it was the sequencer, or
//! everybody died to whom it came in time, the others go on without it. Where `Settings::confirm`
//! is set, each member tells whoever broadcast something when it has delivered it (`Have`), and
//! that one knows by these answers up to where the order is safe.

use dhole_model::{NodeId, NodeMap};

use super::message::GroupMessage;
use super::{Body, Group, GroupCommand};

/// What a member knows of what is safe.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Safe {
    /// Everything up to this number is.
    up_to: u64,
    /// What this member wants to be.
    wanted: u64,
    /// Up to where the others have delivered, as far as they have told in this view.
    done: NodeMap<u64>,
    /// Up to where others want to know that this member has delivered.
    wanted_by: NodeMap<u64>,
}

impl Safe {
    /// A member has delivered up to `done`.
    pub(super) fn heard(&mut self, from: NodeId, done: u64) {
        let known = self.done.get_or_insert(from, done);
        *known = done.max(*known);
    }

    /// A broadcast of `from` is delivered.
    pub(super) fn delivered(&mut self, me: NodeId, from: NodeId, number: u64) {
        match from == me {
            true => self.wanted = self.wanted.max(number),
            false => drop(self.wanted_by.insert(from, number)),
        }
    }

    /// Another view begins, in which all have what was delivered before.
    pub(super) fn start_over(&mut self) {
        self.done.clear();
        self.wanted_by.clear();
    }

    /// Whether this member waits for others to say what they have.
    pub(super) fn waits(&self) -> bool {
        self.wanted > self.up_to
    }
}

impl<B: Body> Group<B> {
    /// Up to which number everything is known to be safe here.
    pub fn safe(&self) -> u64 {
        self.safe.up_to
    }

    /// Whether it is on its way that everything up to this number is safe.
    pub fn will_be_safe(&self, number: u64) -> bool {
        self.safe.wanted.max(self.safe.up_to) >= number
    }

    /// Wants everything to be safe that is delivered here.
    pub(super) fn confirm(&mut self, out: &mut Vec<GroupCommand<B>>) {
        if !self.settings.confirm || self.will_be_safe(self.history.done) {
            return;
        }
        self.safe.wanted = self.history.done;
        self.ask_what_others_have(out);
    }

    pub(super) fn ask_what_others_have(&self, out: &mut Vec<GroupCommand<B>>) {
        if self.is_going() && self.others().next().is_some() {
            let message = self.have(true);
            out.push(GroupCommand::SendAll { message });
        }
    }

    fn have(&self, asks: bool) -> GroupMessage<B> {
        GroupMessage::Have {
            view: self.view.id,
            done: self.history.done,
            asks,
        }
    }

    pub(super) fn take_have(
        &mut self,
        from: NodeId,
        done: u64,
        asks: bool,
    ) -> Result<(), &'static str> {
        if self.is_sequencer() && done >= self.sequencer.next {
            return Err("an acknowledgement of what has no number");
        }
        self.safe.heard(from, done);
        if asks {
            let wanted = self.safe.wanted_by.get_or_insert(from, done);
            *wanted = done.max(*wanted);
        }
        Ok(())
    }

    /// Answers those who want to know that this member has delivered something, and finds out
    /// what is safe.
    pub(super) fn see_what_is_safe(&mut self, out: &mut Vec<GroupCommand<B>>) {
        if !self.settings.confirm || !self.is_going() {
            return;
        }
        let done = self.history.done;
        let mut answered = Vec::new();
        self.safe.wanted_by.retain(|to, wanted| {
            let waits = *wanted > done;
            if !waits {
                answered.push(*to);
            }
            waits
        });
        for to in answered {
            let message = self.have(false);
            out.push(GroupCommand::Send { to, message });
        }
        let mut levels: Vec<u64> = self.safe.done.values().copied().collect();
        levels.push(done);
        levels.sort_unstable();
        let sure = levels.into_iter().rev().map(|level| level.min(done));
        let sure = sure.into_iter().find(|level| self.holds_quorum(*level));
        let sure = sure.unwrap_or(0).max(self.view.start);
        if sure > self.safe.up_to {
            self.safe.up_to = sure;
            out.push(GroupCommand::Safe { sequence: sure });
        }
    }

    /// Whether those who have delivered up to `level` are so many that the others may not go on
    /// without them.
    fn holds_quorum(&self, level: u64) -> bool {
        let mut others = Vec::new();
        for node in self.others() {
            if self.safe.done.get(&node).is_none_or(|done| *done < level) {
                others.push(node);
            }
        }
        !self.may_go_on_alone(&others)
    }
}
