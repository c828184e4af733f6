//! What a member does with the messages of its view.

use dhole_model::NodeId;

use super::message::{GroupMessage, Part};
use super::{Body, Group, GroupCommand, Incoming, Method, Phase};

/// Most parts that one fetch is answered with, where links may lose them again.
const MOST_FETCHED: usize = 32;

impl<B: Body> Group<B> {
    /// Takes a message of the order: not one that changes the view.
    pub(super) fn take(
        &mut self,
        from: NodeId,
        message: GroupMessage<B>,
        out: &mut Vec<GroupCommand<B>>,
    ) -> Result<(), &'static str> {
        match message {
            GroupMessage::Submit {
                part, body, done, ..
            } => {
                self.only_for_sequencer()?;
                self.heard_of(from, done)?;
                self.take_part(part, body, Method::Forward, out)
            }
            GroupMessage::Announce {
                part, body, done, ..
            } => {
                self.heard_of(from, done)?;
                self.take_part(part, body, Method::Announce, out)
            }
            GroupMessage::Ask {
                serial,
                parts,
                done,
                ..
            } => {
                self.only_for_sequencer()?;
                self.heard_of(from, done)?;
                self.take_ask(from, serial, parts, out)
            }
            GroupMessage::Grant {
                serial,
                first,
                stable,
                ..
            } => {
                self.only_from_sequencer(from)?;
                self.heard_stable(stable)?;
                self.granted(serial, first, out)
            }
            GroupMessage::Accept {
                origin,
                serial,
                parts,
                first,
                stable,
                ..
            } => {
                self.only_from_sequencer(from)?;
                self.heard_stable(stable)?;
                let part = |part| Part {
                    origin,
                    serial,
                    part,
                    parts,
                };
                self.take_accept(first, part)
            }
            GroupMessage::Data {
                number,
                part,
                body,
                stable,
                ..
            } => self.take_data(number, part, body, stable),
            GroupMessage::Fetch {
                first, last, done, ..
            } => {
                self.heard_of(from, done)?;
                self.answer_fetch(from, first, last, out);
                Ok(())
            }
            GroupMessage::Token {
                round,
                high,
                stable,
                ..
            } => {
                self.heard_stable(stable)?;
                self.take_token(from, round, high)
            }
            GroupMessage::Relay {
                root, link, cast, ..
            } => self.take_relayed(from, root, link, cast, out),
            GroupMessage::Credit { link, .. } => self.take_credit(from, link, out),
            GroupMessage::Have { done, asks, .. } => self.take_have(from, done, asks),
            _ => Ok(()),
        }
    }

    /// Whether a message of the new view shows that it is in use.
    pub(super) fn shows_use(&self, message: &GroupMessage<B>) -> bool {
        match message {
            GroupMessage::Data { number, .. } => *number > self.view.start,
            GroupMessage::Accept { first, .. } => *first > self.view.start,
            GroupMessage::Announce { .. }
            | GroupMessage::Token { .. }
            | GroupMessage::Have { .. }
            | GroupMessage::Relay { .. } => true,
            _ => false,
        }
    }

    fn only_for_sequencer(&self) -> Result<(), &'static str> {
        match self.is_sequencer() {
            true => Ok(()),
            false => Err("what only the sequencer is told"),
        }
    }

    fn only_from_sequencer(&self, from: NodeId) -> Result<(), &'static str> {
        match from == self.view.id.sequencer {
            true => Ok(()),
            false => Err("what only the sequencer says"),
        }
    }

    /// Notes up to where another member has delivered.
    fn heard_of(&mut self, from: NodeId, done: u64) -> Result<(), &'static str> {
        if self.is_sequencer() && self.is_going() {
            if done >= self.sequencer.next {
                return Err("an acknowledgement of what has no number");
            }
            self.acknowledge(from, done);
        }
        Ok(())
    }

    /// Notes up to where all members have delivered.
    fn heard_stable(&mut self, stable: u64) -> Result<(), &'static str> {
        if self.is_sequencer() {
            return Ok(());
        }
        if stable > self.history.done {
            return Err("an acknowledgement that this node has not given");
        }
        self.learn_stable(stable);
        Ok(())
    }

    pub(super) fn learn_stable(&mut self, stable: u64) {
        self.stable = self.stable.max(stable);
        self.history.trim(self.stable);
    }

    fn take_part(
        &mut self,
        part: Part,
        body: B,
        method: Method,
        out: &mut Vec<GroupCommand<B>>,
    ) -> Result<(), &'static str> {
        let origin = part.origin;
        if self.is_sequencer() && part.serial < self.sequencer.unnumbered[origin.index()] {
            // The originator has not heard, or other members lack what was lost on its way here.
            self.tell_numbers(part, method, out);
        }
        if part.serial < self.peers[origin.index()].serial {
            return Ok(());
        }
        // The sequencer knows what it has numbered, and need not look for what is new.
        let may_be_numbered =
            !self.is_sequencer() || part.serial < self.sequencer.unnumbered[origin.index()];
        if may_be_numbered && let Some(first) = self.history.first_of(part) {
            let number = first + u64::from(part.part);
            self.history.check(number, part, self.settings.window)?;
            self.history.put(number, part, Some(body));
            return Ok(());
        }
        self.check_room(part)?;
        let incoming = self.incoming.entry((origin, part.serial));
        let incoming = incoming.or_insert_with(|| Incoming {
            method,
            bodies: vec![None; part.parts as usize],
        });
        match incoming.bodies.get_mut(part.part as usize) {
            Some(place) if incoming.method == method => *place = Some(body),
            _ => return Err("parts that do not belong together"),
        }
        if self.is_sequencer() {
            self.ready(origin, part.serial);
        }
        Ok(())
    }

    /// Whether a broadcast without numbers may be one of so many that its originator has under way.
    fn check_room(&self, part: Part) -> Result<(), &'static str> {
        let Part {
            origin,
            serial,
            parts,
            ..
        } = part;
        let window = u64::from(self.settings.window);
        let next = self.peers[origin.index()].serial;
        if serial - next > window + u64::from(self.settings.under_way) {
            return Err("a broadcast long before its turn");
        }
        let of_origin = (origin, 0)..=(origin, u64::MAX);
        let others = self.incoming.range(of_origin);
        let others = others.filter(|((_, other), _)| *other != serial);
        let kept: usize = others.map(|(_, incoming)| incoming.bodies.len()).sum();
        match kept as u64 + u64::from(parts) > 2 * window {
            true => Err("more broadcasts under way than there may be"),
            false => Ok(()),
        }
    }

    fn take_ask(
        &mut self,
        from: NodeId,
        serial: u64,
        parts: u32,
        out: &mut Vec<GroupCommand<B>>,
    ) -> Result<(), &'static str> {
        let part = Part {
            origin: from,
            serial,
            part: 0,
            parts,
        };
        if serial < self.sequencer.unnumbered[from.index()] {
            self.tell_numbers(part, Method::Ask, out);
            return Ok(());
        }
        self.check_room(part)?;
        let incoming = Incoming::whole(Method::Ask, vec![None; parts as usize]);
        self.incoming.entry((from, serial)).or_insert(incoming);
        self.ready(from, serial);
        Ok(())
    }

    fn take_accept(&mut self, first: u64, part: impl Fn(u32) -> Part) -> Result<(), &'static str> {
        let Part {
            origin,
            serial,
            parts,
            ..
        } = part(0);
        for (number, part) in (first..).zip((0..parts).map(&part)) {
            self.history.check(number, part, self.settings.window)?;
        }
        let bodies = match origin == self.me {
            true => self.own_bodies(serial),
            false => match self.incoming.get(&(origin, serial)) {
                Some(incoming) => incoming.bodies.clone(),
                None => Vec::new(),
            },
        };
        self.incoming.remove(&(origin, serial));
        self.note_numbers(part(0));
        let bodies = bodies.into_iter().chain(std::iter::repeat(None));
        for ((number, part), body) in (first..).zip((0..parts).map(&part)).zip(bodies) {
            self.history.put(number, part, body);
        }
        Ok(())
    }

    fn note_numbers(&mut self, part: Part) {
        if part.origin == self.me {
            self.own.numbered(part.serial);
        }
    }

    fn take_data(
        &mut self,
        number: u64,
        part: Part,
        body: B,
        stable: u64,
    ) -> Result<(), &'static str> {
        self.history.check(number, part, self.settings.window)?;
        if self.is_sequencer() && number >= self.sequencer.next && self.phase == Phase::Going {
            return Err("a number that the sequencer has not given");
        }
        if self.phase == Phase::Installing && number > self.view.start {
            return Ok(());
        }
        self.heard_stable(stable)?;
        self.note_numbers(part);
        self.history.put(number, part, Some(body));
        Ok(())
    }

    fn answer_fetch(&self, to: NodeId, first: u64, last: u64, out: &mut Vec<GroupCommand<B>>) {
        let most = match self.settings.reliable {
            true => self.settings.window as usize,
            false => MOST_FETCHED,
        };
        let (view, stable) = (self.view.id, self.stable);
        let last = last.min(self.history.high);
        for number in (first..=last).take(most) {
            let Some(slot) = self.history.at(number) else {
                continue;
            };
            let part = slot.part;
            let message = match &slot.body {
                Some(body) => GroupMessage::Data {
                    view,
                    number,
                    part,
                    body: body.clone(),
                    stable,
                },
                // The sequencer knows at least who has it.
                None if self.is_sequencer() => self.accept(part, number - u64::from(part.part)),
                None => continue,
            };
            out.push(GroupCommand::Send { to, message });
        }
    }

    /// No number is given out before all have acknowledged what is a window below it.
    pub(super) fn forget_far_below(&mut self) {
        let window = u64::from(self.settings.window);
        self.learn_stable(self.history.high.saturating_sub(window));
    }

    /// Does what has become possible: delivers, numbers, sends, passes the token on.
    pub(super) fn go_on(&mut self, out: &mut Vec<GroupCommand<B>>) {
        self.forget_far_below();
        loop {
            let before = (self.history.done, self.own.under_way, self.sequencer.next);
            if self.phase == Phase::Installing && self.stopped.is_none() {
                let lacked = self.history.done < self.view.start;
                self.deliver_to_end(out);
                if lacked && self.history.done >= self.view.start {
                    self.install_further(out);
                }
            }
            if self.is_going() {
                self.deliver(out);
                self.launch(out);
                self.pass_token(out);
                self.number_all(out);
            }
            if before == (self.history.done, self.own.under_way, self.sequencer.next) {
                return;
            }
        }
    }

    /// Delivers what has its turn.
    pub(super) fn deliver(&mut self, out: &mut Vec<GroupCommand<B>>) {
        let before = self.history.done;
        while let Some((sequence, part, body)) = self.history.deliver() {
            let from = part.origin;
            self.peers[from.index()].serial = part.serial.saturating_add(1);
            self.incoming.remove(&(from, part.serial));
            if from == self.me {
                self.own.delivered(part.serial);
            }
            if self.settings.confirm {
                self.safe.delivered(self.me, from, sequence);
            }
            out.push(GroupCommand::Deliver {
                sequence,
                from,
                body,
            });
        }
        if self.history.done == before {
            return;
        }
        self.clock.progress();
        self.history.trim(self.stable);
        if self.is_sequencer() && self.is_going() {
            self.acknowledge(self.me, self.history.done);
        }
    }

    /// Asks for the first numbers that are missing: the sequencer, or whoever broadcast them.
    pub(super) fn fetch(&mut self, ask_originator: bool, out: &mut Vec<GroupCommand<B>>) {
        let Some((first, last)) = self.history.missing() else {
            return;
        };
        let originator = self.history.at(first).map(|slot| slot.part.origin);
        let originator = originator.filter(|node| *node != self.me);
        let to = match originator {
            Some(originator) if ask_originator || self.is_sequencer() => originator,
            _ if self.is_sequencer() => return,
            _ => self.view.id.sequencer,
        };
        let message = GroupMessage::Fetch {
            view: self.view.id,
            first,
            last,
            done: self.history.done,
        };
        out.push(GroupCommand::Send { to, message });
    }
}
