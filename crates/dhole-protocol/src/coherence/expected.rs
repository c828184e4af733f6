//! Write sets that are learned: what a node wrote last, it is expected to write again.
//!
//! Without them, each first write of an object in an interval is a call of the runtime. A node that
//! writes many objects in each interval writes nearly the same ones as before, and mostly in the
//! order of their ids. So a write fault of an object that this node also wrote last makes writable
//! what follows on it in that order, and was written by this node as recently. Each fault that was
//! foreseen makes twice as many writable as the one before, so a fault of an object that is written
//! alone costs no more than it did. What nobody else has becomes exclusive on the way.
//!
//! The worker notes by itself, without a call, which of them it does write. The others become clean
//! again at the end of the interval, and no notice names them. What others have got from here has a
//! pre-image, so a node that asks for it waits for no call; but for what this node has written
//! alone since, which nobody is likely to ask for.
//!
//! Objects that have a home are not expected to be written: each of them needs a twin that is
//! compared and a flush of its own.

use dhole_model::{CallSite, NodeId, Oid};

use super::Protocols;
use crate::RegionCommand;
use crate::coherence::object_table::ObjectState;
use crate::coherence::races::SiteId;
use crate::command::{Command, Commands};

/// The most objects that one fault makes writable, itself among them.
const MOST_EXPECTED: u32 = 1024;

/// How many sequences of writes, each in the order of ids, may take turns.
const SEQUENCES: usize = 4;

/// States of objects that are looked at for each that may become writable.
const SEEN_FOR_EACH: u64 = 32;

/// A fault no further than this behind the one that was foreseen belongs to the same sequence.
const NEAR: u64 = 64;

/// What this node is expected to write.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct ExpectedWrites {
    learns: bool,
    sequences: [Sequence; SEQUENCES],
    /// The sequence that a new one replaces.
    oldest: usize,
    /// Writable in this interval, because they were expected to be written.
    objects: Vec<Oid>,
}

/// Objects that are written one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Sequence {
    /// The object of the next fault, if it is foreseen.
    next: Oid,
    /// How many objects the last fault made writable.
    made: u32,
}

impl ExpectedWrites {
    /// The objects that became writable in this interval without a fault of their own.
    pub fn objects(&self) -> impl Iterator<Item = Oid> {
        self.objects.iter().copied()
    }

    pub fn end_interval(&mut self) {
        self.objects.clear();
    }

    /// The sequence to which a fault belongs, and how many objects it should make writable.
    fn sequence(&mut self, oid: Oid) -> (usize, u32) {
        let behind = |sequence: &Sequence| oid.0.checked_sub(sequence.next.0);
        let found = |most: u64| {
            let mut all = self.sequences.iter();
            all.position(|next| next.made > 0 && behind(next).is_some_and(|by| by <= most))
        };
        if let Some(foreseen) = found(0) {
            let most = 2 * self.sequences[foreseen].made;
            return (foreseen, most.min(MOST_EXPECTED));
        }
        if let Some(near) = found(NEAR) {
            return (near, (self.sequences[near].made / 2).max(1));
        }
        let place = self.oldest;
        self.oldest = (place + 1) % SEQUENCES;
        (place, 1)
    }
}

impl ObjectState {
    /// Whether `me` is expected to write the object again: it wrote it last, at this Lamport time
    /// or later.
    fn is_expected(&self, me: NodeId, since: u64) -> bool {
        let is_free = !self.dirty && !self.exclusive && !self.freed;
        self.is_announced() && is_free && self.is_held_by(me) && self.newest() >= since
    }
}

impl Protocols {
    /// From now on write sets are learned.
    pub fn expect_writes(&mut self) {
        self.lazy.expected.learns = true;
    }

    pub(super) fn expects_writes(&self) -> bool {
        self.lazy.expected.learns
    }

    /// The worker writes an object that this node wrote last, at Lamport time `since`: makes those
    /// writable that it is expected to write next.
    pub(super) fn expect_after(&mut self, oid: Oid, since: u64, out: &mut Commands) {
        if !self.lazy.expected.learns {
            return;
        }
        let tells = self.races.is_looking() || self.lazy.gates.are_kept;
        let Protocols {
            me, objects, lazy, ..
        } = self;
        let exclusive_after = lazy.exclusive_after;
        let (place, most) = lazy.expected.sequence(oid);
        let (mut made, mut next) = (1, None);
        objects.after(oid, SEEN_FOR_EACH * u64::from(most), |at, object| {
            if !object.is_expected(*me, since) {
                return true;
            }
            if made == most {
                next = Some(at);
                return false;
            }
            made += 1;
            if !tells && object.may_be_exclusive(*me, exclusive_after) {
                object.exclusive = true;
                lazy.is_written_alone(at);
                let (oid, pre_image) = (at, false);
                out.push(Command::Objects(RegionCommand::MakeWritable {
                    region: oid,
                    pre_image,
                }));
                return true;
            }
            let pre_image = object.may_be_asked_for();
            (object.dirty, object.pre_image) = (true, pre_image);
            // Where it is written, if it is, is told at the end of the interval.
            lazy.dirty.push((at, SiteId::default()));
            lazy.expected.objects.push(at);
            out.push(Command::ExpectWrite { oid: at, pre_image });
            true
        });
        let next = next.unwrap_or(oid.plus(1));
        lazy.expected.sequences[place] = Sequence { next, made };
    }

    /// Where the worker has written objects that it was expected to write.
    pub fn written_at(&mut self, mut noted: Vec<(Oid, CallSite)>) {
        // Both consist of few sequences in the order of ids, which a stable sort merges.
        noted.sort_by_key(|(oid, _)| *oid);
        self.lazy.dirty.sort();
        let mut noted = noted.into_iter().peekable();
        for (oid, site) in &mut self.lazy.dirty {
            while noted.next_if(|(written, _)| written < oid).is_some() {}
            if let Some((_, at)) = noted.next_if(|(written, _)| written == oid) {
                *site = self.races.site(at);
            }
        }
    }
}
