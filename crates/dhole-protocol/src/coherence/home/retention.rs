//! Lazy flushing (Jackal, section 3.1): copies that stay over acquires.
//!
//! It is not necessary to drop a copy that nobody else writes. The home sees who fetches: a node
//! that fetches an object for the third time, while nobody else has written it, is told to *keep*
//! its copy. So what is only read is fetched no more, and what one node alone uses is flushed and
//! never fetched. When another node's flush, or one of the home itself, has changed the object,
//! the home tells those that keep it that their copies are *outdated*, and the flush is over when
//! they have said that they know. Each drops its copy at its next acquire, as it would drop one
//! that it does not keep; until then it may go on reading it.
//!
//! An object that is written after each other fetch is never kept, and costs what it did. Each
//! element of an array counts for itself; a fetch of several is told to keep all of them or none.

use dhole_model::{NodeId, OidRange};
use smallvec::SmallVec;

use crate::RegionMessage;
use crate::coherence::invalidation_acks::{InvalidationAcks, Then};
use crate::coherence::kind::Kind;
use crate::coherence::region::{RegionMap, RegionsByNode, push_region};
use crate::command::{Command, Commands};
use crate::error::ProtocolError;

/// Fetches without another writer between them after which a copy is kept.
const TWICE: u8 = 2;

/// What is counted for a node that was told to keep its copy.
const KEEPS: u8 = 3;

/// One node's part in the retention of copies, as a home and as one that retains.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Retention<R: Kind> {
    /// At home: how often each other node has fetched regions since another node than itself wrote
    /// them, up to [`TWICE`], or [`KEEPS`].
    fetched: RegionsByNode<R, u8>,
    /// At home: changes of which not all have said that they know.
    acks: InvalidationAcks,
    /// At home: the regions of those changes, each with the number of its change and a node that
    /// has not said so.
    telling: Vec<(u32, NodeId, R)>,
    /// Copies here of regions at home elsewhere that stay over acquires.
    kept: RegionMap<R, bool>,
    /// What became outdated while a reply was on its way that may say to keep it.
    outdated: Vec<R>,
}

impl<R: Kind> Default for Retention<R> {
    fn default() -> Self {
        Retention {
            fetched: RegionsByNode::default(),
            acks: InvalidationAcks::default(),
            telling: Vec::new(),
            kept: RegionMap::default(),
            outdated: Vec::new(),
        }
    }
}

impl<R: Kind> Retention<R> {
    /// At home: a node fetches regions. Whether it is to keep them: all or none.
    pub fn fetched(&mut self, from: NodeId, regions: impl Iterator<Item = R> + Clone) -> bool {
        let twice = |region| self.fetched.all(region, from, |fetched| fetched >= TWICE);
        let keep = regions.clone().all(twice);
        for region in regions {
            self.fetched.update(region, from, |_, fetched| {
                *fetched = match keep {
                    true => KEEPS,
                    false => (*fetched + 1).clamp(1, (*fetched).max(TWICE)),
                }
            });
        }
        keep
    }

    /// At home: `by` has changed these regions. Tells those that keep them, and says what follows
    /// if nobody does. Whoever has yet to hear of an earlier change is told again: who changed it
    /// now may pass the lock on to that node before it hears of the first.
    pub fn changed(
        &mut self,
        by: NodeId,
        regions: impl Iterator<Item = R>,
        then: Then,
        out: &mut Commands,
    ) -> Option<Then> {
        let mut told: Vec<(NodeId, R)> = Vec::new();
        for region in regions {
            let hears = self
                .telling
                .iter()
                .filter(|(_, _, other)| other.meets(region));
            for (_, reader, part) in hears.filter(|(_, reader, _)| *reader != by) {
                if !told.contains(&(*reader, *part)) {
                    told.push((*reader, *part));
                }
            }
            self.fetched.change_all(region, |reader, part, fetched| {
                if reader != by && std::mem::take(fetched) == KEEPS {
                    told.push((reader, part));
                }
            });
        }
        let telling = &mut self.telling;
        self.acks.invalidate(told, then, |to, number, of_one| {
            let mut regions = Vec::with_capacity(of_one.len());
            let all = of_one.iter().map(|(_, region)| *region);
            telling.extend(all.clone().map(|region| (number, to, region)));
            all.for_each(|region| push_region(&mut regions, region));
            let message = R::message(RegionMessage::Outdated {
                number,
                regions: regions.into(),
            });
            out.push(Command::Send { to, message });
        })
    }

    /// At home: a node knows of a change. What follows if all do.
    pub fn knows(&mut self, from: NodeId, number: u32) -> Result<Option<Then>, ProtocolError> {
        let then = self.acks.acknowledged(from, number)?;
        self.telling
            .retain(|(of, to, _)| (*of, *to) != (number, from));
        Ok(then)
    }

    /// At home: whether a node has yet to say that it knows of a change of the region.
    pub fn is_telling(&self, region: R) -> bool {
        self.telling.iter().any(|(.., other)| other.meets(region))
    }

    /// Whether the home's own flush waits for others to know.
    pub fn holds_own_flush(&self) -> bool {
        self.acks.holds_own_flush()
    }

    /// The worker asks for regions: replies to what it asked before do not count any more.
    pub fn asks(&mut self) {
        self.outdated.clear();
    }

    /// A copy has come that is to be kept. Whether it may be.
    pub fn keep(&mut self, region: R) -> bool {
        let may = !self.outdated.iter().any(|other| other.meets(region));
        if may {
            self.kept.update(region, |_, is_kept| *is_kept = true);
        }
        may
    }

    /// The home says that copies are outdated, of which those are `awaited` that this node asks
    /// for. The parts of them that were kept.
    pub fn outdated(&mut self, regions: &[R], awaited: SmallVec<[R; 1]>) -> SmallVec<[R; 1]> {
        let mut were_kept = SmallVec::new();
        for region in regions {
            self.kept.change(*region, |part, is_kept| {
                were_kept.extend(std::mem::take(is_kept).then_some(part));
            });
        }
        self.outdated.extend(awaited);
        were_kept
    }

    /// The regions with these ids are kept consistent otherwise from now on. What was counted of
    /// the others stays: a node that left the barrier before this one may have been told to keep
    /// its copy.
    pub fn switched(&mut self, ids: OidRange) {
        self.kept.take_all(ids, |_, _| {});
    }

    /// The regions with these ids were freed.
    pub fn forget(&mut self, ids: OidRange) {
        self.kept.take_all(ids, |_, _| {});
        self.fetched.forget(ids);
    }
}
