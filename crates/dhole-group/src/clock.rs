//! What is done again when nothing has come of it. Links that lose nothing need none of this.

use super::{Body, Group, GroupCommand, Phase};

/// The longest wait between two tries is this power of two times the first.
const MOST_DOUBLINGS: u32 = 4;

/// So often those that a view has left behind are told. They may be dead.
const MOST_GOODBYES: u32 = 10;

/// When something is tried again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Deadline {
    at_ns: Option<u64>,
    tries: u32,
}

impl Deadline {
    /// Starts or stops it; whether its time has come.
    fn due(&mut self, wanted: bool, now_ns: u64, resend_ns: u64) -> bool {
        if !wanted {
            *self = Deadline::default();
            return false;
        }
        let due = self.at_ns.is_some_and(|at_ns| at_ns <= now_ns);
        if due {
            self.tries += 1;
        }
        if due || self.at_ns.is_none() {
            let wait_ns = resend_ns << self.tries.min(MOST_DOUBLINGS);
            self.at_ns = Some(now_ns.saturating_add(wait_ns));
        }
        due
    }
}

/// All that is tried again.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Clock {
    own: Deadline,
    gap: Deadline,
    token: Deadline,
    change: Deadline,
    behind: Deadline,
    credit: Deadline,
    safe: Deadline,
    told: Option<u64>,
}

impl Clock {
    /// Something was delivered: what is missing now has not been missing for long.
    pub(super) fn progress(&mut self) {
        (self.gap, self.token.tries) = (Deadline::default(), 0);
    }
}

impl<B: Body> Group<B> {
    /// Tries again what is due, and says when the next try is.
    pub(super) fn keep_time(&mut self, now_ns: u64, out: &mut Vec<GroupCommand<B>>) {
        let resend_ns = self.settings.resend_ns;
        if self.settings.reliable || resend_ns == 0 {
            return;
        }
        let going = self.is_going();
        let own = going && !self.is_sequencer() && self.own.lacks_numbers();
        if self.clock.own.due(own, now_ns, resend_ns) {
            self.send_own_again(out);
        }
        let gap = (going || self.phase == Phase::Installing) && self.history.missing().is_some();
        if self.clock.gap.due(gap, now_ns, resend_ns) {
            let ask_originator = self.clock.gap.tries.is_multiple_of(2);
            self.fetch(ask_originator, out);
        }
        let others = self.view.members.len() > 1;
        let token = going && self.is_sequencer() && others && self.unacknowledged() > 0;
        if self.clock.token.due(token, now_ns, resend_ns) {
            self.send_token(out);
        }
        let credit = going && self.tree.waits();
        if self.clock.credit.due(credit, now_ns, resend_ns) {
            self.send_without_credit(out);
        }
        let waits = going && self.safe.waits();
        if self.clock.safe.due(waits, now_ns, resend_ns) {
            self.ask_what_others_have(out);
        }
        let change = self.is_changing();
        if self.clock.change.due(change, now_ns, resend_ns) {
            self.press_on(out);
        }
        let behind = going && !self.behind.is_empty();
        if self.clock.behind.due(behind, now_ns, resend_ns) {
            self.refuse_again(out);
            if self.clock.behind.tries > MOST_GOODBYES {
                self.behind.clear();
            }
        }
        let clock = &self.clock;
        let own = [clock.own, clock.gap, clock.token, clock.credit];
        let all = own
            .into_iter()
            .chain([clock.change, clock.behind, clock.safe]);
        let next = all.filter_map(|deadline| deadline.at_ns).min();
        if let Some(at_ns) = next.filter(|_| next != self.clock.told) {
            out.push(GroupCommand::WakeAt(at_ns));
        }
        self.clock.told = next;
    }
}
