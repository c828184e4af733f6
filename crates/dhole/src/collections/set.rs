//! A set whose keys are divided among the nodes.

use std::fmt;

use dhole_model::NodeId;
use dhole_node::Worker;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{DistHash, DistMap, FrozenMap, MapError};

type Mapped<T> = Result<T, MapError>;

/// A set of keys that are divided among the nodes by their hashes: a [`DistMap`] without values,
/// which has the same costs, limits and errors. A handle of 8 bytes, copied freely.
///
/// ```
/// use dhole::Config;
/// use dhole::collections::DistSet;
///
/// let run = Config::nodes(2).run(|w| {
///     let seen = w.once(|w| Ok(DistSet::<u64>::new(w)?))?;
///     let me = w.node().index() as u64;
///     seen.insert_all(w, 10 * me..10 * me + 15)?; // 0..15 and 10..25
///     w.barrier()?;
///     Ok((seen.len(w)?, seen.contains_all(w, &[24, 25])?))
/// })?;
/// assert_eq!(run.value, (25, vec![true, false]));
/// # Ok::<(), dhole::RunError>(())
/// ```
#[derive(dhole_heap::Share)]
#[share(crate = "dhole_heap", nullable, bound = "K: DistHash")]
#[repr(transparent)]
pub struct DistSet<K: DistHash> {
    map: DistMap<K, ()>,
}

impl<K: DistHash> Clone for DistSet<K> {
    fn clone(&self) -> DistSet<K> {
        *self
    }
}

impl<K: DistHash> Copy for DistSet<K> {}

impl<K: DistHash> fmt::Debug for DistSet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DistSet({:?})", self.map)
    }
}

impl<K: DistHash> Serialize for DistSet<K> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.map.serialize(to)
    }
}

impl<'de, K: DistHash> Deserialize<'de> for DistSet<K> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        DistMap::deserialize(from).map(|map| DistSet { map })
    }
}

impl<K: DistHash> DistSet<K> {
    /// An empty set. As [`DistMap::new`].
    ///
    /// # Errors
    /// [`MapError::Object`] if it cannot be made.
    #[track_caller]
    pub fn new(w: &mut Worker<'_>) -> Mapped<DistSet<K>> {
        DistMap::new(w).map(|map| DistSet { map })
    }

    /// The node to which a key belongs.
    pub fn owner(&self, w: &Worker<'_>, key: &K) -> NodeId {
        self.map.owner(w, key)
    }

    /// Whether a key is in the set. Two messages, or none where the key belongs to this node.
    ///
    /// # Errors
    /// As [`DistMap::get`].
    #[track_caller]
    pub fn contains(&self, w: &mut Worker<'_>, key: &K) -> Mapped<bool> {
        self.map.contains_key(w, key)
    }

    /// Adds a key: whether it was not in the set. Of nodes that add a key at once one hears so.
    ///
    /// # Errors
    /// As [`DistMap::get`].
    #[track_caller]
    pub fn insert(&self, w: &mut Worker<'_>, key: K) -> Mapped<bool> {
        Ok(self.map.insert(w, key, ())?.is_none())
    }

    /// Takes a key out: whether it was in the set.
    ///
    /// # Errors
    /// As [`DistMap::get`].
    #[track_caller]
    pub fn remove(&self, w: &mut Worker<'_>, key: &K) -> Mapped<bool> {
        Ok(self.map.remove(w, key)?.is_some())
    }

    /// Adds all these keys. As [`DistMap::insert_all`].
    ///
    /// # Errors
    /// As [`DistMap::insert_all`].
    #[track_caller]
    pub fn insert_all(&self, w: &mut Worker<'_>, keys: impl IntoIterator<Item = K>) -> Mapped<()> {
        self.map
            .insert_all(w, keys.into_iter().map(|key| (key, ())))
    }

    /// Whether each of these keys is in the set, in their order. As [`DistMap::get_all`].
    ///
    /// # Errors
    /// As [`DistMap::get_all`].
    #[track_caller]
    pub fn contains_all(&self, w: &mut Worker<'_>, keys: &[K]) -> Mapped<Vec<bool>> {
        self.map.contains_all(w, keys)
    }

    /// Takes all these keys out: how many were in the set.
    ///
    /// # Errors
    /// As [`DistMap::remove_all`].
    #[track_caller]
    pub fn remove_all(&self, w: &mut Worker<'_>, keys: &[K]) -> Mapped<u64> {
        self.map.remove_all(w, keys)
    }

    /// How many keys there are. As [`DistMap::len`].
    ///
    /// # Errors
    /// As [`DistMap::get`].
    #[track_caller]
    pub fn len(&self, w: &mut Worker<'_>) -> Mapped<u64> {
        self.map.len(w)
    }

    /// Whether there is no key. As [`DistMap::len`].
    ///
    /// # Errors
    /// As [`DistMap::get`].
    #[track_caller]
    pub fn is_empty(&self, w: &mut Worker<'_>) -> Mapped<bool> {
        self.map.is_empty(w)
    }

    /// Takes all keys out. As [`DistMap::clear`].
    ///
    /// # Errors
    /// As [`DistMap::get`].
    #[track_caller]
    pub fn clear(&self, w: &mut Worker<'_>) -> Mapped<()> {
        self.map.clear(w)
    }

    /// Calls `f` with each key that belongs to this node. As [`DistMap::for_each_own`].
    ///
    /// # Errors
    /// As [`DistMap::for_each_own`].
    #[track_caller]
    pub fn for_each_own(&self, w: &mut Worker<'_>, mut f: impl FnMut(&K)) -> Mapped<()> {
        self.map.for_each_own(w, |key, ()| f(key))
    }

    /// Combines what `each` makes of all keys by `op`. As [`DistMap::reduce`].
    ///
    /// # Errors
    /// As [`DistMap::reduce`].
    #[track_caller]
    pub fn reduce<R: Serialize + DeserializeOwned>(
        &self,
        w: &mut Worker<'_>,
        mut each: impl FnMut(&K) -> R,
        op: impl FnMut(R, R) -> R,
    ) -> Mapped<Option<R>> {
        self.map.reduce(w, |key, ()| each(key), op)
    }

    /// The set as it is, for nodes that read it and do not change it: a map without values. As
    /// [`DistMap::freeze`].
    ///
    /// # Errors
    /// As [`DistMap::freeze`].
    #[track_caller]
    pub fn freeze(&self, w: &mut Worker<'_>) -> Mapped<FrozenMap<K, ()>> {
        self.map.freeze(w)
    }

    /// Frees the set. As [`DistMap::free`].
    ///
    /// # Errors
    /// [`MapError::Object`] if it was freed before.
    #[track_caller]
    pub fn free(&self, w: &mut Worker<'_>) -> Mapped<()> {
        self.map.free(w)
    }
}
