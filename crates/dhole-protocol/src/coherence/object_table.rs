use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU64;
use std::ops::Range;

use dhole_model::{CHUNK, Coherence, IdSet, NodeId, Oid, OidRange, Version};
use rustc_hash::{FxHashMap, FxHashSet};

/// What one node's protocol knows of one object. Every node keeps this for every object that it
/// has heard of, so it is small.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct ObjectState {
    /// The version of the bytes stored here, valid or not.
    held: Option<Packed>,
    /// The newest version that a write notice, or our own writing, told of.
    known: Option<Packed>,
    /// How it is kept consistent, once this node has met it.
    pub coherence: Option<Coherence>,
    /// It had a home once, where it may have been written without a version of its own.
    pub had_home: bool,
    /// Written in the current interval.
    pub dirty: bool,
    /// Whether others got it from here.
    served: Served,
    /// Writable over the ends of intervals, without notices: nobody else has a copy, and whoever
    /// wants one will ask us.
    pub exclusive: bool,
    /// Intervals in a row that wrote it here, and nobody has the version of any; or
    /// [`STAYS_CLEAN`].
    alone: u8,
    /// Dirty, and its bytes from before the first write are kept.
    pub pre_image: bool,
    /// Freed: nothing is left of it.
    pub freed: bool,
}

/// In place of a number of intervals: never exclusive. Others may read the object without a message
/// while it is clean, and asked for it, or for one beside it, when it was not.
const STAYS_CLEAN: u8 = u8::MAX;

/// Whether others got an object from here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
enum Served {
    #[default]
    Never,
    /// At some time, so that a first write is worth a pre-image.
    Before,
    /// Since our last write notice of it, which is the newest known.
    Since,
}

/// What becomes of an object at the end of an interval that wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// It is clean, and all are told.
    Shared,
    /// It stays writable. All are told, and of its next versions nobody is.
    Exclusive,
    /// It is clean. Nobody is told, for nobody has the version before, which these bytes have as
    /// well: of two nodes that race, both must find the same one the newer.
    OnlyHere,
}

/// A version in one word, in the same order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Packed(NonZeroU64);

impl From<Version> for Packed {
    fn from(version: Version) -> Packed {
        debug_assert!(version.lamport < 1 << 47, "Lamport time fits into 47 bits");
        let word = version.lamport << 16 | u64::from(version.node.0);
        Packed(NonZeroU64::MIN.saturating_add(word))
    }
}

impl From<Packed> for Version {
    fn from(Packed(word): Packed) -> Version {
        let word = word.get() - 1;
        Version {
            lamport: word >> 16,
            node: NodeId(word as u16),
        }
    }
}

impl ObjectState {
    /// The version of the bytes stored here, valid or not.
    pub fn held(&self) -> Option<Version> {
        self.held.map(Version::from)
    }

    /// The newest version known of; the object as `creator` allocated it, where nobody is known
    /// to have written it.
    pub fn known(&self, creator: NodeId) -> Version {
        self.known.map_or(
            Version {
                lamport: 0,
                node: creator,
            },
            Version::from,
        )
    }

    /// Whether its protocol fetches and writes the objects of a page together.
    pub fn aggregates(&self) -> bool {
        self.coherence
            .is_some_and(|coherence| coherence.properties().aggregates)
    }

    /// Whether write notices name it when it was written.
    pub fn is_announced(&self) -> bool {
        self.coherence
            .is_some_and(|coherence| coherence.properties().announces)
    }

    /// Whether a copy may come that was not asked for: notices say when it is old. The object's
    /// protocol may not be known here yet.
    pub fn may_go_along(&self) -> bool {
        self.coherence.is_none() || self.is_announced()
    }

    /// Who freed the object, or wrote it last.
    pub fn last(&self) -> Option<NodeId> {
        self.known.map(|known| Version::from(known).node)
    }

    /// The object is freed, by whoever wrote its newest version.
    pub fn free(&mut self) {
        *self = ObjectState {
            known: self.known,
            freed: true,
            ..ObjectState::default()
        };
    }

    /// The Lamport time of the newest version known of, or no time at all where it was freed.
    pub fn newest(&self) -> u64 {
        if self.freed {
            return u64::MAX;
        }
        self.known.map_or(0, |known| Version::from(known).lamport)
    }

    /// Whether the newest write known of is one of `node`.
    pub fn last_written_by(&self, node: NodeId) -> bool {
        self.known
            .is_some_and(|known| Version::from(known).node == node)
    }

    /// Whether the stored bytes may be read.
    pub fn is_valid(&self) -> bool {
        self.held.is_some() && self.held >= self.known
    }

    /// Whether a copy of this version would be valid, and there is none that is.
    pub fn lacks(&self, version: Version) -> bool {
        !self.is_valid() && self.known <= Some(version.into())
    }

    /// The bytes of this version are stored here now.
    pub fn hold(&mut self, version: Version) {
        self.held = Some(version.into());
    }

    /// Whether the bytes stored here are valid and of a version of `node`.
    pub fn is_held_by(&self, node: NodeId) -> bool {
        self.is_valid() && self.held().is_some_and(|held| held.node == node)
    }

    /// Others have it from here, in its newest version.
    pub fn serve(&mut self) {
        self.served = Served::Since;
    }

    /// Whether others got it from here at some time.
    pub fn is_served(&self) -> bool {
        self.served != Served::Never
    }

    /// Whether somebody is likely to ask for it while it is written: others got it from here, and
    /// not only before intervals in a row that wrote it here alone.
    ///
    /// Asked of what is only expected to be written, in great numbers. What is written by itself
    /// has a pre-image if others [ever got it](ObjectState::is_served).
    pub fn may_be_asked_for(&self) -> bool {
        match self.served {
            Served::Never => false,
            Served::Before => !self.is_alone(1),
            Served::Since => true,
        }
    }

    /// It will not be exclusive any more.
    pub fn stay_clean(&mut self) {
        self.alone = STAYS_CLEAN;
    }

    /// Whether that was said of it.
    pub fn stays_clean(&self) -> bool {
        self.alone == STAYS_CLEAN
    }

    /// Whether so many intervals in a row wrote it here alone that it may be exclusive.
    pub fn is_alone(&self, after: u8) -> bool {
        self.alone != STAYS_CLEAN && self.alone >= after
    }

    /// The bytes stored here are of no use any more.
    pub fn drop_copy(&mut self) {
        self.held = None;
    }

    /// The interval of this version has written the object, and ends. Nobody but `me` has the
    /// object if it wrote the last version too, and nobody has got that; where this may be made
    /// use of, nobody is told of the next versions, and after so many (`may`) it stays writable.
    pub fn end_interval(&mut self, me: NodeId, version: Version, may: Option<u8>) -> Ended {
        let is_served = self.served == Served::Since;
        let only_here = may.is_some() && self.last_written_by(me) && !is_served;
        if self.alone != STAYS_CLEAN {
            self.alone = match only_here {
                true => (self.alone + 1).min(STAYS_CLEAN - 1),
                false => 0,
            };
        }
        self.exclusive = only_here && self.alone != STAYS_CLEAN && Some(self.alone) > may;
        let ended = match only_here {
            false => Ended::Shared,
            true if self.exclusive => Ended::Exclusive,
            // Announced a second time, so that races which recur are found.
            true if self.alone == 1 => Ended::Shared,
            true => Ended::OnlyHere,
        };
        if ended != Ended::OnlyHere {
            self.hold(version);
            self.hear(version);
        }
        self.dirty = false;
        self.pre_image = false;
        self.served = self.served.min(Served::Before);
        ended
    }

    /// This part of a region and another one as one.
    pub fn and(self, other: ObjectState) -> ObjectState {
        ObjectState {
            held: self.held.min(other.held),
            known: self.known.max(other.known),
            dirty: self.dirty || other.dirty,
            exclusive: self.exclusive || other.exclusive,
            ..self
        }
    }

    /// Somebody has written this version. Whether that made our copy invalid.
    pub fn hear(&mut self, version: Version) -> bool {
        let was_valid = self.is_valid();
        self.known = self.known.max(Some(version.into()));
        was_valid && !self.is_valid()
    }
}

/// An object of a chunk that is all freed.
const GONE: ObjectState = ObjectState {
    held: None,
    known: None,
    coherence: None,
    dirty: false,
    served: Served::Never,
    exclusive: false,
    alone: 0,
    pre_image: false,
    freed: true,
    had_home: false,
};

/// The states of the objects of one chunk.
#[derive(Clone)]
struct Chunk {
    states: [ObjectState; CHUNK as usize],
    /// This node has allocated them, so that their number is its own program's business.
    own: bool,
}

/// Chunks that share an entry of the table: with so few entries it stays in the cache, where one
/// for each chunk would not.
const PAGE: u64 = 64;

type Page = [Option<Box<Chunk>>; PAGE as usize];

/// A chunk, made where there is none; nothing where all its objects are freed, which is asked only
/// where it is not there.
fn chunk<'a>(
    pages: &'a mut FxHashMap<u64, Box<Page>>,
    freed: &IdSet,
    (number, own): (u64, bool),
    foreign: &mut usize,
) -> Option<&'a mut Chunk> {
    let is_freed = || freed.covers(number..number + 1);
    let page = match pages.entry(number / PAGE) {
        Entry::Occupied(page) => page.into_mut(),
        Entry::Vacant(_) if is_freed() => return None,
        Entry::Vacant(page) => page.insert(Box::new([const { None }; PAGE as usize])),
    };
    let place = &mut page[(number % PAGE) as usize];
    if place.is_none() && is_freed() {
        return None;
    }
    Some(place.get_or_insert_with(|| {
        *foreign += usize::from(!own);
        let states = [ObjectState::default(); CHUNK as usize];
        Box::new(Chunk { states, own })
    }))
}

/// The states of all objects that a node has heard of, by chunk.
#[derive(Clone, Default)]
pub(crate) struct ObjectTable {
    pages: FxHashMap<u64, Box<Page>>,
    /// Chunks all of whose ids are freed, of objects or of arrays. No more is kept of these.
    freed: IdSet,
    /// What is written into an object of such a chunk.
    gone: ObjectState,
    /// Chunks of which states are kept and that this node has not allocated.
    foreign: usize,
}

impl ObjectTable {
    pub fn get(&self, oid: Oid) -> ObjectState {
        let page = self.pages.get(&(oid.chunk() / PAGE));
        let chunk = page.and_then(|page| page[(oid.chunk() % PAGE) as usize].as_ref());
        match chunk {
            Some(chunk) => chunk.states[oid.slot()],
            None if self.is_freed(oid.chunk()) => GONE,
            None => ObjectState::default(),
        }
    }

    /// The states of the objects with these ids.
    pub fn states(&self, ids: Range<u64>) -> impl Iterator<Item = (Oid, ObjectState)> {
        let chunks = ids.start / CHUNK..ids.end.div_ceil(CHUNK);
        chunks.flat_map(move |number| {
            let page = self.pages.get(&(number / PAGE));
            let chunk = page.and_then(|page| page[(number % PAGE) as usize].as_ref());
            let otherwise = match chunk.is_none() && self.is_freed(number) {
                true => GONE,
                false => ObjectState::default(),
            };
            let within = (number * CHUNK).max(ids.start)..((number + 1) * CHUNK).min(ids.end);
            within.map(Oid).map(move |oid| {
                let state = chunk.map_or(otherwise, |chunk| chunk.states[oid.slot()]);
                (oid, state)
            })
        })
    }

    /// An object's state. What is changed in one of a freed chunk is lost.
    pub fn get_mut(&mut self, oid: Oid) -> &mut ObjectState {
        let (number, foreign) = ((oid.chunk(), false), &mut self.foreign);
        match chunk(&mut self.pages, &self.freed, number, foreign) {
            Some(chunk) => &mut chunk.states[oid.slot()],
            None => {
                self.gone = GONE;
                &mut self.gone
            }
        }
    }

    /// Calls `f` with the objects behind this one, up to so many of which states are kept without a
    /// gap, until it returns `false`.
    pub fn after(&mut self, oid: Oid, most: u64, mut f: impl FnMut(Oid, &mut ObjectState) -> bool) {
        let (mut next, end) = (oid.0 + 1, oid.0.saturating_add(most));
        while next <= end {
            let number = next / CHUNK;
            let page = self.pages.get_mut(&(number / PAGE));
            let chunk = page.and_then(|page| page[(number % PAGE) as usize].as_mut());
            let Some(chunk) = chunk else {
                return;
            };
            let states = &mut chunk.states[(next % CHUNK) as usize..];
            for state in states.iter_mut().take((end + 1 - next) as usize) {
                if !f(Oid(next), state) {
                    return;
                }
                next += 1;
            }
        }
    }

    fn is_freed(&self, chunk: u64) -> bool {
        self.freed.covers(chunk..chunk + 1)
    }

    /// Frees these ids, of objects and of arrays. Calls `f`, which frees a state, for each object
    /// of a chunk of which states are kept, or of which a part alone is freed. Of a chunk that is
    /// all freed the number alone is kept. Returns the numbers of these chunks.
    pub fn free(
        &mut self,
        ranges: &[OidRange],
        mut f: impl FnMut(Oid, &mut ObjectState),
    ) -> Vec<Range<u64>> {
        let mut gone = Vec::new();
        for range in ranges {
            let (mut next, end) = (range.first.0, range.first.0 + u64::from(range.count));
            while next < end {
                let (part, is_gone) = self.free_part(next..end, &mut f);
                next = part.end;
                if is_gone {
                    let chunks = part.start / CHUNK..part.end.div_ceil(CHUNK);
                    self.freed.add(chunks.clone());
                    gone.push(chunks);
                }
            }
        }
        gone
    }

    /// Frees the first of these ids, those of one chunk, or of several of which no state is kept.
    /// Which, and whether all of these chunks are freed now.
    fn free_part(
        &mut self,
        ids: Range<u64>,
        f: &mut impl FnMut(Oid, &mut ObjectState),
    ) -> (Range<u64>, bool) {
        let (start, number) = (ids.start, ids.start / CHUNK);
        let end_of = |chunks: u64| ids.end.min(chunks.saturating_mul(CHUNK));
        let is_whole = |part: &Range<u64>| [part.start, part.end].map(|id| id % CHUNK) == [0, 0];
        let Some(page) = self.pages.get_mut(&(number / PAGE)) else {
            let of_page = end_of((number / PAGE + 1) * PAGE) / CHUNK * CHUNK;
            let part = start..of_page;
            if start < of_page && is_whole(&part) {
                return (part, true);
            }
            return self.free_in_chunk(start..end_of(number + 1), f);
        };
        let part = start..end_of(number + 1);
        if page[(number % PAGE) as usize].is_none() && is_whole(&part) {
            return (part, true);
        }
        self.free_in_chunk(part, f)
    }

    fn free_in_chunk(
        &mut self,
        part: Range<u64>,
        f: &mut impl FnMut(Oid, &mut ObjectState),
    ) -> (Range<u64>, bool) {
        let number = part.start / CHUNK;
        let foreign = &mut self.foreign;
        let Some(chunk) = chunk(&mut self.pages, &self.freed, (number, false), foreign) else {
            return (part, false);
        };
        for id in part.clone() {
            f(Oid(id), &mut chunk.states[(id % CHUNK) as usize]);
        }
        let is_gone = chunk.states.iter().all(|object| object.freed);
        *foreign -= usize::from(is_gone && !chunk.own);
        if is_gone && let Some(page) = self.pages.get_mut(&(number / PAGE)) {
            page[(number % PAGE) as usize] = None;
            if page.iter().all(Option::is_none) {
                self.pages.remove(&(number / PAGE));
            }
        }
        (part, is_gone)
    }

    /// Chunks of objects of which states are kept, and ranges of chunks that are known as freed.
    pub fn kept(&self) -> (usize, usize) {
        let pages = self.pages.values();
        let chunks = pages.map(|page| page.iter().flatten().count()).sum();
        (chunks, self.freed.ranges().len())
    }

    /// How much is kept of objects that others have allocated: chunks of states, and ranges of
    /// chunks that are freed.
    pub fn heard_of(&self) -> usize {
        self.foreign + self.freed.ranges().len()
    }

    /// The first of these objects whose state would make so many chunks of objects of others more
    /// than `most`.
    pub fn exceeds(
        &self,
        most: usize,
        ranges: impl Iterator<Item = OidRange> + Clone,
    ) -> Option<Oid> {
        let chunks = |range: OidRange| range.first.chunk()..range.last().chunk() + 1;
        let room = most.saturating_sub(self.foreign) as u64;
        let spanned = ranges.clone().map(chunks).map(|it| it.end - it.start);
        // As a rule there is room for all of them, known or not.
        if spanned.fold(0, u64::saturating_add) <= room {
            return None;
        }
        let is_new = |number: &u64| {
            let page = self.pages.get(&(number / PAGE));
            page.is_none_or(|page| page[(number % PAGE) as usize].is_none())
                && !self.is_freed(*number)
        };
        let mut new = FxHashSet::default();
        ranges.into_iter().find_map(|range| {
            let mut more = chunks(range).filter(is_new);
            let beyond = more.find(|number| new.insert(*number) && new.len() as u64 > room);
            beyond.map(|number| Oid(number * CHUNK).max(range.first))
        })
    }

    /// Calls `f` with every object of the ranges. Ranges of one chunk that follow on each other
    /// look it up once.
    pub fn for_each(&mut self, ranges: &[OidRange], f: impl FnMut(Oid, &mut ObjectState)) {
        self.each(ranges, false, f);
    }

    /// As [`for_each`](ObjectTable::for_each), of objects that this node has allocated.
    pub fn allocate(&mut self, range: OidRange, f: impl FnMut(Oid, &mut ObjectState)) {
        self.each(&[range], true, f);
    }

    fn each(&mut self, ranges: &[OidRange], own: bool, mut f: impl FnMut(Oid, &mut ObjectState)) {
        let mut ranges = ranges.iter().copied();
        let mut range = ranges.next();
        while let Some(OidRange { first, .. }) = range {
            let number = first.chunk();
            let mut gone;
            let foreign = &mut self.foreign;
            let states = match chunk(&mut self.pages, &self.freed, (number, own), foreign) {
                Some(chunk) => &mut chunk.states,
                None => {
                    gone = [GONE; CHUNK as usize];
                    &mut gone
                }
            };
            while let Some(OidRange { first, count }) = range.filter(|r| r.first.chunk() == number)
            {
                let here = u64::from(count).min((number + 1) * CHUNK - first.0);
                let states = &mut states[first.slot()..][..here as usize];
                for (oid, state) in (first.0..).map(Oid).zip(states) {
                    f(oid, state);
                }
                let rest = count - here as u32;
                range = match rest {
                    0 => ranges.next(),
                    _ => Some(OidRange {
                        first: first.plus(here),
                        count: rest,
                    }),
                };
            }
        }
    }

    /// The objects that were heard of, in order of their ids.
    fn known(&self) -> impl Iterator<Item = (Oid, ObjectState)> {
        let mut pages: Vec<_> = self.pages.iter().collect();
        pages.sort_unstable_by_key(|(number, _)| **number);
        let chunks = pages.into_iter().flat_map(|(number, page)| {
            (number * PAGE..)
                .zip(page.iter())
                .filter_map(|(n, chunk)| Some((n, chunk.as_ref()?)))
        });
        let objects = chunks.flat_map(|(number, chunk)| {
            (number * CHUNK..)
                .map(Oid)
                .zip(chunk.states.iter().copied())
        });
        objects.filter(|(_, state)| *state != ObjectState::default())
    }
}

impl PartialEq for ObjectTable {
    fn eq(&self, other: &Self) -> bool {
        self.freed == other.freed && self.known().eq(other.known())
    }
}

impl Eq for ObjectTable {}

impl Hash for ObjectTable {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.freed.hash(hasher);
        self.known().for_each(|object| object.hash(hasher));
    }
}

impl fmt::Debug for ObjectTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.known()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_version_keeps_value_and_order() {
        let versions =
            [(0, 0), (0, 1023), (1, 0), (1, 1), (7, 3), (1 << 40, 0)].map(|(lamport, node)| {
                Version {
                    lamport,
                    node: NodeId(node),
                }
            });
        for pair in versions.windows(2) {
            assert!(Packed::from(pair[0]) < Packed::from(pair[1]));
        }
        assert_eq!(versions.map(|v| Version::from(Packed::from(v))), versions);
        assert_eq!(size_of::<ObjectState>(), 24);
    }

    #[test]
    fn an_older_notice_leaves_a_copy_valid_and_a_newer_one_does_not() {
        let version = |lamport| Version {
            lamport,
            node: NodeId(1),
        };
        let mut object = ObjectState::default();
        object.hold(version(5));
        assert!(!object.hear(version(4)) && object.is_valid());
        assert!(!object.hear(version(5)) && object.is_valid());
        assert!(object.hear(version(6)) && !object.is_valid());
        assert!(!object.hear(version(7)), "it was invalid already");
    }

    #[test]
    fn chunks_of_others_are_counted_and_those_that_exceed_a_limit_are_found() {
        let mut table = ObjectTable::default();
        let of_chunks = |first, count: u64| OidRange {
            first: Oid(first * CHUNK),
            count: (count * CHUNK) as u32,
        };
        table.allocate(of_chunks(0, 5), |_, _| ());
        assert_eq!(table.heard_of(), 0, "its own");
        table.for_each(&[of_chunks(4, 3)], |_, _| ());
        assert_eq!(table.heard_of(), 2);
        let exceeds = |table: &ObjectTable, ranges: &[OidRange]| {
            table.exceeds(4, ranges.iter().copied()).map(|oid| oid.0)
        };
        // What is known, or named twice, needs no room.
        assert_eq!(exceeds(&table, &[of_chunks(0, 9)]), None);
        assert_eq!(
            exceeds(&table, &[of_chunks(8, 2), of_chunks(7, 3)]),
            Some(7 * CHUNK)
        );
        let spread = [of_chunks(8, 2), of_chunks(9, 1), of_chunks(3, 4)];
        assert_eq!(exceeds(&table, &spread), None);
        assert_eq!(
            exceeds(&table, &[of_chunks(1 << 50, 1 << 20)]),
            Some(CHUNK * ((1 << 50) + 2))
        );
        let inside = OidRange {
            first: Oid(20 * CHUNK + 7),
            count: 1,
        };
        assert_eq!(
            exceeds(&table, &[of_chunks(8, 2), inside]),
            Some(inside.first.0)
        );
        // Freed ones are ranges of numbers, and need none either.
        table.free(&[of_chunks(5, 2), of_chunks(30, 9)], |_, object| {
            object.free()
        });
        assert_eq!((table.foreign, table.heard_of()), (0, 2));
        assert_eq!(exceeds(&table, &[of_chunks(30, 9), of_chunks(7, 4)]), None);
    }

    #[test]
    fn ranges_visit_every_object_once_over_chunk_boundaries() {
        let mut table = ObjectTable::default();
        let ranges = [
            (7, 3),
            (CHUNK - 3, CHUNK as u32 + 7),
            (2 * CHUNK + 8, 2),
            (2 * CHUNK + 20, 1),
        ]
        .map(|(first, count)| OidRange {
            first: Oid(first),
            count,
        });
        let mut seen = Vec::new();
        table.for_each(&ranges, |oid, _| seen.push(oid));
        assert!(ranges.iter().flat_map(|range| range.iter()).eq(seen));
    }
}
