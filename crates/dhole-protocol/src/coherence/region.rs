//! Regions: what is kept consistent as one, of either kind. An object is a region, and so are
//! elements of an array.
//!
//! What a protocol does with both is written once, over [`Region`]. It keeps a state of each
//! object, and one of each run of elements that are alike ([`Runs`]): objects differ from each
//! other as a rule, and elements seldom do.

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::ops::{DerefMut, RangeInclusive};

use dhole_model::{Elements, NodeId, Oid, OidRange, Segments, SortedMap};
use smallvec::SmallVec;

use crate::coherence::object_table::{ObjectState, ObjectTable};

/// A region.
pub(crate) trait Region: Copy + Ord + Hash + Debug + Display + 'static {
    /// A state of each part of what one id names.
    type Runs<S: State>: Runs<Self, S>;

    /// The id of the object or of the array.
    fn id(self) -> Oid;

    /// Everything that has this id.
    fn all_of(id: Oid) -> Self;

    /// How many objects or elements it consists of.
    fn units(self) -> u64;

    /// Whether the two have a part in common.
    fn meets(self, other: Self) -> bool;

    /// The two as one region, if the other follows on this one.
    fn join(self, next: Self) -> Option<Self>;
}

/// What is known of a part of a region.
pub(crate) trait State: Copy + Eq + Hash + Debug + Default {}

impl<S: Copy + Eq + Hash + Debug + Default> State for S {}

/// A state of each part of what one id names. All begin with the default.
pub(crate) trait Runs<R, S>: Clone + Eq + Hash + Debug + Default {
    /// Whether all parts have the default.
    fn is_empty(&self) -> bool;

    /// Calls `f` with the parts of a region; `f` may change their states.
    fn update(&mut self, region: R, f: impl FnMut(R, &mut S));

    /// The parts of a region.
    fn of(&self, region: R) -> impl Iterator<Item = (R, S)>;
}

/// The state of one object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct One<S>(S);

impl Region for Oid {
    type Runs<S: State> = One<S>;

    fn id(self) -> Oid {
        self
    }

    fn all_of(id: Oid) -> Oid {
        id
    }

    fn units(self) -> u64 {
        1
    }

    fn meets(self, other: Oid) -> bool {
        self == other
    }

    fn join(self, _: Oid) -> Option<Oid> {
        None
    }
}

impl<S: State> Runs<Oid, S> for One<S> {
    fn is_empty(&self) -> bool {
        self.0 == S::default()
    }

    fn update(&mut self, oid: Oid, mut f: impl FnMut(Oid, &mut S)) {
        f(oid, &mut self.0);
    }

    fn of(&self, oid: Oid) -> impl Iterator<Item = (Oid, S)> {
        std::iter::once((oid, self.0))
    }
}

impl Region for Elements {
    type Runs<S: State> = Segments<S>;

    fn id(self) -> Oid {
        self.array
    }

    fn all_of(array: Oid) -> Elements {
        Elements::new(array, 0..u64::MAX)
    }

    fn units(self) -> u64 {
        self.count
    }

    fn meets(self, other: Elements) -> bool {
        Elements::meets(&self, other)
    }

    fn join(self, next: Elements) -> Option<Elements> {
        let follows = self.array == next.array && self.range().end == next.first;
        follows.then(|| Elements::new(self.array, self.first..next.range().end))
    }
}

impl<S: State> Runs<Elements, S> for Segments<S> {
    fn is_empty(&self) -> bool {
        Segments::is_empty(self)
    }

    fn update(&mut self, elements: Elements, mut f: impl FnMut(Elements, &mut S)) {
        let part = |range| Elements::new(elements.array, range);
        Segments::update(self, elements.range(), |range, state| f(part(range), state));
    }

    fn of(&self, elements: Elements) -> impl Iterator<Item = (Elements, S)> {
        let parts = Segments::of(self, elements.range());
        parts.map(move |(range, state)| (Elements::new(elements.array, range), state))
    }
}

/// Appends a region to a list. It is joined to the last one if it follows on that and what is said
/// of both is the same.
pub(crate) fn push<R: Region, T: PartialEq>(list: &mut Vec<(R, T)>, more: R, said: T) {
    let last = list.last_mut().filter(|(_, of_last)| *of_last == said);
    match last.and_then(|(last, _)| Some((last.join(more)?, last))) {
        Some((joined, last)) => *last = joined,
        None => list.push((more, said)),
    }
}

/// As [`push`], where nothing is said of them.
pub(crate) fn push_region<R: Region>(
    list: &mut (impl DerefMut<Target = [R]> + Extend<R>),
    more: R,
) {
    let last = list.last_mut();
    match last.and_then(|last| Some((last.join(more)?, last))) {
        Some((joined, last)) => *last = joined,
        None => list.extend([more]),
    }
}

/// Regions that have another state than the default, by the ids of their objects and arrays, or by
/// id and node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RegionMap<R: Region, S: State, K = Oid>(SortedMap<K, R::Runs<S>>);

/// A state of each region for each node.
pub(crate) type RegionsByNode<R, S> = RegionMap<R, S, (Oid, NodeId)>;

impl<R: Region, S: State, K> Default for RegionMap<R, S, K> {
    fn default() -> Self {
        RegionMap(SortedMap::new())
    }
}

impl<R: Region, S: State, K: Ord + Copy> RegionMap<R, S, K> {
    /// Whether all regions have the default.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn update_at(&mut self, key: K, region: R, f: impl FnMut(R, &mut S)) {
        let runs = self.0.get_or_default(key);
        runs.update(region, f);
        if runs.is_empty() {
            self.0.remove(&key);
        }
    }
}

impl<R: Region, S: State> RegionMap<R, S> {
    /// Calls `f` with the parts of a region; `f` may change their states.
    pub fn update(&mut self, region: R, f: impl FnMut(R, &mut S)) {
        self.update_at(region.id(), region, f);
    }

    /// As [`update`](RegionMap::update), where a part has another state than the default.
    pub fn change(&mut self, region: R, f: impl FnMut(R, &mut S)) {
        if let Some(runs) = self.0.get_mut(&region.id()) {
            runs.update(region, f);
            if runs.is_empty() {
                self.0.remove(&region.id());
            }
        }
    }

    /// The parts of a region that have another state than the default.
    pub fn of(&self, region: R) -> impl Iterator<Item = (R, S)> {
        let runs = self.0.get(&region.id()).into_iter();
        let parts = runs.flat_map(move |runs| runs.of(region));
        parts.filter(|(_, state)| *state != S::default())
    }

    /// All regions with these ids have the default again: calls `f` with what each had.
    pub fn take_all(&mut self, ids: OidRange, mut f: impl FnMut(R, &mut S)) {
        for (id, runs) in self.0.range_mut(ids.first..=ids.last()) {
            runs.update(R::all_of(*id), &mut f);
        }
        ids.remove_from(&mut self.0);
    }
}

/// All nodes, of the things with these ids.
fn all_nodes(ids: OidRange) -> RangeInclusive<(Oid, NodeId)> {
    (ids.first, NodeId(0))..=(ids.last(), NodeId(u16::MAX))
}

impl<R: Region, S: State> RegionsByNode<R, S> {
    /// Calls `f` with the parts of a region and their states for a node, which `f` may change.
    pub fn update(&mut self, region: R, node: NodeId, f: impl FnMut(R, &mut S)) {
        self.update_at((region.id(), node), region, f);
    }

    /// As [`update`](RegionMap::update), for each node for which a part of what has the id of
    /// the region has another state than the default.
    pub fn change_all(&mut self, region: R, mut f: impl FnMut(NodeId, R, &mut S)) {
        if self.0.is_empty() {
            return;
        }
        let (id, mut empty) = (region.id(), SmallVec::<[NodeId; 4]>::new());
        for ((_, node), runs) in self.0.range_mut(all_nodes(OidRange::one(id))) {
            runs.update(region, |part, state| f(*node, part, state));
            empty.extend(runs.is_empty().then_some(*node));
        }
        for node in empty {
            self.0.remove(&(id, node));
        }
    }

    /// Whether all parts of a region have such a state for a node.
    pub fn all(&self, region: R, node: NodeId, is: impl Fn(S) -> bool) -> bool {
        match self.0.get(&(region.id(), node)) {
            Some(runs) => runs.of(region).all(|(_, state)| is(state)),
            None => is(S::default()),
        }
    }

    /// The parts of a region that have another state than the default, by node.
    pub fn by_node(&self, region: R) -> impl Iterator<Item = (NodeId, R)> {
        let of_id = || self.0.range(all_nodes(OidRange::one(region.id())));
        let of_id = (!self.0.is_empty()).then(of_id).into_iter().flatten();
        of_id.flat_map(move |((_, node), runs)| {
            let parts = runs.of(region);
            let parts = parts.filter(|(_, state)| *state != S::default());
            parts.map(|(part, _)| (*node, part))
        })
    }

    /// All regions with these ids have the default again.
    pub fn forget(&mut self, ids: OidRange) {
        while let Some((&key, _)) = self.0.range(all_nodes(ids)).next() {
            self.0.remove(&key);
        }
    }
}

/// What a node knows of all regions of one kind.
pub(crate) trait Table<R: Region> {
    /// Calls `f` with the parts of a region; `f` may change what is known of them.
    fn update(&mut self, region: R, f: impl FnMut(R, &mut ObjectState));

    /// Calls `f` with the parts of a region.
    fn each(&self, region: R, f: impl FnMut(R, ObjectState));

    /// Whether it was freed, as far as this node knows.
    fn is_freed(&self, region: R) -> bool;

    /// What is known of a region as one: it is as old as its oldest part, and is written where one
    /// of them is.
    fn whole(&self, region: R) -> ObjectState;

    /// As [`update`](Table::update). What was known before of the region as one.
    fn update_whole(&mut self, region: R, f: impl FnMut(R, &mut ObjectState)) -> ObjectState;

    /// Whether it is at home at this node, or was freed.
    fn is_at_home(&self, region: R, me: NodeId) -> bool {
        let mut is_held = true;
        self.each(region, |_, state| is_held &= state.is_held_by(me));
        is_held || self.is_freed(region)
    }
}

impl Table<Oid> for ObjectTable {
    #[inline]
    fn update(&mut self, oid: Oid, mut f: impl FnMut(Oid, &mut ObjectState)) {
        f(oid, self.get_mut(oid));
    }

    #[inline]
    fn each(&self, oid: Oid, mut f: impl FnMut(Oid, ObjectState)) {
        f(oid, self.get(oid));
    }

    fn is_freed(&self, oid: Oid) -> bool {
        self.get(oid).freed
    }

    #[inline]
    fn whole(&self, oid: Oid) -> ObjectState {
        self.get(oid)
    }

    #[inline]
    fn update_whole(&mut self, oid: Oid, mut f: impl FnMut(Oid, &mut ObjectState)) -> ObjectState {
        let state = self.get_mut(oid);
        let before = *state;
        f(oid, state);
        before
    }
}
