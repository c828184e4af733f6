//! The entries of one node.

use dhole_node::HashMap;
use serde::{Deserialize, Serialize};

use crate::collections::DistHash;
use crate::collections::combine::Combines;
use crate::job_queue::ByValue;

/// The entries of a map that belong to one node.
#[derive(Serialize, Deserialize)]
#[serde(bound = "K: DistHash, V: ByValue")]
pub(in crate::collections) struct Shard<K: DistHash, V: ByValue> {
    entries: HashMap<K, V>,
}

impl<K: DistHash, V: ByValue> Shard<K, V> {
    pub fn new() -> Shard<K, V> {
        Shard {
            entries: HashMap::default(),
        }
    }

    pub fn entries(&self) -> &HashMap<K, V> {
        &self.entries
    }
}

#[dhole_macros::object(crate = "dhole_node")]
impl<K: DistHash, V: ByValue> Shard<K, V> {
    pub fn get(&self, key: &K) -> Option<V> {
        self.entries.get(key).cloned()
    }

    pub fn has(&self, key: &K) -> bool {
        self.entries.contains_key(key)
    }

    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.entries.insert(key, value)
    }

    /// The value that is there, or else this one from now on.
    pub fn get_or_insert(&mut self, key: K, value: V) -> V {
        self.entries.entry(key).or_insert(value).clone()
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.entries.remove(key)
    }

    /// Combines a value with the one that is there, if there is one, by the function of this place
    /// in the table. What is there then; nothing, if there is no such function.
    pub fn update(&mut self, key: K, value: V, by: u32) -> Option<V> {
        let mut next = Some((key, value));
        let mut is = None;
        let entries = &mut self.entries;
        Combines::lend(by, &mut |combine| {
            if let Some((key, value)) = next.take() {
                is = Some(combined(entries, key, value, combine).clone());
            }
        });
        is
    }

    pub fn insert_all(&mut self, pairs: Vec<(K, V)>) {
        self.entries.extend(pairs);
    }

    /// As `update`, for each of them. Whether there is such a function.
    pub fn update_all(&mut self, mut pairs: Vec<(K, V)>, by: u32) -> bool {
        let entries = &mut self.entries;
        Combines::lend(by, &mut |combine| {
            combine_all(entries, std::mem::take(&mut pairs), combine);
        })
    }

    pub fn get_all(&self, keys: &[K]) -> Vec<Option<V>> {
        let values = keys.iter().map(|key| self.entries.get(key).cloned());
        values.collect()
    }

    pub fn has_all(&self, keys: &[K]) -> Vec<bool> {
        let are = keys.iter().map(|key| self.entries.contains_key(key));
        are.collect()
    }

    /// How many of them were there.
    pub fn remove_all(&mut self, keys: &[K]) -> u64 {
        let removed = keys
            .iter()
            .filter(|key| self.entries.remove(*key).is_some());
        removed.count() as u64
    }

    pub fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

/// Combines the values of all keys. Each key is looked up where it lies: a key that was just moved
/// is read again only when the processor has written it, behind all earlier look-ups, so that their
/// waits for memory do not overlap.
#[inline]
pub(in crate::collections) fn combine_all<K: DistHash, V>(
    entries: &mut HashMap<K, V>,
    pairs: impl IntoIterator<Item = (K, V), IntoIter = std::vec::IntoIter<(K, V)>>,
    mut combine: impl FnMut(&mut V, V),
) {
    let mut pairs = pairs.into_iter();
    while let Some((key, _)) = pairs.as_slice().first() {
        let known = entries.get_mut(key);
        match (known, pairs.next()) {
            (Some(known), Some((_, value))) => combine(known, value),
            (None, Some((key, value))) => drop(entries.insert(key, value)),
            (_, None) => return,
        }
    }
}

fn combined<'a, K: DistHash, V>(
    entries: &'a mut HashMap<K, V>,
    key: K,
    value: V,
    combine: &mut dyn FnMut(&mut V, V),
) -> &'a mut V {
    use std::collections::hash_map::Entry;
    match entries.entry(key) {
        Entry::Occupied(entry) => {
            let known = entry.into_mut();
            combine(known, value);
            known
        }
        Entry::Vacant(entry) => entry.insert(value),
    }
}
