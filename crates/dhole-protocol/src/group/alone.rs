//! Broadcasts that come alone: nothing else is under way where they come. They take their number,
//! and their turn, at once, and nothing else comes of them. What these functions do is what a
//! [step](Group::step) does in the same place, without its events and commands; where more would
//! come of it they do nothing, and a step has to be taken.

use dhole_model::NodeId;

use super::check::check_part;
use super::message::{GroupMessage, Part, ViewId};
use super::own::Pending;
use super::{Body, Group, Method};

/// What is said with a broadcast, of one part, that has no number yet: as
/// [`GroupMessage::Submit`](super::GroupMessage::Submit).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Submitted {
    /// In which view.
    pub view: ViewId,
    /// Counts the broadcasts of its originator.
    pub serial: u64,
    /// Up to where the originator has delivered.
    pub done: u64,
}

/// What is said with a broadcast, of one part, that has its number: as
/// [`GroupMessage::Data`](super::GroupMessage::Data).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Numbered {
    /// In which view.
    pub view: ViewId,
    /// Its place in the order.
    pub number: u64,
    /// Who broadcasts.
    pub origin: NodeId,
    /// Counts the broadcasts of the originator.
    pub serial: u64,
    /// Up to where all members have delivered.
    pub stable: u64,
}

impl Submitted {
    /// The message that says so of a broadcast of `origin`.
    pub fn message<B>(self, origin: NodeId, body: B) -> GroupMessage<B> {
        let Submitted { view, serial, done } = self;
        GroupMessage::Submit {
            view,
            part: whole(origin, serial),
            body,
            done,
        }
    }
}

impl Numbered {
    /// The message that says so.
    pub fn message<B>(self, body: B) -> GroupMessage<B> {
        GroupMessage::Data {
            view: self.view,
            number: self.number,
            part: whole(self.origin, self.serial),
            body,
            stable: self.stable,
        }
    }
}

/// A broadcast of one part.
fn whole(origin: NodeId, serial: u64) -> Part {
    Part {
        origin,
        serial,
        part: 0,
        parts: 1,
    }
}

impl<B: Body> Group<B> {
    /// Whether nothing is under way here, and nothing is done again where nothing comes of it. Then
    /// this member holds no token: it passes it on once all that it acknowledges is delivered.
    fn is_at_rest(&self) -> bool {
        let settings = &self.settings;
        let as_told = settings.reliable && !settings.confirm && !self.leaves;
        as_told && self.is_going() && self.incoming.is_empty() && self.history.is_delivered()
    }

    /// Whether one more number may be given out now, and no token has to go for it.
    fn has_a_number(&self) -> bool {
        let settings = &self.settings;
        let others = self.view.members.len() - 1;
        let by_tree = settings
            .fanout
            .is_some_and(|most| others > most as usize && !settings.multicast);
        let lacks = self.unacknowledged() + 1;
        let every = settings.acknowledge_every.min(settings.window).max(1);
        let no_token = others == 0 || self.sequencer.token.is_some() || lacks < u64::from(every);
        let fits = lacks <= u64::from(settings.window);
        !by_tree && no_token && fits
    }

    /// What is said of a broadcast of this member of so many bytes, if it may come alone now: at
    /// the sequencer it may [be numbered](Group::number_alone), elsewhere
    /// [be submitted](Group::submit_alone).
    pub fn broadcasts_alone(&self, bytes: usize) -> Option<Submitted> {
        let settings = &self.settings;
        let small = !B::DIVISIBLE || bytes <= settings.largest.max(1);
        if !self.is_at_rest() || !small || settings.queue == 0 || settings.window == 0 {
            return None;
        }
        let may = match self.is_sequencer() {
            true => {
                self.has_a_number() && self.sequencer.unnumbered[self.me.index()] == self.own.next
            }
            false => {
                let method = settings.method_for(bytes, self.view.members.len());
                self.own.pending.is_empty() && method == Method::Forward
            }
        };
        may.then_some(Submitted {
            view: self.view.id,
            serial: self.own.next,
            done: self.history.done,
        })
    }

    /// Whether this member is the sequencer and may [number](Group::number_alone) what `from` has
    /// submitted.
    pub fn numbers_alone(&self, from: NodeId, submitted: &Submitted) -> bool {
        let Submitted { view, serial, done } = *submitted;
        let from_member = from != self.me && self.is_listed(from) && !self.is_lost(from);
        from_member
            && view == self.view.id
            && self.is_sequencer()
            && self.is_at_rest()
            && self.has_a_number()
            && done < self.sequencer.next
            && self.sequencer.unnumbered[from.index()] == serial
            && self.peers[from.index()].serial == serial
    }

    /// Numbers and delivers a broadcast of this member or of another, of which it was said that it
    /// may be: what is to be sent to all other members with it.
    pub fn number_alone(&mut self, origin: NodeId, submitted: &Submitted, body: B) -> Numbered {
        let Submitted { view, serial, done } = *submitted;
        match origin == self.me {
            true => self.own.next += 1,
            false => self.acknowledge(origin, done),
        }
        self.forget_far_below();
        let numbered = Numbered {
            view,
            number: self.sequencer.next,
            origin,
            serial,
            stable: self.stable,
        };
        self.sequencer.next += 1;
        self.sequencer.unnumbered[origin.index()] = serial + 1;
        self.turn_alone(whole(origin, serial), body);
        self.acknowledge(self.me, numbered.number);
        numbered
    }

    /// Notes a broadcast of this member, of which it was said that it may be, as sent to the
    /// sequencer.
    pub fn submit_alone(&mut self, bytes: usize, body: B) {
        let serial = self.own.next;
        self.own.next += 1;
        self.own
            .pending
            .push_back(Pending::whole(serial, body, bytes));
        self.own.under_way = 1;
    }

    /// Whether this member may [take](Group::take_alone) what `from` has sent with its number.
    pub fn takes_alone(&self, from: NodeId, numbered: &Numbered) -> bool {
        let Numbered {
            view,
            number,
            origin,
            serial,
            stable,
        } = *numbered;
        let (done, pending) = (self.history.done, &self.own.pending);
        let from_member = from != self.me && self.is_listed(from) && !self.is_lost(from);
        let sound = check_part(&whole(origin, serial), self.peers.len(), &self.settings);
        from_member
            && view == self.view.id
            && !self.is_sequencer()
            && self.is_at_rest()
            && self.own.under_way == pending.len()
            && number == done + 1
            && stable <= done
            && sound.is_ok()
            && self.peers[origin.index()].serial == serial
            && (origin != self.me || pending.front().is_some_and(|it| it.serial == serial))
    }

    /// Delivers a broadcast with its number, of which it was said that it may be.
    pub fn take_alone(&mut self, numbered: &Numbered, body: B) {
        let Numbered {
            origin,
            serial,
            stable,
            ..
        } = *numbered;
        self.learn_stable(stable);
        self.turn_alone(whole(origin, serial), body);
        self.forget_far_below();
        if origin == self.me {
            self.own.delivered(serial);
        }
    }

    /// What comes next has its turn.
    fn turn_alone(&mut self, part: Part, body: B) {
        self.history.append(part, body);
        self.peers[part.origin.index()].serial = part.serial.saturating_add(1);
        self.history.trim(self.stable);
    }
}
