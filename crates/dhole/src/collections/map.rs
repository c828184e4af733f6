//! A map whose entries are divided among the nodes.

mod frozen;
mod shard;

use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;

use dhole_model::{CallSite, NodeId};
use dhole_node::object::{Calling, Object, Pending, call_as, on};
use dhole_node::{HashMap, Worker};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::MapError;
use super::combine::Combine;
use super::key::{DistHash, owner};
use crate::job_queue::ByValue;
pub use frozen::FrozenMap;
use shard::{Shard, combine_all};

type Mapped<T> = Result<T, MapError>;

/// The most entries that go to a node in one operation: of 4 KiB each on average, where messages
/// have 256 MiB.
const MOST_TOGETHER: usize = 1 << 16;

/// As many entries of a node are combined in one go: as many as a cache holds.
const TOGETHER: usize = 1 << 12;

/// As many entries of all nodes are combined at most before they go to their nodes.
const ALL_TOGETHER: usize = 1 << 18;

/// The most operations of a bulk call that are under way at once.
const MOST_UNDER_WAY: usize = 256;

/// A map from `K` to `V` whose entries are divided among the nodes by the hashes of their keys. A
/// handle of 8 bytes, copied freely.
///
/// ```
/// use dhole::collections::DistMap;
/// use dhole::{Config, combine};
///
/// let run = Config::nodes(3).run(|w| {
///     let counts = w.once(|w| Ok(DistMap::<String, u64>::new(w)?))?;
///     let text = ["to be or not", "to be", "that is to say"][w.node().index()];
///     let words = text.split(' ').map(|word| (word.to_owned(), 1));
///     counts.update_all(w, words, combine!(|count: &mut u64, more| *count += more))?;
///     w.barrier()?; // all nodes have counted
///     let keys = ["to", "be", "dhole"].map(str::to_owned);
///     Ok(counts.get_all(w, &keys)?)
/// })?;
/// assert_eq!(run.value, [Some(3), Some(2), None]);
/// # Ok::<(), dhole::RunError>(())
/// ```
///
/// - **Calls of one key** ([`get`](DistMap::get), [`insert`](DistMap::insert),
///   [`update`](DistMap::update) and so on) are operations on an object at the key's node. They are
///   linearizable, and synchronise as [operations](crate::Object) do. A call takes two messages, or
///   none where the key belongs to the own node.
/// - **Calls of many keys** ([`insert_all`](DistMap::insert_all),
///   [`update_all`](DistMap::update_all), [`get_all`](DistMap::get_all)) take two messages for each
///   other node to which some of the keys belong, and two more for each further 65,536 of its keys.
///   Any node calls them at any time. Each part is atomic; the call is not.
/// - **Own entries**: [`for_each_own`](DistMap::for_each_own) reads those of the own node, without
///   a message. [`reduce`](DistMap::reduce) combines those of all nodes.
/// - **A phase in which nodes only look up**: [`freeze`](DistMap::freeze) makes a [`FrozenMap`] of
///   the entries as they are, which nodes read in the owner's memory.
/// - [`owner`](DistMap::owner) says to which node a key belongs.
///
/// All entries of a node must fit into its memory. A function of the program that panics in a call
/// makes the entries of that node unusable: later calls of them are errors. In a run that survives
/// the loss of nodes, the entries of a lost node are lost, and calls of them are errors.
#[derive(dhole_heap::Share)]
#[share(crate = "dhole_heap", nullable, bound = "K: DistHash, V: ByValue")]
#[repr(transparent)]
pub struct DistMap<K: DistHash, V: ByValue> {
    /// The entries of node 0. Those of the others were made after it, in a row.
    first: Object<Shard<K, V>>,
}

impl<K: DistHash, V: ByValue> Clone for DistMap<K, V> {
    fn clone(&self) -> DistMap<K, V> {
        *self
    }
}

impl<K: DistHash, V: ByValue> Copy for DistMap<K, V> {}

impl<K: DistHash, V: ByValue> fmt::Debug for DistMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DistMap({})", Object::id(&self.first).0)
    }
}

impl<K: DistHash, V: ByValue> Serialize for DistMap<K, V> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.first.serialize(to)
    }
}

impl<'de, K: DistHash, V: ByValue> Deserialize<'de> for DistMap<K, V> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Object::deserialize(from).map(|first| DistMap { first })
    }
}

impl<K: DistHash, V: ByValue> DistMap<K, V> {
    /// An empty map. The other nodes get the handle through [`once`](Worker::once), another object
    /// or a [name](crate::names). It takes two messages for each other node.
    ///
    /// # Errors
    /// [`MapError::Object`] if it cannot be made.
    #[track_caller]
    pub fn new(w: &mut Worker<'_>) -> Mapped<DistMap<K, V>> {
        let each = (0..w.nodes()).map(|node| (on(NodeId::at(node)), Shard::new()));
        let first = w.new_row(Location::caller(), each)?;
        Ok(DistMap { first })
    }

    /// The node to which a key belongs.
    pub fn owner(&self, w: &Worker<'_>, key: &K) -> NodeId {
        NodeId::at(owner(key, w.nodes()))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// [`MapError::Object`] if the map is freed, or the entries of the key's node cannot be used.
    #[track_caller]
    pub fn get(&self, w: &mut Worker<'_>, key: &K) -> Mapped<Option<V>> {
        Ok(self.shard(w, key).get(w, key)?)
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    /// As [`get`](DistMap::get).
    #[track_caller]
    pub fn contains_key(&self, w: &mut Worker<'_>, key: &K) -> Mapped<bool> {
        Ok(self.shard(w, key).has(w, key)?)
    }

    /// Gives a key a value: what it had before.
    ///
    /// # Errors
    /// As [`get`](DistMap::get).
    #[track_caller]
    pub fn insert(&self, w: &mut Worker<'_>, key: K, value: V) -> Mapped<Option<V>> {
        Ok(self.shard(w, &key).insert(w, key, value)?)
    }

    /// The value of a key, which gets this one if it has none. Of nodes that call it at once all
    /// get the value of the first.
    ///
    /// # Errors
    /// As [`get`](DistMap::get).
    #[track_caller]
    pub fn get_or_insert(&self, w: &mut Worker<'_>, key: K, value: V) -> Mapped<V> {
        Ok(self.shard(w, &key).get_or_insert(w, key, value)?)
    }

    /// Combines the value of a key with this one, by `op(&mut its_value, value)`; a key without a
    /// value gets this one. What the key has then.
    ///
    /// # Errors
    /// [`MapError::Unnamed`] if `op` has no name in this program, and as [`get`](DistMap::get).
    #[track_caller]
    pub fn update(&self, w: &mut Worker<'_>, key: K, value: V, op: Combine<V>) -> Mapped<V> {
        let unnamed = unnamed(w, op);
        let Some(by) = op.place() else {
            return Err(unnamed);
        };
        self.shard(w, &key)
            .update(w, key, value, by)?
            .ok_or(unnamed)
    }

    /// Takes the value of a key away: the value.
    ///
    /// # Errors
    /// As [`get`](DistMap::get).
    #[track_caller]
    pub fn remove(&self, w: &mut Worker<'_>, key: &K) -> Mapped<Option<V>> {
        Ok(self.shard(w, key).remove(w, key)?)
    }

    /// Gives each key its value, in this order: of a key that is there twice the last one counts.
    ///
    /// # Errors
    /// As [`get`](DistMap::get); some of the keys may have their values then.
    #[track_caller]
    pub fn insert_all(
        &self,
        w: &mut Worker<'_>,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Mapped<()> {
        let (me, nodes) = (w.node().index(), w.nodes());
        let mut parts: Vec<Vec<(K, V)>> = (0..nodes).map(|_| Vec::new()).collect();
        let mut bulk = Bulk::new();
        for (key, value) in pairs {
            let node = owner(&key, nodes);
            let part = &mut parts[node];
            part.push((key, value));
            if part.len() == MOST_TOGETHER {
                let part = std::mem::take(part);
                self.insert_part(w, &mut bulk, node, part)?;
            }
        }
        for (node, part) in ends(parts, me) {
            self.insert_part(w, &mut bulk, node, part)?;
        }
        bulk.wait(w, &mut |_, ()| Ok(()))
    }

    #[track_caller]
    fn insert_part(
        &self,
        w: &mut Worker<'_>,
        bulk: &mut Bulk<(), ()>,
        node: usize,
        part: Vec<(K, V)>,
    ) -> Mapped<()> {
        let shard = self.of(w, node);
        if node == w.node().index() {
            return Ok(shard.insert_all(w, part)?);
        }
        bulk.make_room(w, node, &mut |(), ()| Ok(()))?;
        bulk.add(node, shard.start_insert_all(w, part)?, ());
        Ok(())
    }

    /// Combines the value of each key with the one that is given with it, by
    /// `op(&mut its_value, value)`; a key without a value gets that one.
    ///
    /// Values of one key are combined before they go to its node. The calls of several
    /// nodes take effect in any order. So `op` must be associative, and for a result that does not
    /// depend on chance commutative.
    ///
    /// # Errors
    /// [`MapError::Unnamed`] if `op` has no name in this program, and as [`get`](DistMap::get);
    /// some of the values may have been combined then.
    #[track_caller]
    pub fn update_all(
        &self,
        w: &mut Worker<'_>,
        pairs: impl IntoIterator<Item = (K, V)>,
        op: Combine<V>,
    ) -> Mapped<()> {
        let (me, nodes) = (w.node().index(), w.nodes());
        let unnamed = unnamed(w, op);
        let Some(by) = op.place() else {
            return Err(unnamed);
        };
        let mut bulk = Bulk::new();
        let mut is_known = true;
        let mut hears = |(), known| {
            is_known &= known;
            Ok(())
        };
        // A key is hashed for its owner once for all values that it gets here.
        let mut combined = HashMap::<K, V>::default();
        let mut pairs = pairs.into_iter();
        loop {
            let some: Vec<(K, V)> = pairs.by_ref().take(TOGETHER).collect();
            let is_last = some.len() < TOGETHER;
            if nodes == 1 {
                hears((), self.of(w, me).update_all(w, some, by)?)?;
            } else {
                combine_all(&mut combined, some, |value, next| op.apply(value, next));
            }
            if is_last || combined.len() >= ALL_TOGETHER {
                let mut parts: Vec<Vec<(K, V)>> = (0..nodes).map(|_| Vec::new()).collect();
                for (key, value) in combined.drain() {
                    parts[owner(&key, nodes)].push((key, value));
                }
                for node in others(nodes, me) {
                    let mut part = std::mem::take(&mut parts[node]).into_iter();
                    while !part.as_slice().is_empty() {
                        let some = part.by_ref().take(MOST_TOGETHER).collect();
                        bulk.make_room(w, node, &mut hears)?;
                        let shard = self.of(w, node);
                        bulk.add(node, shard.start_update_all(w, some, by)?, ());
                    }
                }
                let own = std::mem::take(&mut parts[me]);
                if !own.is_empty() {
                    hears((), self.of(w, me).update_all(w, own, by)?)?;
                }
            }
            if is_last {
                break;
            }
        }
        bulk.wait(w, &mut hears)?;
        is_known.then_some(()).ok_or(unnamed)
    }

    /// The values of all these keys, in their order; `None` for a key without a value.
    ///
    /// # Errors
    /// As [`get`](DistMap::get).
    #[track_caller]
    pub fn get_all(&self, w: &mut Worker<'_>, keys: &[K]) -> Mapped<Vec<Option<V>>> {
        self.ask_all(
            w,
            keys,
            |shard, w, keys| Ok(shard.start_get_all(w, keys)?),
            |shard, w, keys| Ok(shard.get_all(w, keys)?),
        )
    }

    /// Whether these keys have values, in their order.
    ///
    /// # Errors
    /// As [`get`](DistMap::get).
    #[track_caller]
    pub fn contains_all(&self, w: &mut Worker<'_>, keys: &[K]) -> Mapped<Vec<bool>> {
        self.ask_all(
            w,
            keys,
            |shard, w, keys| Ok(shard.start_has_all(w, keys)?),
            |shard, w, keys| Ok(shard.has_all(w, keys)?),
        )
    }

    /// Asks each owner for what belongs to its keys.
    #[track_caller]
    fn ask_all<R: DeserializeOwned + Clone + Default>(
        &self,
        w: &mut Worker<'_>,
        keys: &[K],
        start: impl Fn(Object<Shard<K, V>>, &mut Worker<'_>, &[K]) -> Mapped<Pending<Vec<R>>>,
        ask: impl Fn(Object<Shard<K, V>>, &mut Worker<'_>, &[K]) -> Mapped<Vec<R>>,
    ) -> Mapped<Vec<R>> {
        let (me, nodes) = (w.node(), w.nodes());
        let site = CallSite::caller();
        let mut places: Vec<Vec<usize>> = vec![Vec::new(); nodes];
        for (place, key) in keys.iter().enumerate() {
            places[owner(key, nodes)].push(place);
        }
        let mut all = vec![R::default(); keys.len()];
        let mut put = |(node, places): (usize, &[usize]), values: Vec<R>| {
            if values.len() != places.len() {
                let (from, wanted, came) = (NodeId::at(node), places.len(), values.len());
                return Err(MapError::OtherCount {
                    from,
                    node: me,
                    site,
                    wanted,
                    came,
                });
            }
            for (place, value) in places.iter().zip(values) {
                all[*place] = value;
            }
            Ok(())
        };
        let mut bulk = Bulk::new();
        for node in others(nodes, me.index()) {
            for part in places[node].chunks(MOST_TOGETHER) {
                let wanted: Vec<K> = part.iter().map(|place| keys[*place].clone()).collect();
                bulk.make_room(w, node, &mut put)?;
                let shard = self.of(w, node);
                bulk.add(node, start(shard, w, &wanted)?, (node, part));
            }
        }
        let own = &places[me.index()];
        if !own.is_empty() {
            let wanted: Vec<K> = own.iter().map(|place| keys[*place].clone()).collect();
            let shard = self.of(w, me.index());
            put((me.index(), own), ask(shard, w, &wanted)?)?;
        }
        bulk.wait(w, &mut put)?;
        Ok(all)
    }

    /// Takes the values of all these keys away: how many had one.
    ///
    /// # Errors
    /// As [`get`](DistMap::get); some of the keys may have no value then.
    #[track_caller]
    pub fn remove_all(&self, w: &mut Worker<'_>, keys: &[K]) -> Mapped<u64> {
        let (me, nodes) = (w.node().index(), w.nodes());
        let mut parts: Vec<Vec<K>> = vec![Vec::new(); nodes];
        keys.iter()
            .for_each(|key| parts[owner(key, nodes)].push(key.clone()));
        let own = std::mem::take(&mut parts[me]);
        let mut removed = 0;
        let mut add = |(), more| {
            removed += more;
            Ok(())
        };
        let mut bulk = Bulk::new();
        for node in others(nodes, me) {
            for part in parts[node].chunks(MOST_TOGETHER) {
                bulk.make_room(w, node, &mut add)?;
                let shard = self.of(w, node);
                bulk.add(node, shard.start_remove_all(w, part)?, ());
            }
        }
        if !own.is_empty() {
            add((), self.of(w, me).remove_all(w, &own)?)?;
        }
        bulk.wait(w, &mut add)?;
        Ok(removed)
    }

    /// How many keys have values on all nodes, where no node changes that meanwhile. One node calls
    /// it, any; nodes that all need it call it each. Two messages for each other node.
    ///
    /// # Errors
    /// As [`get`](DistMap::get).
    #[track_caller]
    pub fn len(&self, w: &mut Worker<'_>) -> Mapped<u64> {
        let me = w.node().index();
        let mut all = 0;
        let mut add = |(), more| {
            all += more;
            Ok(())
        };
        let mut bulk = Bulk::new();
        for node in others(w.nodes(), me) {
            bulk.make_room(w, node, &mut add)?;
            let shard = self.of(w, node);
            bulk.add(node, shard.start_len(w)?, ());
        }
        add((), self.of(w, me).len(w)?)?;
        bulk.wait(w, &mut add)?;
        Ok(all)
    }

    /// Whether no key has a value. As [`len`](DistMap::len).
    ///
    /// # Errors
    /// As [`get`](DistMap::get).
    #[track_caller]
    pub fn is_empty(&self, w: &mut Worker<'_>) -> Mapped<bool> {
        Ok(self.len(w)? == 0)
    }

    /// Takes the values of all keys away, of one node after the other. One node calls it, any: what
    /// another node inserts after its call is taken away too, if the call comes to it later. Two
    /// messages for each other node.
    ///
    /// # Errors
    /// As [`get`](DistMap::get).
    #[track_caller]
    pub fn clear(&self, w: &mut Worker<'_>) -> Mapped<()> {
        for node in 0..w.nodes() {
            self.of(w, node).clear(w)?;
        }
        Ok(())
    }

    /// Calls `f` with each key that belongs to this node and its value, in an order that depends on
    /// chance. No message. It is one operation: calls of other nodes that concern these keys wait
    /// until it is over, so `f` had better be short.
    ///
    /// # Errors
    /// As [`get`](DistMap::get).
    ///
    /// # Panics
    /// Where `f` does: that is [`MapError::Object`], and the entries stay.
    #[track_caller]
    pub fn for_each_own(&self, w: &mut Worker<'_>, mut f: impl FnMut(&K, &V)) -> Mapped<()> {
        let own = self.of(w, w.node().index());
        let visit = Visit(|shard: &Shard<K, V>| shard.entries().iter().for_each(|(k, v)| f(k, v)));
        Ok(call_as(
            w,
            own,
            Calling::of("Shard::len", "DistMap::for_each_own"),
            visit,
            |_, _| true,
            |shard, Visit(mut visit)| {
                visit(shard);
                0_u64
            },
        )
        .map(drop)?)
    }

    /// Combines what `each` makes of all keys and their values by `op`; `None` of an empty map.
    /// Every node calls it, and gets the same. It begins with a barrier, so what any node did
    /// before counts, and then takes an [`all_reduce`](Worker::all_reduce).
    ///
    /// The entries of a node are combined in an order that depends on chance: `op` must be
    /// associative and commutative.
    ///
    /// # Errors
    /// As [`get`](DistMap::get) and [`all_reduce`](Worker::all_reduce).
    #[track_caller]
    pub fn reduce<R: Serialize + DeserializeOwned>(
        &self,
        w: &mut Worker<'_>,
        mut each: impl FnMut(&K, &V) -> R,
        mut op: impl FnMut(R, R) -> R,
    ) -> Mapped<Option<R>> {
        w.barrier()?;
        let mut mine = None;
        self.for_each_own(w, |key, value| {
            let next = each(key, value);
            mine = Some(match mine.take() {
                Some(one) => op(one, next),
                None => next,
            });
        })?;
        Ok(w.all_reduce(mine, |one, next| match (one, next) {
            (Some(one), Some(next)) => Some(op(one, next)),
            (one, next) => one.or(next),
        })?)
    }

    /// The map as it is, for nodes that read it and do not change it: its entries in shared
    /// objects, which are read without a message where the owner's memory is seen. Every node
    /// calls it.
    ///
    /// It begins with a barrier, so what any node did before counts, and then takes an
    /// [`all_gather`](Worker::all_gather). Each node serialises its own entries.
    ///
    /// # Errors
    /// [`MapError::Unfrozen`], on all nodes, where the entries of a node cannot be serialised or
    /// are too large; as [`get`](DistMap::get) and [`all_gather`](Worker::all_gather).
    #[track_caller]
    pub fn freeze(&self, w: &mut Worker<'_>) -> Mapped<FrozenMap<K, V>> {
        FrozenMap::of(w, *self)
    }

    /// Frees the map, with all entries. One node calls it, when no node uses the map any more.
    ///
    /// # Errors
    /// [`MapError::Object`] if it was freed before.
    #[track_caller]
    pub fn free(&self, w: &mut Worker<'_>) -> Mapped<()> {
        for node in 0..w.nodes() {
            let shard = self.of(w, node);
            Object::free(&shard, w)?;
        }
        Ok(())
    }

    /// The entries of a key's node.
    #[inline]
    fn shard(&self, w: &mut Worker<'_>, key: &K) -> Object<Shard<K, V>> {
        self.of(w, owner(key, w.nodes()))
    }

    /// The entries of a node, which are there.
    #[inline]
    fn of(&self, w: &mut Worker<'_>, node: usize) -> Object<Shard<K, V>> {
        let shard = Object::nth(&self.first, w, node);
        w.suppose(&shard, NodeId::at(node));
        shard
    }
}

#[track_caller]
fn unnamed<V: 'static>(w: &Worker<'_>, op: Combine<V>) -> MapError {
    MapError::Unnamed {
        op: op.name(),
        node: w.node(),
        site: CallSite::caller(),
    }
}

/// The other nodes, the next one first: so not all nodes begin with the same.
fn others(nodes: usize, me: usize) -> impl Iterator<Item = usize> {
    (1..nodes).map(move |distance| (me + distance) % nodes)
}

/// What is left for each node, the others first.
fn ends<T, P: IntoIterator<Item = T> + Default>(
    mut parts: Vec<P>,
    me: usize,
) -> impl Iterator<Item = (usize, P)>
where
    for<'a> &'a P: IntoIterator,
{
    let nodes = parts.len();
    let all = others(nodes, me).chain([me]);
    all.filter_map(move |node| {
        let part = std::mem::take(&mut parts[node]);
        let is_empty = (&part).into_iter().next().is_none();
        (!is_empty).then_some((node, part))
    })
}

/// A visit of the own entries. It does not travel.
struct Visit<F>(F);

impl<F> Serialize for Visit<F> {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        let elsewhere = "the entries of this node are not here";
        Err(serde::ser::Error::custom(elsewhere))
    }
}

/// The operations of a bulk call that are under way: at most one for each owner, so that they take
/// effect in their order there. With each something of the caller's.
struct Bulk<R, C> {
    under_way: VecDeque<(usize, Pending<R>, C)>,
}

/// What becomes of a result.
type Takes<'a, R, C> = dyn FnMut(C, R) -> Mapped<()> + 'a;

impl<R: DeserializeOwned, C> Bulk<R, C> {
    fn new() -> Bulk<R, C> {
        Bulk {
            under_way: VecDeque::new(),
        }
    }

    /// Waits until another operation may begin for this owner.
    #[track_caller]
    fn make_room(
        &mut self,
        w: &mut Worker<'_>,
        node: usize,
        takes: &mut Takes<'_, R, C>,
    ) -> Mapped<()> {
        let mut place = self.under_way.iter().position(|(owner, ..)| *owner == node);
        if self.under_way.len() >= MOST_UNDER_WAY {
            place = place.or(Some(0));
        }
        match place.and_then(|place| self.under_way.remove(place)) {
            Some((_, pending, with)) => takes(with, pending.wait(w)?),
            None => Ok(()),
        }
    }

    fn add(&mut self, node: usize, pending: Pending<R>, with: C) {
        self.under_way.push_back((node, pending, with));
    }

    #[track_caller]
    fn wait(self, w: &mut Worker<'_>, takes: &mut Takes<'_, R, C>) -> Mapped<()> {
        for (_, pending, with) in self.under_way {
            takes(with, pending.wait(w)?)?;
        }
        Ok(())
    }
}
