//! Lazy flushing for arrays: copies of elements that stay over acquires. As for
//! [objects](crate::coherence::home), with each element counted for itself; a fetch of several
//! ranges is told to keep all of them or none.

use std::collections::BTreeMap;

use dhole_model::{Coherence, Elements, NodeId, Oid, OidRange, RangeSet, Segments};
use smallvec::SmallVec;

use crate::Message;
use crate::array_command::WantedElements;
use crate::coherence::Protocols;
use crate::coherence::arrays::Arrays;
use crate::coherence::invalidation_acks::{InvalidationAcks, Then};
use crate::command::{Command, Commands};
use crate::error::ProtocolError;

/// Fetches without another writer between them after which a copy is kept.
const TWICE: u8 = 2;

/// What is counted for a node that was told to keep its copy.
const KEEPS: u8 = 3;

/// One node's part in the retention of copies, as a home and as one that retains.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct ElementRetention {
    /// At home: how often each other node has fetched elements since another node than itself
    /// wrote them, up to [`TWICE`], or [`KEEPS`].
    fetched: BTreeMap<(Oid, NodeId), Segments<u8>>,
    /// At home: changes of which not all have said that they know.
    acks: InvalidationAcks,
    /// Copies here of elements at home elsewhere that stay over acquires.
    kept: BTreeMap<Oid, RangeSet>,
    /// What became outdated while a reply was on its way that may say to keep it.
    outdated: Vec<Elements>,
}

impl ElementRetention {
    /// At home: a node fetches elements. Whether it is to keep them: all or none.
    pub fn fetched(&mut self, from: NodeId, wanted: &[WantedElements]) -> bool {
        let twice = |wanted: &WantedElements| {
            let elements = wanted.elements;
            let counts = self.fetched.get(&(elements.array, from));
            counts.is_some_and(|counts| {
                counts
                    .of(elements.range())
                    .all(|(_, fetched)| fetched >= TWICE)
            })
        };
        let keep = wanted.iter().all(twice);
        for WantedElements { elements, .. } in wanted {
            let counts = self.fetched.entry((elements.array, from)).or_default();
            counts.update(elements.range(), |_, fetched| {
                *fetched = match keep {
                    true => KEEPS,
                    false => (*fetched + 1).clamp(1, (*fetched).max(TWICE)),
                }
            });
        }
        keep
    }

    /// At home: `by` has changed these elements. Tells those that keep them, and says what follows
    /// if nobody does.
    pub fn changed(
        &mut self,
        by: NodeId,
        changed: impl Iterator<Item = Elements>,
        then: Then,
        out: &mut Commands,
    ) -> Option<Then> {
        let mut told: Vec<(NodeId, Elements)> = Vec::new();
        for elements in changed {
            let array = elements.array;
            let of_array = self
                .fetched
                .range_mut((array, NodeId(0))..=(array, NodeId(u16::MAX)));
            for ((_, reader), counts) in of_array.filter(|((_, reader), _)| *reader != by) {
                counts.update(elements.range(), |part, fetched| {
                    if std::mem::take(fetched) == KEEPS {
                        told.push((*reader, Elements::new(array, part)));
                    }
                });
            }
        }
        if !told.is_empty() {
            self.fetched.retain(|_, counts| !counts.is_empty());
        }
        self.acks.invalidate(told, then, |to, number, of_one| {
            let mut parts = Vec::with_capacity(of_one.len());
            of_one
                .iter()
                .for_each(|(_, part)| Elements::push(&mut parts, *part));
            let elements = parts.into();
            let message = Message::OutdatedElements { number, elements };
            out.push(Command::Send { to, message });
        })
    }

    /// Whether the home's own flush waits for others to know.
    pub fn holds_own_flush(&self) -> bool {
        self.acks.holds_own_flush()
    }

    /// The worker asks for elements: replies to what it asked before do not count any more.
    pub fn asks(&mut self) {
        self.outdated.clear();
    }

    /// A copy has come that is to be kept. Whether it may be.
    pub fn keep(&mut self, elements: Elements) -> bool {
        let may = !self.outdated.iter().any(|other| other.meets(elements));
        if may {
            let kept = self.kept.entry(elements.array).or_default();
            kept.set(elements.range(), true);
        }
        may
    }

    /// The home says that copies are outdated: the parts of them that were kept.
    pub fn outdated(
        &mut self,
        elements: &[Elements],
        awaited: impl Fn(Elements) -> bool,
    ) -> Vec<Elements> {
        let mut were_kept = Vec::new();
        for elements in elements {
            if let Some(kept) = self.kept.get_mut(&elements.array) {
                kept.update(elements.range(), |part, is_kept| {
                    if std::mem::take(is_kept) {
                        were_kept.push(Elements::new(elements.array, part));
                    }
                });
                if kept.is_empty() {
                    self.kept.remove(&elements.array);
                }
            }
            if awaited(*elements) {
                self.outdated.push(*elements);
            }
        }
        were_kept
    }

    /// The array is kept consistent otherwise from now on. What was counted of the others stays: a
    /// node that left the barrier before this one may have been told to keep its copy.
    pub fn switched(&mut self, array: Oid) {
        self.kept.remove(&array);
    }

    /// The arrays with these ids were freed.
    pub fn forget(&mut self, ids: OidRange) {
        ids.remove_from(&mut self.kept);
        self.fetched.retain(|(array, _), _| !ids.contains(*array));
    }
}

impl Arrays {
    /// A node fetches elements. Whether they are at home here, and it is to keep them.
    pub(crate) fn is_to_keep(&mut self, from: NodeId, wanted: &[WantedElements]) -> bool {
        let at_home = |wanted: &WantedElements| {
            let has_home = self.coherence(wanted.elements.array) == Some(Coherence::Home);
            let mut states = self.states(wanted.elements);
            has_home && states.all(|state| state.is_held_by(self.me))
        };
        wanted.iter().all(at_home) && self.home.retention.fetched(from, wanted)
    }
}

impl Protocols {
    /// The home of elements says that copies of them are outdated.
    pub fn elements_outdated(
        &mut self,
        (from, number): (NodeId, u32),
        elements: &SmallVec<[Elements; 1]>,
        out: &mut Commands,
    ) {
        let Arrays { fetches, home, .. } = &mut self.arrays;
        let awaited = |part: Elements| fetches.awaits(|wanted| wanted.elements.meets(part));
        for part in home.retention.outdated(elements, awaited) {
            home.cache(part);
        }
        let message = Message::OutdatedElementsAck { number };
        out.push(Command::Send { to: from, message });
    }

    /// A node knows that its copies of elements at home here are outdated.
    pub fn knows_elements(
        &mut self,
        from: NodeId,
        number: u32,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let then = self.arrays.home.retention.acks.acknowledged(from, number)?;
        acknowledge(then, out);
        if then == Some(Then::GoOn) {
            self.is_home(out);
        }
        Ok(())
    }
}

/// Tells a node that its flush is over, if it is.
pub(crate) fn acknowledge(then: Option<Then>, out: &mut Commands) {
    if let Some(Then::Acknowledge(to, number)) = then {
        let message = Message::ElementsFlushed { number };
        out.push(Command::Send { to, message });
    }
}
