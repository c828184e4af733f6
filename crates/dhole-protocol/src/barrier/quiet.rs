//! The barrier of two nodes that have nothing to tell each other: each says just that it is there,
//! and goes on when the other has. Neither waits for a departure, so what lies between two
//! barriers is one way, not there and back.
//!
//! What both do is decided by what each said when it arrived. If one of them told what it knows
//! instead, the other is told so by the manager's departure, as ever.

use dhole_model::{CallSite, IntervalIndex, NodeId};

use super::{Arrival, Barrier, MANAGER};
use serde::{Deserialize, Serialize};

use crate::command::ProtocolError;
use crate::{BarrierId, News};

/// So many places of a program are told once, and then by their numbers.
const MOST_PLACES: usize = 64;

/// What this node said, and heard, of being there.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Quiet {
    /// One more than the number of the last barrier at which this node said just that it was there.
    said: u64,
    /// The newest of its intervals at that moment.
    told: IntervalIndex,
    /// Whether the manager has said so at the barrier that is next here, and at the one after it:
    /// messages overtake each other.
    manager: [bool; 2],
    /// At the manager: one more than the number of the last barrier at which the other said so.
    heard: u64,
    /// The places that this node has told of; at the manager those that it was told of.
    places: Vec<Option<CallSite>>,
}

impl Quiet {
    /// A barrier is over.
    pub fn passed(&mut self) {
        self.manager = [self.manager[1], false];
    }

    /// At the manager: whether the other has said so at the barrier of this number.
    pub fn has_heard(&self, number: u64) -> bool {
        self.heard == number + 1
    }

    /// The other tells which place has this number, perhaps after it has told of later ones.
    fn learn(&mut self, place: u32, site: CallSite) {
        let place = place as usize;
        if place < MOST_PLACES {
            let known = self.places.len().max(place + 1);
            self.places.resize(known, None);
            self.places[place] = Some(site);
        }
    }
}

/// What a node says that arrives and has nothing to tell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Here {
    /// The barrier's number.
    pub number: u64,
    /// Whether this node manages the barrier.
    pub manages: bool,
    /// Where in the program: the number of the place among those that it told of.
    pub place: u32,
    /// Which place that is, if it was not told before.
    pub site: Option<CallSite>,
}

/// What it leads to where it is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// Nothing yet.
    Nothing,
    /// Both are there: the node goes on.
    Over,
    /// The manager takes it for an arrival that tells nothing.
    Arrival(BarrierId, CallSite),
}

impl Barrier {
    /// Whether this node waits where it said just that it was there.
    pub fn is_quietly_there(&self) -> bool {
        self.waiting_at == Some(BarrierId::Program(self.passed))
            && self.quiet.said == self.passed + 1
    }

    /// One more than the number of the last barrier at which this node said so; or 0.
    pub fn said_here(&self) -> u64 {
        self.quiet.said
    }

    /// The worker arrives, and all know what it knows: what it says to the other node, and whether
    /// that one is there already, with nothing to tell. None where it is there with more.
    pub fn arrive_quietly(
        &mut self,
        me: NodeId,
        news: impl FnOnce() -> News,
        last: IntervalIndex,
        site: CallSite,
    ) -> Option<(Here, bool)> {
        let (number, manages) = (self.passed, me == MANAGER);
        let barrier = BarrierId::Program(number);
        let over = match manages {
            false => self.quiet.manager[0],
            true => match &self.arrived[..] {
                [None, Some(other)] if other.quiet && other.barrier == barrier => {
                    self.arrived[1] = None;
                    true
                }
                [None, None] => {
                    let (news, count, quiet) = (news(), 1, true);
                    self.arrived[0] = Some(Arrival {
                        barrier,
                        news,
                        site,
                        count,
                        quiet,
                    });
                    false
                }
                _ => return None,
            },
        };
        self.waiting_at = Some(barrier);
        self.tells(last, site);
        (self.quiet.said, self.quiet.told) = (number + 1, last);
        let (place, site) = self.place_of(manages, site);
        let here = Here {
            number,
            manages,
            place,
            site,
        };
        Some((here, over))
    }

    /// The number of a place, and the place if it is told for the first time. The manager tells of
    /// none: who waits for whom is for it to say.
    fn place_of(&mut self, manages: bool, site: CallSite) -> (u32, Option<CallSite>) {
        if manages {
            return (0, None);
        }
        let places = &mut self.quiet.places;
        // Mostly the very same string.
        let is_it = |known: &Option<CallSite>| match known {
            Some(known) if std::ptr::eq(known.file, site.file) => {
                (known.line, known.column) == (site.line, site.column)
            }
            known => *known == Some(site),
        };
        if let Some(place) = places.iter().position(is_it) {
            return (place as u32, None);
        }
        let place = places.len() as u32;
        if places.len() < MOST_PLACES {
            places.push(Some(site));
        }
        (place, Some(site))
    }

    /// Both are there, and have nothing to tell.
    pub fn depart_quietly(&mut self) {
        if let Some(own) = self.arrived.first_mut() {
            *own = None;
        }
        self.depart(self.quiet.told);
    }

    /// Whether a node may say so to this one.
    pub fn check_here(me: NodeId, from: NodeId, manages: bool) -> Result<(), ProtocolError> {
        if manages != (from == MANAGER) || from == me {
            let what = "that it manages the barrier, or does not";
            return Err(ProtocolError::BadMessage { from, what });
        }
        Ok(())
    }

    /// The other node says that it is there.
    pub fn told_here(
        &mut self,
        me: NodeId,
        from: NodeId,
        here: Here,
    ) -> Result<Told, ProtocolError> {
        let Here {
            number,
            manages,
            place,
            site,
        } = here;
        let bad = |what| Err(ProtocolError::BadMessage { from, what });
        Barrier::check_here(me, from, manages)?;
        let there = self.is_quietly_there();
        if me != MANAGER {
            // It was taken for granted when something later came.
            let Some(ahead) = number.checked_sub(self.passed) else {
                return Ok(Told::Nothing);
            };
            let ahead = usize::try_from(ahead).unwrap_or(usize::MAX);
            return match self.quiet.manager.get_mut(ahead) {
                Some(said) if !*said => {
                    *said = true;
                    match ahead == 0 && there {
                        true => Ok(Told::Over),
                        false => Ok(Told::Nothing),
                    }
                }
                _ => bad("that it is at a barrier which it has not reached, or twice"),
            };
        }
        let barrier = BarrierId::Program(number);
        let before = self.arrived.get_mut(from.index()).and_then(Option::as_mut);
        if number == self.passed {
            let elsewhere = before
                .as_ref()
                .is_some_and(|before| before.barrier != barrier);
            if elsewhere || self.quiet.has_heard(number) {
                return bad("that it is at a barrier, and it has arrived before");
            }
        } else if number > self.passed {
            return bad("that it is at a barrier which it has not reached");
        }
        if let Some(site) = site {
            self.quiet.learn(place, site);
        }
        if number < self.passed {
            return Ok(Told::Nothing);
        }
        self.quiet.heard = number + 1;
        if there {
            return Ok(Told::Over);
        }
        // What its processes did since was told by what has overtaken this.
        if let Some(before) = before {
            before.count += 1;
            return Ok(Told::Nothing);
        }
        let known = self.quiet.places.get(place as usize).copied().flatten();
        let site = site.or(known).unwrap_or(CallSite::runtime("a barrier"));
        Ok(Told::Arrival(barrier, site))
    }

    /// What the other node has said was that it had nothing to tell.
    pub fn was_quiet(&mut self, from: NodeId) {
        if let Some(Some(arrival)) = self.arrived.get_mut(from.index()) {
            arrival.quiet = true;
        }
    }
}
