//! What this member broadcasts: how it gets its numbers, and how it is sent.

use std::collections::VecDeque;

use super::message::{Cast, GroupMessage, Part};
use super::{Body, Ending, Group, GroupCommand, GroupError, Incoming, Method, Phase};

/// A broadcast of this member that is not delivered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Pending<B> {
    pub(super) serial: u64,
    pub(super) body: B,
    bytes: usize,
    parts: u32,
    /// Whether this view's sequencer has given it its numbers.
    pub(super) numbered: bool,
}

impl<B> Pending<B> {
    /// One of a single part.
    pub(super) fn whole(serial: u64, body: B, bytes: usize) -> Pending<B> {
        Pending {
            serial,
            body,
            bytes,
            parts: 1,
            numbered: false,
        }
    }
}

/// The broadcasts of this member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Own<B> {
    pub(super) next: u64,
    pub(super) pending: VecDeque<Pending<B>>,
    /// How many of them, from the first on, are sent in this view.
    pub(super) under_way: usize,
}

impl<B> Own<B> {
    pub(super) fn new() -> Own<B> {
        Own {
            next: 0,
            pending: VecDeque::new(),
            under_way: 0,
        }
    }

    /// A broadcast is delivered.
    pub(super) fn delivered(&mut self, serial: u64) {
        while self.pending.front().is_some_and(|p| p.serial <= serial) {
            self.pending.pop_front();
            self.under_way = self.under_way.saturating_sub(1);
        }
    }

    /// The sequencer has numbered a broadcast.
    pub(super) fn numbered(&mut self, serial: u64) {
        let mut pending = self.pending.iter_mut();
        if let Some(pending) = pending.find(|pending| pending.serial == serial) {
            pending.numbered = true;
        }
    }

    /// The view has changed: everything is to be sent again.
    pub(super) fn start_over(&mut self) {
        self.under_way = 0;
        self.pending.iter_mut().for_each(|p| p.numbered = false);
    }

    /// Whether something is sent that the sequencer is not known to have numbered.
    pub(super) fn lacks_numbers(&self) -> bool {
        let mut sent = self.pending.iter().take(self.under_way);
        sent.any(|pending| !pending.numbered)
    }
}

impl<B: Body> Group<B> {
    pub(super) fn broadcast(&mut self, body: B, bytes: usize) -> Result<(), GroupError> {
        match self.phase {
            Phase::Ended(ending) => return Err(GroupError::Ended(ending)),
            _ if self.leaves => return Err(GroupError::Ended(Ending::Left)),
            _ => {}
        }
        let limit = self.settings.queue;
        if self.own.pending.len() >= limit {
            return Err(GroupError::Full { limit });
        }
        let largest = self.settings.largest.max(1);
        let parts = match B::DIVISIBLE {
            true => bytes.div_ceil(largest).max(1),
            false => 1,
        };
        let most = self.settings.window as usize;
        let parts = match u32::try_from(parts) {
            Ok(parts) if parts <= self.settings.window => parts,
            _ => {
                let most = most.saturating_mul(largest);
                return Err(GroupError::TooLarge { bytes, most });
            }
        };
        let serial = self.own.next;
        self.own.next += 1;
        self.own.pending.push_back(Pending {
            serial,
            body,
            bytes,
            parts,
            numbered: false,
        });
        Ok(())
    }

    /// Sends what may be under way.
    pub(super) fn launch(&mut self, out: &mut Vec<GroupCommand<B>>) {
        if !self.is_going() {
            return;
        }
        while let Some(next) = self.own.pending.get(self.own.under_way) {
            let sent = self.own.pending.iter().take(self.own.under_way);
            let parts: u64 = sent.map(|pending| u64::from(pending.parts)).sum();
            let fits = parts + u64::from(next.parts) <= u64::from(self.settings.window);
            if self.own.under_way >= self.settings.under_way.max(1) as usize || !fits {
                break;
            }
            self.own.under_way += 1;
            self.send_own(self.own.under_way - 1, out);
        }
    }

    /// The parts of a pending broadcast.
    fn parts_of(&self, place: usize) -> Vec<(Part, B)> {
        let Some(pending) = self.own.pending.get(place) else {
            return Vec::new();
        };
        let part = |part: u32| Part {
            origin: self.me,
            serial: pending.serial,
            part,
            parts: pending.parts,
        };
        if pending.parts == 1 {
            return vec![(part(0), pending.body.clone())];
        }
        let largest = self.settings.largest;
        let cut = |number: u32| {
            let start = number as usize * largest;
            let end = (start + largest).min(pending.bytes);
            (part(number), pending.body.cut(start..end))
        };
        (0..pending.parts).map(cut).collect()
    }

    /// How a broadcast gets its numbers in this view, whose members stay the same.
    fn method_of(&self, pending: &Pending<B>) -> Method {
        let members = self.view.members.len();
        self.settings.method_for(pending.bytes, members)
    }

    fn send_own(&mut self, place: usize, out: &mut Vec<GroupCommand<B>>) {
        let (view, done) = (self.view.id, self.history.done);
        let Some(pending) = self.own.pending.get(place) else {
            return;
        };
        let (serial, parts, method) = (pending.serial, pending.parts, self.method_of(pending));
        if self.is_sequencer() {
            let bodies = self.parts_of(place).into_iter().map(|(_, body)| Some(body));
            let incoming = Incoming::whole(Method::Forward, bodies.collect());
            self.incoming.insert((self.me, serial), incoming);
            self.ready(self.me, serial);
            return;
        }
        let to = view.sequencer;
        if method == Method::Ask {
            let message = GroupMessage::Ask {
                view,
                serial,
                parts,
                done,
            };
            out.push(GroupCommand::Send { to, message });
            return;
        }
        for (part, body) in self.parts_of(place) {
            match method {
                Method::Announce => self.multicast(Cast::Announce { part, body, done }, out),
                _ => out.push(GroupCommand::Send {
                    to,
                    message: GroupMessage::Submit {
                        view,
                        part,
                        body,
                        done,
                    },
                }),
            }
        }
    }

    /// Sends again what the sequencer has not numbered.
    pub(super) fn send_own_again(&mut self, out: &mut Vec<GroupCommand<B>>) {
        for place in 0..self.own.under_way {
            if self.own.pending.get(place).is_some_and(|p| !p.numbered) {
                self.send_own(place, out);
            }
        }
    }

    /// The bodies of a broadcast of this member, by part.
    pub(super) fn own_bodies(&self, serial: u64) -> Vec<Option<B>> {
        let pending = &self.own.pending;
        match pending.iter().position(|pending| pending.serial == serial) {
            Some(place) => {
                let parts = self.parts_of(place).into_iter();
                parts.map(|(_, body)| Some(body)).collect()
            }
            None => Vec::new(),
        }
    }

    /// The sequencer has given numbers to a broadcast of this member, which is multicast with them.
    pub(super) fn granted(
        &mut self,
        serial: u64,
        first: u64,
        out: &mut Vec<GroupCommand<B>>,
    ) -> Result<(), &'static str> {
        let mut pending = self.own.pending.iter();
        let Some(place) = pending.position(|pending| pending.serial == serial) else {
            return Ok(());
        };
        let method = self.method_of(&self.own.pending[place]);
        if place >= self.own.under_way || method != Method::Ask {
            return Err("numbers that nobody asked for");
        }
        if self.own.pending[place].numbered {
            return Ok(());
        }
        let parts = self.parts_of(place);
        for (number, (part, _)) in (first..).zip(&parts) {
            self.history.check(number, *part, self.settings.window)?;
        }
        self.own.pending[place].numbered = true;
        let stable = self.stable;
        for (number, (part, body)) in (first..).zip(parts) {
            self.history.put(number, part, Some(body.clone()));
            let cast = Cast::Data {
                number,
                part,
                body,
                stable,
            };
            self.multicast(cast, out);
        }
        Ok(())
    }
}
