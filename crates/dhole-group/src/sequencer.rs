//! The sequencer: it numbers broadcasts, holds numbers back while too many lack acknowledgement,
//! and sends a token round to collect acknowledgements (Orca, section 2.4).

use std::collections::VecDeque;

use dhole_model::NodeId;

use super::message::{Cast, GroupMessage, Part};
use super::{Body, Group, GroupCommand, Method};

/// A broadcast without number: parts of it that have come.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Incoming<B> {
    pub(super) method: Method,
    pub(super) bodies: Vec<Option<B>>,
}

impl<B> Incoming<B> {
    pub(super) fn whole(method: Method, bodies: Vec<Option<B>>) -> Incoming<B> {
        Incoming { method, bodies }
    }

    fn is_whole(&self) -> bool {
        self.method == Method::Ask || self.bodies.iter().all(Option::is_some)
    }
}

/// What only the sequencer of a view keeps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Sequencer {
    /// The next number.
    pub(super) next: u64,
    /// Up to where each member has delivered, by node.
    acknowledged: Vec<u64>,
    /// The next broadcast of each node that has no number.
    pub(super) unnumbered: Vec<u64>,
    /// Nodes whose next broadcast is here as a whole, in the order in which that came about.
    ready: VecDeque<NodeId>,
    /// The number that the token on its way acknowledges, and whether it is back.
    pub(super) token: Option<(u64, bool)>,
    round: u64,
}

impl Sequencer {
    /// At the beginning of a view, when everything up to `end` is delivered everywhere.
    pub(super) fn new(end: u64, unnumbered: Vec<u64>) -> Sequencer {
        Sequencer {
            next: end + 1,
            acknowledged: vec![end; unnumbered.len()],
            unnumbered,
            ready: VecDeque::new(),
            token: None,
            round: 0,
        }
    }

    /// A member has delivered up to `done`.
    pub(super) fn has_delivered(&mut self, node: NodeId, done: u64) {
        let known = &mut self.acknowledged[node.index()];
        *known = done.max(*known);
    }
}

impl<B: Body> Group<B> {
    /// Looks whether a broadcast can be numbered, now that more of it has come.
    pub(super) fn ready(&mut self, origin: NodeId, serial: u64) {
        let incoming = self.incoming.get(&(origin, serial));
        let is_next = self.sequencer.unnumbered[origin.index()] == serial;
        let listed = self.sequencer.ready.contains(&origin);
        if is_next && !listed && incoming.is_some_and(Incoming::is_whole) {
            self.sequencer.ready.push_back(origin);
        }
    }

    /// Numbers what is ready, as far as the window goes.
    pub(super) fn number_all(&mut self, out: &mut Vec<GroupCommand<B>>) {
        if !self.is_sequencer() || !self.is_going() {
            return;
        }
        let window = u64::from(self.settings.window);
        while let Some(&origin) = self.sequencer.ready.front() {
            let serial = self.sequencer.unnumbered[origin.index()];
            let Some(incoming) = self.incoming.get(&(origin, serial)) else {
                self.sequencer.ready.pop_front();
                continue;
            };
            let after = self.sequencer.next - 1 + incoming.bodies.len() as u64;
            if after - self.stable > window {
                break;
            }
            self.sequencer.ready.pop_front();
            self.number(origin, serial, out);
            self.ready(origin, serial + 1);
        }
        self.send_token_if(|group| group.is_held_back() || group.lacks_many(), out);
    }

    /// Whether a broadcast waits for acknowledgements of others.
    pub(super) fn is_held_back(&self) -> bool {
        !self.sequencer.ready.is_empty()
    }

    fn lacks_many(&self) -> bool {
        let every = self.settings.acknowledge_every.min(self.settings.window);
        self.unacknowledged() >= u64::from(every.max(1))
    }

    /// Numbers that not all members are known to have delivered.
    pub(super) fn unacknowledged(&self) -> u64 {
        self.sequencer.next - 1 - self.stable
    }

    fn number(&mut self, origin: NodeId, serial: u64, out: &mut Vec<GroupCommand<B>>) {
        let Some(incoming) = self.incoming.remove(&(origin, serial)) else {
            return;
        };
        let Incoming { method, bodies } = incoming;
        let (first, parts) = (self.sequencer.next, bodies.len() as u32);
        self.sequencer.next += u64::from(parts);
        self.sequencer.unnumbered[origin.index()] = serial + 1;
        let stable = self.stable;
        let part = |part| Part {
            origin,
            serial,
            part,
            parts,
        };
        for ((number, part), body) in (first..).zip((0..parts).map(part)).zip(bodies) {
            self.history.put(number, part, body.clone());
            if let (Method::Forward, Some(body)) = (method, body) {
                let cast = Cast::Data {
                    number,
                    part,
                    body,
                    stable,
                };
                self.multicast(cast, out);
            }
        }
        match method {
            Method::Forward => {}
            Method::Ask => out.push(GroupCommand::Send {
                to: origin,
                message: self.grant(serial, first),
            }),
            Method::Announce => {
                let cast = Cast::Accept {
                    origin,
                    serial,
                    parts,
                    first,
                    stable,
                };
                self.multicast(cast, out);
            }
        }
    }

    fn grant(&self, serial: u64, first: u64) -> GroupMessage<B> {
        GroupMessage::Grant {
            view: self.view.id,
            serial,
            first,
            stable: self.stable,
        }
    }

    pub(super) fn accept(&self, part: Part, first: u64) -> GroupMessage<B> {
        GroupMessage::Accept {
            view: self.view.id,
            origin: part.origin,
            serial: part.serial,
            parts: part.parts,
            first,
            stable: self.stable,
        }
    }

    /// Answers whoever asks again for numbers that it has been given.
    pub(super) fn tell_numbers(&self, of: Part, how: Method, out: &mut Vec<GroupCommand<B>>) {
        let Some(first) = self.history.first_of(of) else {
            return;
        };
        let message = match how {
            Method::Ask => self.grant(of.serial, first),
            Method::Forward | Method::Announce => self.accept(of, first),
        };
        let to = of.origin;
        out.push(GroupCommand::Send { to, message });
    }

    /// A member has delivered up to `done`: so may all have.
    pub(super) fn acknowledge(&mut self, node: NodeId, done: u64) {
        self.sequencer.has_delivered(node, done);
        let members = self.view.members.iter();
        let least = members.map(|node| self.sequencer.acknowledged[node.index()]);
        if let Some(stable) = least.min() {
            self.learn_stable(stable);
        }
    }

    /// Sends a token, if none is on its way.
    pub(super) fn send_token_if(
        &mut self,
        wanted: impl Fn(&Group<B>) -> bool,
        out: &mut Vec<GroupCommand<B>>,
    ) {
        let idle = self.sequencer.token.is_none() && self.unacknowledged() > 0;
        if idle && self.view.members.len() > 1 && wanted(self) {
            self.send_token(out);
        }
    }

    /// Sends a token, whether or not one is on its way that may be lost.
    pub(super) fn send_token(&mut self, out: &mut Vec<GroupCommand<B>>) {
        let high = self.sequencer.next - 1;
        self.sequencer.token = Some((high, false));
        self.sequencer.round += 1;
        let message = GroupMessage::Token {
            view: self.view.id,
            round: self.sequencer.round,
            high,
            stable: self.stable,
        };
        let to = self.next_on_ring();
        out.push(GroupCommand::Send { to, message });
    }

    fn next_on_ring(&self) -> NodeId {
        let members = &self.view.members;
        let place = members.iter().position(|node| *node == self.me);
        members[place.map_or(0, |place| (place + 1) % members.len())]
    }

    pub(super) fn take_token(
        &mut self,
        from: NodeId,
        round: u64,
        high: u64,
    ) -> Result<(), &'static str> {
        if !self.is_sequencer() {
            if high > self.history.done + u64::from(self.settings.window) {
                return Err("a token for numbers beyond all that may be given out");
            }
            self.history.high = self.history.high.max(high);
            if round > self.last_round {
                self.last_round = round;
                self.token = Some((round, high));
            }
            return Ok(());
        }
        if round > self.sequencer.round {
            return Err("a token that the sequencer has not sent");
        }
        let last = self.view.members.last();
        if round == self.sequencer.round
            && last == Some(&from)
            && let Some((_, back)) = &mut self.sequencer.token
        {
            *back = true;
        }
        Ok(())
    }

    /// Passes the token on, if it is here and what it acknowledges is.
    pub(super) fn pass_token(&mut self, out: &mut Vec<GroupCommand<B>>) {
        if self.is_sequencer() {
            if let Some((high, true)) = self.sequencer.token
                && self.history.done >= high
            {
                self.sequencer.token = None;
                for place in 0..self.view.members.len() {
                    self.acknowledge(self.view.members[place], high);
                }
            }
        } else if let Some((round, high)) = self.token
            && self.history.done >= high
        {
            self.token = None;
            let message = GroupMessage::Token {
                view: self.view.id,
                round,
                high,
                stable: self.stable,
            };
            let to = self.next_on_ring();
            out.push(GroupCommand::Send { to, message });
        }
    }
}
