//! What each allocated id of a cluster is bound to: a type, and for rows a length. Allocation
//! alone binds; every later sight of an id must agree.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use dhole_model::{CHUNK, CallSite, IdSet, NodeId, Oid, OidRange};

use crate::global::Addresses;
use crate::share::type_map::Named;
use crate::{ArrayBinding, Binding, TypeRef};

/// Objects allocated together: consecutive ids in whole chunks, all bound alike.
pub(crate) struct Run {
    pub(crate) chunks: u64,
    /// Ids that may name an object; those of the last chunk's rest never do.
    pub(crate) ids: u64,
    pub(crate) binding: Binding,
    /// Where the program allocated them, or the first of objects allocated one by one.
    pub(crate) site: CallSite,
    pub(crate) life: Life,
    /// Where they are in the global space.
    pub(crate) addresses: Addresses,
}

impl Run {
    /// The ids of its chunks.
    fn all(&self, first_chunk: u64) -> Range<u64> {
        first_chunk * CHUNK..(first_chunk + self.chunks) * CHUNK
    }

    /// Whether none of its objects is left.
    fn is_all_freed(&self, first_chunk: u64) -> bool {
        let start = first_chunk * CHUNK;
        self.life.freed.covers(start..start + self.ids)
    }
}

/// What keeps a run in the directory.
#[derive(Default)]
pub(crate) struct Life {
    /// The ids of objects that were freed, and those beside them that never name one.
    freed: IdSet,
    /// Records of chunks, on all nodes together. Only a node with a record sets handles.
    records: AtomicU64,
}

impl Life {
    /// Of a run some of whose objects are freed already.
    pub(crate) fn after_freeing(freed: IdSet) -> Life {
        Life {
            freed,
            ..Life::default()
        }
    }

    /// Of a run of which there will be so many records at once.
    pub(crate) fn new(records: u64) -> Life {
        Life {
            records: records.into(),
            ..Life::default()
        }
    }
}

/// An array: consecutive ids, those of its blocks first.
pub(crate) struct ArrayRun {
    pub(crate) ids: u32,
    pub(crate) binding: ArrayBinding,
    /// Where the program allocated it.
    pub(crate) site: CallSite,
    /// It was freed, on some node.
    pub(crate) freed: bool,
    /// Nodes that have a record of it. Only these set handles.
    pub(crate) records: u32,
    /// Where it is in the global space, if that is decided for all nodes.
    pub(crate) address: Option<u64>,
}

/// The most freed objects and arrays of which is known who freed them where.
const MOST_FREED: usize = 64;

/// The runs of a cluster, by their first chunk, and its arrays, by their first id. A block is no
/// object.
#[derive(Default)]
pub(crate) struct Directory {
    runs: BTreeMap<u64, Run>,
    arrays: BTreeMap<u64, ArrayRun>,
    /// The ids of runs and arrays that are forgotten: null in every table for ever, for no node can
    /// have a record of them.
    forgotten: IdSet,
    /// Who freed some of them and where, the last ones last.
    freed_at: VecDeque<(OidRange, NodeId, CallSite)>,
}

impl Directory {
    pub(crate) fn add(&mut self, first_chunk: u64, run: Run) {
        debug_assert!(
            self.at(Oid(first_chunk * CHUNK)).is_none(),
            "ids are bound once"
        );
        self.runs.insert(first_chunk, run);
    }

    /// The run of `oid`, and how many of its ids there are from it on.
    fn run_of(&self, oid: Oid) -> Option<(&Run, u64)> {
        let (first, run) = self.run_around(oid)?;
        let place = oid.0 - first * CHUNK;
        (place < run.ids).then(|| (run, run.ids - place))
    }

    /// The binding of `oid` and how many ids from it on are bound with it.
    fn at(&self, oid: Oid) -> Option<(&Binding, u64)> {
        self.run_of(oid).map(|(run, rest)| (&run.binding, rest))
    }

    /// The run whose chunks `oid` lies in, and its first chunk.
    fn run_around(&self, oid: Oid) -> Option<(u64, &Run)> {
        let (first, run) = self.runs.range(..=oid.chunk()).next_back()?;
        (oid.chunk() < first + run.chunks).then_some((*first, run))
    }

    /// The ids of the run of `oid` that may name an object.
    pub(crate) fn ids_around(&self, oid: Oid) -> Option<Range<u64>> {
        let (first, run) = self.run_around(oid)?;
        Some(first * CHUNK..first * CHUNK + run.ids)
    }

    /// The run of `oid`, if an object of it is left.
    fn living(&self, oid: Oid) -> Option<&Run> {
        let (first, run) = self.run_around(oid)?;
        (!run.is_all_freed(first)).then_some(run)
    }

    /// Where the program allocated `oid`, an object or the first block of an array.
    pub(crate) fn site(&self, oid: Oid) -> Option<CallSite> {
        match self.run_of(oid) {
            Some((run, _)) => Some(run.site),
            None => self.array_run(oid).map(|run| run.site),
        }
    }

    /// Where an object lies in the global space, if that is decided for all nodes.
    pub(crate) fn address(&self, oid: Oid) -> Option<u64> {
        let (first, run) = self.runs.range(..=oid.chunk()).next_back()?;
        let place = oid.0 - first * CHUNK;
        let exists = place < run.ids;
        exists.then(|| run.addresses.at(place, run.binding.bytes()))?
    }

    /// An object that was allocated alone lies at this address of the global space.
    pub(crate) fn put_at(&mut self, oid: Oid, address: u64) {
        if let Some(run) = self.runs.get_mut(&oid.chunk()) {
            run.addresses.put(oid.slot(), address);
        }
    }

    /// Where an array lies in the global space, if that is decided for all nodes.
    pub(crate) fn address_of_array(&self, oid: Oid) -> Option<u64> {
        self.array_run(oid)?.address
    }

    /// What is freed with these objects: the rest of the last chunk of their run too, where no id
    /// ever names an object, if they reach up to it.
    pub(crate) fn with_rest(&self, range: OidRange) -> OidRange {
        let last = range.first.plus(u64::from(range.count) - 1);
        let rest = match self.run_of(last) {
            Some((_, 1)) => CHUNK - 1 - last.slot() as u64,
            _ => 0,
        };
        let count = range.count.saturating_add(rest as u32);
        OidRange { count, ..range }
    }

    /// Objects were freed; ids that name none are none the worse for it.
    pub(crate) fn free(&mut self, range: OidRange) {
        let start = range.first.0;
        let mut end = start.saturating_add(u64::from(range.count));
        while start < end {
            let before_end = self.runs.range_mut(..end.div_ceil(CHUNK)).next_back();
            let Some((&first, run)) = before_end else {
                return;
            };
            let ids = run.all(first);
            run.life.freed.add(start.max(ids.start)..end.min(ids.end));
            self.forget(first);
            end = ids.start;
        }
    }

    /// What the chunk of `oid` is bound to and which of its objects were freed, as bits, for a
    /// node that has a record of the chunk from now on.
    pub(crate) fn hold(&self, oid: Oid) -> Option<(Binding, u64)> {
        let binding = self.binding(oid)?;
        let life = &self.run_of(oid)?.0.life;
        life.records.fetch_add(1, Ordering::Relaxed);
        let first = oid.chunk() * CHUNK;
        let is_freed = |slot: &u64| life.freed.covers(first + slot..first + slot + 1);
        let freed = (0..CHUNK).filter(is_freed);
        Some((binding, freed.fold(0, |bits, slot| bits | 1 << slot)))
    }

    /// A node has no record of a chunk any longer.
    pub(crate) fn let_go(&mut self, chunk: u64) {
        if let Some((first, run)) = self.run_around(Oid(chunk * CHUNK)) {
            run.life.records.fetch_sub(1, Ordering::Relaxed);
            self.forget(first);
        }
    }

    /// Forgets a run of which nothing is left, on any node. A node that has not heard of a freeing
    /// may have set handles: while it has, what is taken for the objects must be what they are.
    fn forget(&mut self, first_chunk: u64) {
        let is_over = |run: &&Run| {
            run.is_all_freed(first_chunk) && run.life.records.load(Ordering::Relaxed) == 0
        };
        let over = self.runs.get(&first_chunk).filter(is_over);
        if let Some(ids) = over.map(|run| run.all(first_chunk)) {
            self.forgotten.add(ids);
            self.runs.remove(&first_chunk);
        }
    }

    /// Whether `oid` names a freed object.
    pub(crate) fn is_freed(&self, oid: Oid) -> bool {
        if let Some(run) = self.array_around(oid) {
            return run.freed;
        }
        let freed = match self.run_around(oid) {
            Some((_, run)) => &run.life.freed,
            None => &self.forgotten,
        };
        let end = oid.0.checked_add(1);
        end.is_some_and(|end| freed.covers(oid.0..end))
    }

    /// Whether any of these ids goes with a run or an array that is known.
    pub(crate) fn knows_any(&self, ids: Range<u64>) -> bool {
        let before = self.arrays.range(..ids.end).next_back();
        let of_array = before.is_some_and(|(first, run)| first + u64::from(run.ids) > ids.start);
        let before = self.runs.range(..ids.end.div_ceil(CHUNK)).next_back();
        of_array || before.is_some_and(|(first, run)| run.all(*first).end > ids.start)
    }

    /// These ids without those that go with a run or an array that is known.
    pub(crate) fn unknown_of(&self, ids: Range<u64>) -> IdSet {
        let mut unknown = IdSet::default();
        unknown.add(ids.clone());
        let chunks = ids.start / CHUNK..ids.end.div_ceil(CHUNK);
        let first = self.runs.range(..=chunks.start).next_back();
        for (first, run) in first.into_iter().chain(self.runs.range(chunks)) {
            unknown.remove(run.all(*first));
        }
        let first = self.arrays.range(..=ids.start).next_back();
        for (first, run) in first.into_iter().chain(self.arrays.range(ids)) {
            unknown.remove(*first..first + u64::from(run.ids));
        }
        unknown
    }

    /// These ids, of no run or array that is known, are null here for ever.
    pub(crate) fn bury(&mut self, ids: Range<u64>) {
        debug_assert!(!self.knows_any(ids.clone()));
        self.forgotten.add(ids);
    }

    /// How many ranges of ids are forgotten.
    pub(crate) fn buried(&self) -> usize {
        self.forgotten.ranges().len()
    }

    /// Which of these ids are forgotten.
    pub(crate) fn forgotten_of(&self, ids: Range<u64>) -> IdSet {
        self.forgotten.within(ids)
    }

    /// How many runs and arrays are known.
    pub(crate) fn runs_kept(&self) -> usize {
        self.runs.len() + self.arrays.len()
    }

    /// Whether a run or an array begins here.
    pub(crate) fn begins_at(&self, first: Oid) -> bool {
        self.runs.contains_key(&first.chunk()) || self.arrays.contains_key(&first.0)
    }

    /// The run that begins with this chunk.
    pub(crate) fn run_at(&self, first_chunk: u64) -> Option<&Run> {
        self.runs.get(&first_chunk)
    }

    /// The array that begins with this id, freed or not.
    pub(crate) fn array_at(&self, first: Oid) -> Option<&ArrayRun> {
        self.array_run(first)
    }

    /// Whether all of these ids are of runs that are forgotten.
    pub(crate) fn are_forgotten(&self, first: Oid, count: u64) -> bool {
        let end = first.0.checked_add(count);
        end.is_some_and(|end| self.forgotten.covers(first.0..end))
    }

    /// What `oid` is bound to, if an object of its run is left.
    pub(crate) fn binding(&self, oid: Oid) -> Option<Binding> {
        self.living(oid)?;
        self.at(oid).map(|(binding, _)| *binding)
    }

    /// Adds an array.
    pub(crate) fn add_array(&mut self, first: Oid, run: ArrayRun) {
        debug_assert!(!self.is_allocated(first));
        self.arrays.insert(first.0, run);
    }

    /// The ids of an array that was not freed.
    pub(crate) fn ids_of_array(&self, first: Oid) -> Option<OidRange> {
        let run = self.array_run(first).filter(|run| !run.freed)?;
        let count = run.ids;
        Some(OidRange { first, count })
    }

    /// What an array is, for a node that has a record of it from now on.
    pub(crate) fn hold_array(&mut self, first: Oid) -> Option<ArrayBinding> {
        let run = self.arrays.get_mut(&first.0).filter(|run| !run.freed)?;
        run.records += 1;
        Some(run.binding)
    }

    /// A node has no record of an array any longer.
    pub(crate) fn let_array_go(&mut self, first: Oid) {
        if let Some(run) = self.arrays.get_mut(&first.0) {
            run.records -= 1;
        }
        self.forget_array(first);
    }

    /// An array was freed.
    pub(crate) fn free_array(&mut self, first: Oid) {
        if let Some(run) = self.arrays.get_mut(&first.0) {
            run.freed = true;
        }
        self.forget_array(first);
    }

    /// The arrays whose first ids are among these were freed.
    pub(crate) fn free_arrays(&mut self, ids: OidRange) {
        let mut next = ids.first.0;
        let last = ids.last().0;
        while let Some((&array, _)) = self.arrays.range(next..=last).next() {
            self.free_array(Oid(array));
            next = array + 1;
            if next > last {
                return;
            }
        }
    }

    /// Forgets an array that was freed and is on no node any more (as [`Directory::forget`]).
    fn forget_array(&mut self, first: Oid) {
        let over = |run: &&ArrayRun| run.freed && run.records == 0;
        if let Some(run) = self.array_run(first).filter(over) {
            self.forgotten.add(first.0..first.0 + u64::from(run.ids));
            self.arrays.remove(&first.0);
        }
    }

    /// Remembers for a while who freed something, and where in the program.
    pub(crate) fn note_freed(&mut self, ids: OidRange, by: NodeId, at: CallSite) {
        self.freed_at.push_back((ids, by, at));
        if self.freed_at.len() > MOST_FREED {
            self.freed_at.pop_front();
        }
    }

    /// Who freed an object or an array, and where, if that is still known.
    pub(crate) fn who_freed(&self, oid: Oid) -> Option<(NodeId, CallSite)> {
        let names = |ids: &OidRange| {
            let place = oid.0.checked_sub(ids.first.0);
            place.is_some_and(|place| place < u64::from(ids.count))
        };
        let mut known = self.freed_at.iter().rev();
        known
            .find(|(ids, ..)| names(ids))
            .map(|(_, by, at)| (*by, *at))
    }

    /// The array whose first block is `oid`.
    pub(crate) fn array(&self, oid: Oid) -> Option<ArrayBinding> {
        let run = self.array_run(oid).filter(|run| !run.freed);
        run.map(|run| run.binding)
    }

    fn array_run(&self, oid: Oid) -> Option<&ArrayRun> {
        self.arrays.get(&oid.0)
    }

    /// The array that `oid` goes with.
    fn array_around(&self, oid: Oid) -> Option<&ArrayRun> {
        let (first, run) = self.arrays.range(..=oid.0).next_back()?;
        (oid.0 < first + u64::from(run.ids)).then_some(run)
    }

    /// What the chunk of `oid` is bound to, though `oid` itself may never name an object.
    pub(crate) fn is_allocated(&self, oid: Oid) -> bool {
        self.living(oid).is_some() || self.array_around(oid).is_some_and(|run| !run.freed)
    }

    /// Whether all objects of a reference were allocated together, as what it takes them for.
    /// `Ok(None)` when the first of them is not in this directory.
    pub(crate) fn check(&self, named: &Named, seen: TypeRef) -> Result<Option<()>, String> {
        if named.array {
            let bound = self.array_run(named.first).map(|run| run.binding);
            return match bound {
                Some(bound) if bound.info.type_id == seen.id() && bound.len == named.len => {
                    Ok(Some(()))
                }
                Some(bound) => Err(bound.to_string()),
                None => match self.at(named.first) {
                    Some((bound, _)) => Err(bound.to_string()),
                    None => Ok(None),
                },
            };
        }
        let Some((bound, rest)) = self.at(named.first) else {
            return Ok(None);
        };
        let alike = bound.info.type_id == seen.id()
            && bound.len == named.len
            && bound.row == named.row
            && named.count <= rest;
        if alike {
            Ok(Some(()))
        } else {
            Err(bound.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use dhole_model::Coherence;

    use super::*;
    use crate::TypeInfo;

    fn of<T: crate::Share>() -> Binding {
        Binding {
            info: TypeInfo::of::<T>(),
            len: 1,
            row: false,
            coherence: Coherence::Lazy,
        }
    }

    #[test]
    fn ids_of_a_run_are_bound_and_the_rest_of_its_last_chunk_is_not() {
        let mut d = Directory::default();
        d.add(
            2,
            Run {
                chunks: 2,
                ids: 70,
                binding: of::<u8>(),
                site: CallSite::caller(),
                life: Life::default(),
                addresses: Addresses::Anywhere,
            },
        );
        d.add(
            4,
            Run {
                chunks: 1,
                ids: 64,
                binding: of::<u16>(),
                site: CallSite::caller(),
                life: Life::default(),
                addresses: Addresses::Anywhere,
            },
        );
        assert_eq!(d.binding(Oid(127)), None);
        assert_eq!(d.binding(Oid(128)), Some(of::<u8>()));
        assert_eq!(d.binding(Oid(197)), Some(of::<u8>()));
        assert_eq!(d.binding(Oid(198)), None);
        assert!(d.is_allocated(Oid(198)));
        assert_eq!(d.binding(Oid(256)), Some(of::<u16>()));
        assert!(!d.is_allocated(Oid(320)));
    }

    #[test]
    fn a_run_is_forgotten_once_all_of_it_is_freed_and_its_ids_stay_known_as_freed() {
        let mut d = Directory::default();
        for first in [2, 4] {
            let run = Run {
                chunks: 2,
                ids: 70,
                binding: of::<u8>(),
                site: CallSite::caller(),
                life: Life::default(),
                addresses: Addresses::Anywhere,
            };
            d.add(first, run);
        }
        let range = |first, count| OidRange {
            first: Oid(first),
            count,
        };
        assert_eq!(d.with_rest(range(128, 69)), range(128, 69));
        assert_eq!(d.with_rest(range(130, 68)), range(130, 126));
        d.free(range(130, 126));
        assert!(d.binding(Oid(128)).is_some() && d.is_freed(Oid(130)) && d.is_freed(Oid(255)));
        assert!(!d.is_freed(Oid(129)) && !d.are_forgotten(Oid(130), 1));
        d.free(range(128, 2));
        assert_eq!(d.binding(Oid(128)), None);
        assert_eq!((d.runs.len(), d.forgotten.ranges().len()), (1, 1));
        assert!(d.is_freed(Oid(128)) && d.are_forgotten(Oid(128), 128));
        assert!(!d.are_forgotten(Oid(255), 2) && !d.are_forgotten(Oid(u64::MAX), 2));
    }

    #[test]
    fn a_run_is_kept_while_a_node_has_a_record_of_it_but_is_allocated_no_more() {
        let mut d = Directory::default();
        let run = Run {
            chunks: 2,
            ids: 70,
            binding: of::<u8>(),
            site: CallSite::caller(),
            life: Life::new(1),
            addresses: Addresses::Anywhere,
        };
        d.add(2, run);
        let all = OidRange {
            first: Oid(0),
            count: 1000,
        };
        d.free(OidRange::one(Oid(130)));
        assert!(d.hold(Oid(192)).is_some_and(|(_, freed)| freed == 0));
        assert!(d.hold(Oid(128)).is_some_and(|(_, freed)| freed == 1 << 2));
        d.free(all);
        assert!(d.hold(Oid(128)).is_none() && !d.is_allocated(Oid(128)));
        assert!(d.is_freed(Oid(128)) && !d.is_freed(Oid(127)) && !d.is_freed(Oid(256)));
        for chunk in [2, 3, 2] {
            assert!(d.run_of(Oid(128)).is_some() && !d.are_forgotten(Oid(128), 1));
            d.let_go(chunk);
        }
        assert!(d.run_of(Oid(128)).is_none() && d.are_forgotten(Oid(128), 128));
    }

    #[test]
    fn a_range_must_lie_in_one_run() {
        let mut d = Directory::default();
        d.add(
            2,
            Run {
                chunks: 2,
                ids: 70,
                binding: of::<u8>(),
                site: CallSite::caller(),
                life: Life::default(),
                addresses: Addresses::Anywhere,
            },
        );
        let named = |first, count| Named {
            first: Oid(first),
            count,
            len: 1,
            row: false,
            array: false,
        };
        let u8s = TypeRef::of::<u8>();
        assert_eq!(d.check(&named(128, 70), u8s), Ok(Some(())));
        assert!(d.check(&named(129, 70), u8s).is_err());
        assert!(d.check(&named(129, u64::MAX), u8s).is_err());
        assert!(d.check(&named(129, 1), TypeRef::of::<i8>()).is_err());
        assert_eq!(d.check(&named(64, 1), u8s), Ok(None));
    }
}
