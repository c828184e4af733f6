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
//! An object that is written after each other fetch is never kept, and costs what it did.

use std::collections::{BTreeMap, BTreeSet};

use dhole_model::{NodeId, Oid};
use smallvec::SmallVec;

use crate::Message;
use crate::coherence::invalidation_acks::{InvalidationAcks, Then};
use crate::command::{Command, Commands};
use crate::error::ProtocolError;
use crate::node_set::NodeSet;

/// One node's part in the retention of copies, as a home and as one that retains.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Retention {
    /// At home: who reads each object that others have fetched.
    readers: BTreeMap<Oid, Readers>,
    /// At home: changes of which not all have said that they know.
    acks: InvalidationAcks,
    /// Copies here of objects at home elsewhere that stay over acquires.
    kept: BTreeSet<Oid>,
    /// What became outdated while a reply was on its way that may say to keep it.
    outdated: Vec<Oid>,
}

/// Who has fetched an object since another node than itself wrote it, how often, and who keeps it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Readers {
    once: NodeSet,
    twice: NodeSet,
    keep: NodeSet,
}

impl Retention {
    /// At home: a node fetches objects. Whether it is to keep them: all or none.
    pub fn fetched(&mut self, from: NodeId, objects: impl Iterator<Item = Oid> + Clone) -> bool {
        let twice = |oid| {
            self.readers
                .get(&oid)
                .is_some_and(|r| r.twice.contains(from))
        };
        let keep = objects.clone().all(twice);
        for oid in objects {
            let readers = self.readers.entry(oid).or_default();
            if keep {
                readers.keep.insert(from);
            } else if readers.once.contains(from) {
                readers.twice.insert(from);
            }
            readers.once.insert(from);
        }
        keep
    }

    /// At home: `by` has changed these objects. Tells those that keep them, and says what follows
    /// if nobody does.
    pub fn changed(
        &mut self,
        by: NodeId,
        objects: impl Iterator<Item = Oid>,
        then: Then,
        out: &mut Commands,
    ) -> Option<Then> {
        let mut told: Vec<(NodeId, Oid)> = Vec::new();
        for oid in objects {
            if let Some(readers) = self.readers.get_mut(&oid) {
                let others = readers.keep.iter().filter(|reader| *reader != by);
                told.extend(others.map(|reader| (reader, oid)));
                let Readers { once, twice, keep } = readers;
                [once, twice, keep]
                    .into_iter()
                    .for_each(|set| set.retain_only(by));
            }
        }
        self.acks.invalidate(told, then, |to, number, of_one| {
            let objects = of_one.iter().map(|(_, oid)| *oid).collect();
            let message = Message::Outdated { number, objects };
            out.push(Command::Send { to, message });
        })
    }

    /// At home: a node knows of a change. What follows if all do.
    pub fn knows(&mut self, from: NodeId, number: u32) -> Result<Option<Then>, ProtocolError> {
        self.acks.acknowledged(from, number)
    }

    /// Whether the home's own flush waits for others to know.
    pub fn holds_own_flush(&self) -> bool {
        self.acks.holds_own_flush()
    }

    /// The worker asks for objects: replies to what it asked before do not count any more.
    pub fn asks(&mut self) {
        self.outdated.clear();
    }

    /// A copy has come that is to be kept. Whether it may be.
    pub fn keep(&mut self, oid: Oid) -> bool {
        let may = !self.outdated.contains(&oid);
        if may {
            self.kept.insert(oid);
        }
        may
    }

    /// The home says that copies are outdated: those of them that were kept.
    pub fn outdated<'a>(
        &'a mut self,
        objects: &'a SmallVec<[Oid; 1]>,
        awaited: impl Fn(Oid) -> bool + 'a,
    ) -> impl Iterator<Item = Oid> + 'a {
        let Retention { kept, outdated, .. } = self;
        objects.iter().copied().filter(move |oid| {
            let was_kept = kept.remove(oid);
            if !was_kept && awaited(*oid) {
                outdated.push(*oid);
            }
            was_kept
        })
    }

    /// The object was freed, or is kept consistent otherwise.
    pub fn forget(&mut self, oid: Oid) {
        self.kept.remove(&oid);
    }

    /// The object was freed.
    pub fn free(&mut self, oid: Oid) {
        self.kept.remove(&oid);
        self.readers.remove(&oid);
    }
}
