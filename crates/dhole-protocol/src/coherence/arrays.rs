//! Arrays: what holds for objects holds for each element alone.
//!
//! An array costs what its elements differ in, for neighbours that are alike share a *segment*.
//! What the worker asks to write is the write notice; there is no twin and no diff. So nodes may
//! write different elements of one page at once; where two write the same, the greater version
//! wins everywhere, element by element.

mod free;
mod kind;
mod one_sided;
mod read_ahead;

use dhole_model::{
    Coherence, Elements, IdSet, NodeId, Oid, OidRange, Segments, SortedMap, VectorTime, Version,
};

use crate::RegionCommand;
use crate::array_event::UnreadElements;
use crate::coherence::object_table::{Ended, ObjectState};
use crate::coherence::pending_fetches::Fetching;
use crate::coherence::races::{RaceFinder, SiteId};
use crate::coherence::region::Table;
use crate::coherence::remembered::Remembered;
use crate::command::{Command, Commands};

pub use one_sided::HeldElements;

/// One node's part of the protocols for arrays.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Arrays {
    pub(crate) me: NodeId,
    pub(crate) table: ArrayTable,
    /// Written in the current interval, and where.
    pub(crate) dirty: Vec<(Elements, SiteId)>,
    /// Freed in the current interval, and where.
    pub(crate) freeing: Vec<(OidRange, SiteId)>,
    pub(crate) fetching: Fetching<Elements>,
    pub(crate) remembered: Remembered<Elements>,
}

/// What a node's protocol knows of all arrays.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct ArrayTable {
    arrays: SortedMap<Oid, ArrayState>,
    /// Segments of elements, in all arrays.
    segments: usize,
    /// The ids of blocks of arrays that were freed, and of chunks of objects that were.
    pub freed: IdSet,
}

/// What a node's protocol knows of one array.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct ArrayState {
    /// How it is kept consistent, once this node has met it.
    pub coherence: Option<Coherence>,
    /// It had a home once, where it may have been written without versions of its own.
    pub had_home: bool,
    pub elements: Segments<ObjectState>,
}

impl ArrayTable {
    /// How an array is kept consistent, which this node may meet for the first time.
    pub fn meet(&mut self, array: Oid, allocated: Coherence) -> Coherence {
        let state = self.arrays.get_or_default(array);
        *state.coherence.get_or_insert(allocated)
    }

    /// An array is kept consistent so from now on.
    pub fn switch(&mut self, array: Oid, [allocated, to]: [Coherence; 2]) {
        let state = self.arrays.get_or_default(array);
        let before = state.coherence.replace(to).unwrap_or(allocated);
        state.had_home |= before.properties().has_home;
    }

    pub fn coherence(&self, array: Oid) -> Option<Coherence> {
        self.arrays.get(&array).and_then(|state| state.coherence)
    }

    fn states(&self, elements: Elements) -> impl Iterator<Item = (Elements, ObjectState)> {
        let array = self.arrays.get(&elements.array);
        let states = array.map(|array| array.elements.of(elements.range()));
        let nothing = states.is_none().then(|| (elements, ObjectState::default()));
        let part = move |(range, state)| (Elements::new(elements.array, range), state);
        states.into_iter().flatten().map(part).chain(nothing)
    }

    fn has_freed(&self, array: Oid) -> bool {
        self.freed.covers(array.0..array.0 + 1)
    }

    /// The elements that are brought here where some are missed: with those around that were
    /// written together with them. Whether they may be zeros that nobody has written.
    pub fn missed(&mut self, miss: &UnreadElements) -> (Elements, bool) {
        let Elements {
            array,
            first,
            count,
        } = miss.elements;
        let coherence = self.meet(array, miss.coherence);
        let state = &self.arrays[&array];
        let around = |place| state.elements.around(place, miss.within.range());
        let range = around(first).start..around(first + count.max(1) - 1).end;
        let may_be_zero = !state.had_home && !coherence.properties().has_home;
        (Elements::new(array, range), may_be_zero)
    }

    /// Makes valid elements writable. Calls `written` with the parts that were not written yet in
    /// this interval.
    pub fn write(
        &mut self,
        elements: Elements,
        out: &mut Commands,
        mut written: impl FnMut(Elements, &ObjectState),
    ) {
        self.update(elements, |part, state| {
            debug_assert!(state.is_valid(), "{part}: only valid elements are written");
            if !state.dirty && !state.exclusive {
                state.dirty = true;
                written(part, state);
                push_writable(part, out);
            }
        });
    }
}

impl Table<Elements> for ArrayTable {
    fn update(&mut self, elements: Elements, mut f: impl FnMut(Elements, &mut ObjectState)) {
        let array = elements.array;
        let segments = &mut self.arrays.get_or_default(array).elements;
        let before = segments.len();
        segments.update(elements.range(), |range, state| {
            f(Elements::new(array, range), state);
        });
        self.segments = self.segments + segments.len() - before;
    }

    fn each(&self, elements: Elements, mut f: impl FnMut(Elements, ObjectState)) {
        self.states(elements)
            .for_each(|(part, state)| f(part, state));
    }

    fn is_freed(&self, elements: Elements) -> bool {
        self.has_freed(elements.array)
    }

    fn whole(&self, elements: Elements) -> ObjectState {
        let parts = self.states(elements).map(|(_, state)| state);
        let mut whole = parts.reduce(ObjectState::and).unwrap_or_default();
        whole.coherence = self.coherence(elements.array);
        whole.freed = self.has_freed(elements.array);
        whole
    }

    fn update_whole(
        &mut self,
        elements: Elements,
        f: impl FnMut(Elements, &mut ObjectState),
    ) -> ObjectState {
        let before = self.whole(elements);
        self.update(elements, f);
        before
    }
}

impl Arrays {
    pub fn new(me: NodeId) -> Arrays {
        Arrays {
            me,
            table: ArrayTable::default(),
            dirty: Vec::new(),
            freeing: Vec::new(),
            fetching: Fetching::default(),
            remembered: Remembered::default(),
        }
    }

    /// The worker has allocated an array here, and stored its elements.
    pub fn allocated(&mut self, elements: Elements, coherence: Coherence) {
        let version = initial(self.me);
        self.table.meet(elements.array, coherence);
        self.table.update(elements, |_, state| state.hold(version));
    }

    /// All of these elements are written next, whatever they were before. Returns those of which
    /// another node has the last version, and which are not valid here.
    pub fn overwrite(&mut self, elements: Elements, creator: NodeId) -> Vec<Elements> {
        let (me, mut unread) = (self.me, Vec::new());
        self.table.update(elements, |part, state| {
            if !state.is_valid() {
                let version = state.known(creator);
                state.hold(version);
                unread.extend((version.node != me).then_some(part));
            }
        });
        unread
    }

    /// The worker begins to write elements that are at home here: nobody flushes them, so races
    /// are looked for at once. `time` is what this node has seen.
    pub(crate) fn writes_at_home(
        &mut self,
        elements: Elements,
        site: SiteId,
        (races, time): (&mut RaceFinder, &VectorTime),
        out: &mut Commands,
    ) {
        self.remembered.home.tells = true;
        let open = time.of(self.me) + 1;
        races.elements_changed_at_home(elements, (self.me, open), site, (time, open), out);
    }

    /// Whether the current interval wrote elements, or freed arrays.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || !self.freeing.is_empty()
    }

    /// Ends the current interval, which has this version; what it wrote.
    pub fn end_interval(
        &mut self,
        version: Version,
        races: &mut RaceFinder,
        out: &mut Commands,
    ) -> Vec<Elements> {
        let (me, mut written) = (self.me, Vec::new());
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        races.wrote_elements(version.lamport, &dirty);
        let may_keep = races.allows_exclusive().then_some(0);
        for (elements, _) in dirty.drain(..) {
            Elements::push(&mut written, elements);
            self.table.update(elements, |part, state| {
                let may_keep = may_keep.filter(|_| !state.stays_clean());
                if state.end_interval(me, version, may_keep) == Ended::Shared {
                    out.push(Command::Array(RegionCommand::MakeClean(part)));
                }
            });
        }
        self.dirty = dirty;
        written
    }

    /// Another node's interval of this version has written these elements.
    pub fn notice(&mut self, elements: Elements, version: Version, out: &mut Commands) {
        if self.table.has_freed(elements.array) {
            return;
        }
        self.remembered.copysets.forget(elements);
        self.remembered.inbox.outdate(elements, version, out);
        self.table.update(elements, |part, state| {
            if state.hear(version) {
                state.exclusive = false;
                out.push(Command::Array(RegionCommand::Invalidate(part)));
            }
        });
    }
}

pub(crate) fn initial(creator: NodeId) -> Version {
    Version {
        lamport: 0,
        node: creator,
    }
}

/// What follows on what the command before made writable is one write.
fn push_writable(elements: Elements, out: &mut Commands) {
    match out.last_mut() {
        Some(Command::Array(RegionCommand::MakeWritable { region: last, .. }))
            if last.array == elements.array && last.range().end == elements.first =>
        {
            last.count += elements.count;
        }
        _ => out.push(Command::Array(RegionCommand::MakeWritable {
            region: elements,
            pre_image: false,
        })),
    }
}
