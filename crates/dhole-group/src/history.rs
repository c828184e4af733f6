//! The last messages in their order: what is not delivered yet, and what somebody may still lack.

use std::collections::VecDeque;

use super::Body;
use super::message::Part;

/// What is known of one number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Slot<B> {
    pub(super) part: Part,
    /// Missing while only the sequencer's word for the number has come.
    pub(super) body: Option<B>,
}

/// Messages by number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct History<B> {
    /// Up to here all members have delivered, and nothing is kept.
    base: u64,
    /// Up to here everything is delivered; never between two parts of a broadcast.
    pub(super) done: u64,
    /// The highest number that is known to be given out.
    pub(super) high: u64,
    slots: VecDeque<Option<Slot<B>>>,
}

impl<B: Body> History<B> {
    /// A history in which everything up to `done` is past.
    pub(super) fn from(done: u64) -> History<B> {
        History {
            base: done,
            done,
            high: done,
            slots: VecDeque::new(),
        }
    }

    fn index(&self, number: u64) -> Option<usize> {
        let above = number.checked_sub(self.base + 1)?;
        usize::try_from(above).ok()
    }

    /// What is known of a number.
    pub(super) fn at(&self, number: u64) -> Option<&Slot<B>> {
        self.slots.get(self.index(number)?)?.as_ref()
    }

    /// Whether the message of a number is here, or was.
    pub(super) fn has(&self, number: u64) -> bool {
        number <= self.done || self.at(number).is_some_and(|slot| slot.body.is_some())
    }

    /// What is wrong with this part at this number, if anything is.
    pub(super) fn check(&self, number: u64, part: Part, window: u32) -> Result<(), &'static str> {
        if number <= self.done {
            return Ok(());
        }
        if number > self.done.saturating_add(u64::from(window)) {
            return Err("a number beyond all that may be given out");
        }
        if number - self.done <= u64::from(part.part) {
            return Err("a broadcast that begins among what is delivered");
        }
        if self.at(number).is_some_and(|slot| slot.part != part) {
            return Err("two messages of one number");
        }
        let follows = |first: Part, second: Part| match first.part + 1 == first.parts {
            true => second.part == 0,
            false => second.part == first.part + 1 && same_broadcast(first, second),
        };
        let before = self.at(number - 1).filter(|_| number - 1 > self.done);
        let after = self.at(number + 1);
        let fits = before.is_none_or(|slot| follows(slot.part, part))
            && after.is_none_or(|slot| follows(part, slot.part));
        match fits {
            true => Ok(()),
            false => Err("a part that is not where its broadcast is"),
        }
    }

    /// Takes what has come. What is there stays.
    pub(super) fn put(&mut self, number: u64, part: Part, body: Option<B>) {
        self.high = self.high.max(number);
        let Some(index) = self.index(number).filter(|_| number > self.done) else {
            return;
        };
        if self.slots.len() <= index {
            self.slots.resize(index + 1, None);
        }
        let slot = self.slots[index].get_or_insert(Slot { part, body: None });
        if slot.body.is_none() {
            slot.body = body;
        }
    }

    /// Whether everything is delivered that is known to have a number.
    pub(super) fn is_delivered(&self) -> bool {
        self.high == self.done && self.slots.len() as u64 == self.done - self.base
    }

    /// Takes the next broadcast, which is of one part, as delivered, where everything before is.
    pub(super) fn append(&mut self, part: Part, body: B) {
        debug_assert!(self.is_delivered() && part.parts == 1);
        let body = Some(body);
        self.slots.push_back(Some(Slot { part, body }));
        self.done += 1;
        self.high = self.done;
    }

    /// The numbers of a broadcast that waits for its turn, if they are known.
    pub(super) fn first_of(&self, of: Part) -> Option<u64> {
        let waits = |number: &u64| self.at(*number).is_some_and(|s| same_broadcast(s.part, of));
        let number = (self.base + 1..=self.high).find(waits)?;
        let part = self.at(number)?.part.part;
        Some(number - u64::from(part))
    }

    /// The next broadcast, when all of it is here: its last number and what it is.
    pub(super) fn deliver(&mut self) -> Option<(u64, Part, B)> {
        let first = self.done + 1;
        let part = self.at(first)?.part;
        let last = self.done + u64::from(part.parts);
        let bodies = (first..=last).map(|number| self.at(number)?.body.clone());
        let body = B::join(bodies.collect::<Option<_>>()?)?;
        self.done = last;
        self.high = self.high.max(last);
        Some((last, part, body))
    }

    /// Forgets what all members have delivered.
    pub(super) fn trim(&mut self, stable: u64) {
        while self.base < stable.min(self.done) {
            self.slots.pop_front();
            self.base += 1;
        }
    }

    /// Forgets what the view that ends has numbered in vain.
    pub(super) fn cut(&mut self, end: u64) {
        let length = self.index(end + 1).unwrap_or(0);
        self.slots.truncate(length);
        self.high = end;
    }

    /// The last number up to `end` that ends a broadcast, when all up to `end` is here.
    pub(super) fn whole(&self, end: u64) -> u64 {
        let mut whole = self.done;
        while let Some(slot) = self.at(whole + 1) {
            match whole + u64::from(slot.part.parts) {
                next if next <= end => whole = next,
                _ => break,
            }
        }
        whole
    }

    /// The first numbers in a row, of those that are given out, of which the message is missing.
    pub(super) fn missing(&self) -> Option<(u64, u64)> {
        let lacks = |number: &u64| !self.has(*number);
        let first = (self.done + 1..=self.high).find(lacks)?;
        let last = (first..=self.high).take_while(lacks).last()?;
        Some((first, last))
    }

    /// Numbers that are not delivered and whose message is here.
    pub(super) fn held(&self) -> Vec<u64> {
        let held = self.done + 1..=self.base + self.slots.len() as u64;
        held.filter(|number| self.has(*number)).collect()
    }

    /// How many numbers are kept.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

fn same_broadcast(one: Part, other: Part) -> bool {
    (one.origin, one.serial, one.parts) == (other.origin, other.serial, other.parts)
}
