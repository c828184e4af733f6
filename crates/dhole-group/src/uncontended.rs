//! Uncontended broadcasts: nothing else is under way at the member that takes one. Such a broadcast
//! takes its number, or its turn, at once. Nothing is kept for it on the way.

use dhole_model::NodeId;

use super::check::check_part;
use super::command::GroupEvent;
use super::effects::GroupEffects;
use super::message::{GroupMessage, Part, ViewId};
use super::own::Pending;
use super::{Body, Group, Method};

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
    /// Whether this member has nothing in flight, and the group neither waits for confirmations nor
    /// leaves. Such a member does not hold the acknowledgement token: it passes the token on as
    /// soon as everything that it acknowledges is delivered.
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

    /// Whether an event is a broadcast that takes its number, or its turn, at once.
    pub fn is_uncontended(&self, event: &GroupEvent<B>) -> bool {
        match event {
            GroupEvent::Broadcast { bytes, .. } => self.may_broadcast_uncontended(*bytes),
            GroupEvent::Message { from, message } => match message {
                GroupMessage::Submit {
                    view, part, done, ..
                } if *part == whole(*from, part.serial) => {
                    self.may_number_uncontended(*from, *view, part.serial, *done)
                }
                GroupMessage::Data {
                    view,
                    number,
                    part,
                    stable,
                    ..
                } if *part == whole(part.origin, part.serial) => {
                    self.is_next(*from, (*view, *number, *stable), part)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Takes a broadcast of this member that [is uncontended](Group::is_uncontended).
    ///
    /// # Errors
    /// The broadcast, if it is contended: it is for [`step`](Group::step). Nothing has happened.
    #[inline]
    pub fn broadcast_uncontended(
        &mut self,
        body: B,
        bytes: usize,
        fx: &mut impl GroupEffects<B>,
    ) -> Result<(), B> {
        if !self.may_broadcast_uncontended(bytes) {
            return Err(body);
        }
        self.take_broadcast(body, bytes, fx);
        Ok(())
    }

    fn take_broadcast(&mut self, body: B, bytes: usize, fx: &mut impl GroupEffects<B>) {
        let serial = self.own.next;
        self.own.next += 1;
        match self.is_sequencer() {
            true => self.number_uncontended(self.me, serial, body, fx),
            false => self.submit_uncontended(serial, bytes, body, fx),
        }
    }

    /// Takes an event that [is uncontended](Group::is_uncontended).
    pub(super) fn take_uncontended(&mut self, event: GroupEvent<B>, fx: &mut impl GroupEffects<B>) {
        match event {
            GroupEvent::Broadcast { body, bytes } => self.take_broadcast(body, bytes, fx),
            GroupEvent::Message {
                from,
                message:
                    GroupMessage::Submit {
                        part, body, done, ..
                    },
            } => {
                self.acknowledge(from, done);
                self.number_uncontended(from, part.serial, body, fx);
            }
            GroupEvent::Message {
                message:
                    GroupMessage::Data {
                        number,
                        part,
                        body,
                        stable,
                        ..
                    },
                ..
            } => {
                self.learn_stable(stable);
                self.turn_uncontended(part, body.clone());
                self.forget_far_below();
                if part.origin == self.me {
                    self.own.delivered(part.serial);
                }
                fx.deliver(number, part.origin, body);
            }
            _ => {}
        }
    }

    /// Whether a broadcast of this member of so many bytes may be numbered now, or submitted.
    fn may_broadcast_uncontended(&self, bytes: usize) -> bool {
        let settings = &self.settings;
        let small = !B::DIVISIBLE || bytes <= settings.largest.max(1);
        if !self.is_at_rest() || !small || settings.queue == 0 || settings.window == 0 {
            return false;
        }
        match self.is_sequencer() {
            true => {
                self.has_a_number() && self.sequencer.unnumbered[self.me.index()] == self.own.next
            }
            false => {
                let method = settings.method_for(bytes, self.view.members.len());
                self.own.pending.is_empty() && method == Method::Forward
            }
        }
    }

    /// Whether this member is the sequencer and may number what `from` has submitted.
    fn may_number_uncontended(&self, from: NodeId, view: ViewId, serial: u64, done: u64) -> bool {
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

    /// Numbers and delivers a broadcast of this member or of another.
    fn number_uncontended(
        &mut self,
        origin: NodeId,
        serial: u64,
        body: B,
        fx: &mut impl GroupEffects<B>,
    ) {
        self.forget_far_below();
        let (number, stable) = (self.sequencer.next, self.stable);
        self.sequencer.next += 1;
        self.sequencer.unnumbered[origin.index()] = serial + 1;
        let part = whole(origin, serial);
        self.turn_uncontended(part, body.clone());
        if self.view.members.len() == 1 {
            self.acknowledge(self.me, number);
            return fx.deliver(number, origin, body);
        }
        // No other has delivered it, so what all have stays as it is.
        self.sequencer.has_delivered(self.me, number);
        let message = GroupMessage::Data {
            view: self.view.id,
            number,
            part,
            body,
            stable,
        };
        fx.send_all(&self.view.members, &message);
        if let GroupMessage::Data { body, .. } = message {
            fx.deliver(number, origin, body);
        }
    }

    /// Sends a broadcast of this member to the sequencer.
    fn submit_uncontended(
        &mut self,
        serial: u64,
        bytes: usize,
        body: B,
        fx: &mut impl GroupEffects<B>,
    ) {
        let pending = Pending::whole(serial, body.clone(), bytes);
        self.own.pending.push_back(pending);
        self.own.under_way = 1;
        let view = self.view.id;
        let message = GroupMessage::Submit {
            view,
            part: whole(self.me, serial),
            body,
            done: self.history.done,
        };
        fx.send(view.sequencer, message);
    }

    /// Whether what `from` has sent with its number has its turn.
    fn is_next(
        &self,
        from: NodeId,
        (view, number, stable): (ViewId, u64, u64),
        part: &Part,
    ) -> bool {
        let (done, pending) = (self.history.done, &self.own.pending);
        let from_member = from != self.me && self.is_listed(from) && !self.is_lost(from);
        from_member
            && view == self.view.id
            && !self.is_sequencer()
            && self.is_at_rest()
            && self.own.under_way == pending.len()
            && number == done + 1
            && stable <= done
            && check_part(part, self.peers.len(), &self.settings).is_ok()
            && self.peers[part.origin.index()].serial == part.serial
            && (part.origin != self.me
                || pending.front().is_some_and(|it| it.serial == part.serial))
    }

    /// A broadcast has its turn.
    fn turn_uncontended(&mut self, part: Part, body: B) {
        self.history.append(part, body);
        self.peers[part.origin.index()].serial = part.serial.saturating_add(1);
        self.history.trim(self.stable);
    }
}
