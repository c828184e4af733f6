use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::{Bound, Index, RangeBounds};
use std::{fmt, slice, vec};

use dhole_wire::{Tail, Wire, WireError, count, write_head};

use crate::NodeId;

/// Entries of a chunk, at most.
const CHUNK: usize = 64;

/// Entries for which a new chunk has room.
const ROOM: usize = 6;

/// A map in the order of its keys: a list of sorted lists of at most 64 entries. A search takes
/// logarithmic time. Its code is a tenth of that of a `BTreeMap`, which the compiler makes again
/// for each type of key and value.
#[derive(Clone)]
pub struct SortedMap<K, V> {
    /// None is empty, unless it is the only one.
    chunks: Vec<Vec<(K, V)>>,
    len: usize,
}

/// A map from nodes, in their order.
pub type NodeMap<V> = SortedMap<NodeId, V>;

impl<K, V> SortedMap<K, V> {
    /// A map without entries.
    pub const fn new() -> SortedMap<K, V> {
        SortedMap {
            chunks: Vec::new(),
            len: 0,
        }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes all entries out. The room of one chunk is kept.
    pub fn clear(&mut self) {
        self.chunks.truncate(1);
        self.chunks.iter_mut().for_each(Vec::clear);
        self.len = 0;
    }

    /// The entries, in the order of their keys.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter {
            front: [].iter(),
            chunks: self.chunks.iter(),
            back: [].iter(),
        }
    }

    /// The entries, in the order of their keys, whose values can be changed.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        IterMut {
            front: [].iter_mut(),
            chunks: self.chunks.iter_mut(),
            back: [].iter_mut(),
        }
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// The values, in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// The values, in the order of their keys, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }

    /// The entry of the lowest key.
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// The entry of the highest key.
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next_back()
    }

    /// Keeps the entries of which this is true.
    pub fn retain(&mut self, mut keeps: impl FnMut(&K, &mut V) -> bool) {
        for chunk in &mut self.chunks {
            chunk.retain_mut(|(key, value)| keeps(key, value));
        }
        self.chunks.retain(|chunk| !chunk.is_empty());
        self.len = self.chunks.iter().map(Vec::len).sum();
    }

    /// The chunk of the first entry that is not `before`, and its place there. One chunk more than
    /// there are, if all entries are before.
    fn place(&self, before: impl Fn(&K) -> bool) -> (usize, usize) {
        let chunk = self
            .chunks
            .partition_point(|chunk| chunk.last().is_some_and(|(key, _)| before(key)));
        let place = self
            .chunks
            .get(chunk)
            .map_or(0, |chunk| chunk.partition_point(|(key, _)| before(key)));
        (chunk, place)
    }

    /// Takes out the entry at a place.
    fn take(&mut self, chunk: usize, place: usize) -> (K, V) {
        let entry = self.chunks[chunk].remove(place);
        self.len -= 1;
        let left = self.chunks[chunk].len();
        if left == 0 && self.chunks.len() > 1 {
            self.chunks.remove(chunk);
        } else if let Some(next) = self.chunks.get(chunk + 1)
            && left + next.len() <= CHUNK / 2
        {
            let next = self.chunks.remove(chunk + 1);
            self.chunks[chunk].extend(next);
        }
        entry
    }

    /// Takes out the entry of the lowest key.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        (!self.is_empty()).then(|| self.take(0, 0))
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    /// Where the entry of a key is, or would be.
    fn find(&self, key: &K) -> Result<(usize, usize), (usize, usize)> {
        let (chunk, place) = self.place(|it| it < key);
        let found = self.chunks.get(chunk).and_then(|chunk| chunk.get(place));
        match found.is_some_and(|(it, _)| it == key) {
            true => Ok((chunk, place)),
            false => Err((chunk, place)),
        }
    }

    /// Puts an entry where its key would be. Returns where it is.
    fn put(&mut self, (chunk, place): (usize, usize), entry: (K, V)) -> (usize, usize) {
        self.len += 1;
        if chunk == self.chunks.len() {
            return match self.chunks.last_mut() {
                Some(last) if last.len() < CHUNK => {
                    last.push(entry);
                    (chunk - 1, last.len() - 1)
                }
                _ => {
                    let mut entries = Vec::with_capacity(ROOM);
                    entries.push(entry);
                    self.chunks.push(entries);
                    (chunk, 0)
                }
            };
        }
        let entries = &mut self.chunks[chunk];
        entries.insert(place, entry);
        if entries.len() <= CHUNK {
            return (chunk, place);
        }
        let half = entries.split_off(CHUNK / 2);
        self.chunks.insert(chunk + 1, half);
        match place < CHUNK / 2 {
            true => (chunk, place),
            false => (chunk + 1, place - CHUNK / 2),
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let (chunk, place) = self.find(key).ok()?;
        Some(&self.chunks[chunk][place].1)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (chunk, place) = self.find(key).ok()?;
        Some(&mut self.chunks[chunk][place].1)
    }

    /// Whether the key has a value.
    pub fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_ok()
    }

    /// Gives a key a value. Returns the value that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok((chunk, place)) => Some(std::mem::replace(&mut self.chunks[chunk][place].1, value)),
            Err(at) => {
                self.put(at, (key, value));
                None
            }
        }
    }

    /// The value of a key, which gets this one if it has none.
    pub fn get_or_insert(&mut self, key: K, value: V) -> &mut V {
        self.get_or_insert_with(key, || value)
    }

    /// The value of a key, which gets the default if it has none.
    pub fn get_or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.get_or_insert_with(key, V::default)
    }

    /// The value of a key, which gets one made by `make` if it has none.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let (chunk, place) = match self.find(&key) {
            Ok(at) => at,
            Err(at) => self.put(at, (key, make())),
        };
        &mut self.chunks[chunk][place].1
    }

    /// Takes a key out. Returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (chunk, place) = self.find(key).ok()?;
        Some(self.take(chunk, place).1)
    }

    /// Where the entries of these keys begin and end.
    fn bounds(&self, keys: &impl RangeBounds<K>) -> ((usize, usize), (usize, usize)) {
        let first = match keys.start_bound() {
            Bound::Included(key) => self.place(|it| it < key),
            Bound::Excluded(key) => self.place(|it| it <= key),
            Bound::Unbounded => (0, 0),
        };
        let end = match keys.end_bound() {
            Bound::Included(key) => self.place(|it| it <= key),
            Bound::Excluded(key) => self.place(|it| it < key),
            Bound::Unbounded => (self.chunks.len(), 0),
        };
        (first, end.max(first))
    }

    /// The entries of these keys, in order.
    pub fn range(&self, keys: impl RangeBounds<K>) -> Iter<'_, K, V> {
        let ((chunk, place), (end_chunk, end)) = self.bounds(&keys);
        let entries = |chunk: usize| self.chunks.get(chunk).map_or(&[][..], Vec::as_slice);
        if chunk == end_chunk {
            return Iter {
                front: entries(chunk)[place..end].iter(),
                chunks: [].iter(),
                back: [].iter(),
            };
        }
        Iter {
            front: entries(chunk)[place..].iter(),
            chunks: self.chunks[chunk + 1..end_chunk].iter(),
            back: entries(end_chunk)[..end].iter(),
        }
    }

    /// The entries of these keys, in order, whose values can be changed.
    pub fn range_mut(&mut self, keys: impl RangeBounds<K>) -> IterMut<'_, K, V> {
        let ((chunk, place), (end_chunk, end)) = self.bounds(&keys);
        let (front, rest) = match self.chunks[chunk..].split_first_mut() {
            Some((front, rest)) => (front.as_mut_slice(), rest),
            None => (&mut [][..], &mut [][..]),
        };
        if chunk == end_chunk {
            return IterMut {
                front: front[place..end].iter_mut(),
                chunks: [].iter_mut(),
                back: [].iter_mut(),
            };
        }
        let (chunks, rest) = rest.split_at_mut(end_chunk - chunk - 1);
        let back = rest.first_mut().map_or(&mut [][..], Vec::as_mut_slice);
        IterMut {
            front: front[place..].iter_mut(),
            chunks: chunks.iter_mut(),
            back: back[..end].iter_mut(),
        }
    }
}

/// Entries of a [`SortedMap`].
pub struct Iter<'a, K, V> {
    front: slice::Iter<'a, (K, V)>,
    chunks: slice::Iter<'a, Vec<(K, V)>>,
    back: slice::Iter<'a, (K, V)>,
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Iter {
            front: self.front.clone(),
            chunks: self.chunks.clone(),
            back: self.back.clone(),
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = loop {
            if let Some(entry) = self.front.next() {
                break entry;
            }
            match self.chunks.next() {
                Some(chunk) => self.front = chunk.iter(),
                None => break self.back.next()?,
            }
        };
        Some((key, value))
    }
}

impl<K, V> DoubleEndedIterator for Iter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let (key, value) = loop {
            if let Some(entry) = self.back.next_back() {
                break entry;
            }
            match self.chunks.next_back() {
                Some(chunk) => self.back = chunk.iter(),
                None => break self.front.next_back()?,
            }
        };
        Some((key, value))
    }
}

/// Entries of a [`SortedMap`], whose values can be changed.
pub struct IterMut<'a, K, V> {
    front: slice::IterMut<'a, (K, V)>,
    chunks: slice::IterMut<'a, Vec<(K, V)>>,
    back: slice::IterMut<'a, (K, V)>,
}

impl<'a, K, V> Iterator for IterMut<'a, K, V> {
    type Item = (&'a K, &'a mut V);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = loop {
            if let Some(entry) = self.front.next() {
                break entry;
            }
            match self.chunks.next() {
                Some(chunk) => self.front = chunk.iter_mut(),
                None => break self.back.next()?,
            }
        };
        Some((key, value))
    }
}

/// Panics if the key has no value.
impl<K: Ord, V> Index<&K> for SortedMap<K, V> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        self.get(key).expect("a key that has a value")
    }
}

impl<'a, K, V> IntoIterator for &'a SortedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<'a, K, V> IntoIterator for &'a mut SortedMap<K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> IterMut<'a, K, V> {
        self.iter_mut()
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::iter::Flatten<vec::IntoIter<Vec<(K, V)>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.chunks.into_iter().flatten()
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(all: I) -> SortedMap<K, V> {
        let mut map = SortedMap::new();
        for (key, value) in all {
            map.insert(key, value);
        }
        map
    }
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> SortedMap<K, V> {
        SortedMap::new()
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for SortedMap<K, V> {
    fn eq(&self, other: &SortedMap<K, V>) -> bool {
        self.len == other.len && self.iter().eq(other)
    }
}

impl<K: Eq, V: Eq> Eq for SortedMap<K, V> {}

impl<K: PartialOrd, V: PartialOrd> PartialOrd for SortedMap<K, V> {
    fn partial_cmp(&self, other: &SortedMap<K, V>) -> Option<Ordering> {
        self.iter().partial_cmp(other)
    }
}

impl<K: Ord, V: Ord> Ord for SortedMap<K, V> {
    fn cmp(&self, other: &SortedMap<K, V>) -> Ordering {
        self.iter().cmp(other)
    }
}

impl<K: Hash, V: Hash> Hash for SortedMap<K, V> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.len.hash(hasher);
        for entry in self {
            entry.hash(hasher);
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SortedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// In ascending order of the keys.
impl<K: Wire + Ord, V: Wire> Wire for SortedMap<K, V> {
    type Head = u32;

    fn head(&self) -> u32 {
        count(self.len)
    }

    fn tail_len(&self) -> usize {
        self.chunks.iter().map(Vec::tail_len).sum()
    }

    fn write_tail(&self, out: &mut Vec<u8>) {
        let entries = || self.chunks.iter().flatten();
        entries().for_each(|entry| write_head(&entry.head(), out));
        entries().for_each(|entry| entry.write_tail(out));
    }

    fn read(head: &u32, tail: &mut Tail<'_>) -> Result<SortedMap<K, V>, WireError> {
        let all = Vec::<(K, V)>::read(head, tail)?;
        match all.is_sorted_by(|(one, _), (next, _)| one < next) {
            true => Ok(all.into_iter().collect()),
            false => Err(WireError::Value("keys that are not in ascending order")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nodes_that_are_not_in_order_are_refused() {
        let [low, high] = [(NodeId(1), 7_u64), (NodeId(2), 8)];
        let bytes = |all: Vec<(NodeId, u64)>| {
            let mut bytes = Vec::new();
            all.write(&mut bytes);
            bytes
        };
        let read = NodeMap::<u64>::parse(&bytes(vec![low, high]));
        assert_eq!(read, Ok([high, low].into_iter().collect()));
        for wrong in [vec![high, low], vec![low, low]] {
            let read = NodeMap::<u64>::parse(&bytes(wrong));
            assert!(matches!(read, Err(WireError::Value(_))), "{read:?}");
        }
    }

    thread_local! {
        static COMPARED: Cell<u64> = const { Cell::new(0) };
    }

    /// A key whose comparisons are counted.
    #[derive(PartialEq, Eq, Debug)]
    struct Counted(u64);

    impl Ord for Counted {
        fn cmp(&self, other: &Counted) -> Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Counted) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    /// The ranges of alternate elements are kept in such a map.
    #[test]
    fn a_search_among_many_keys_takes_a_logarithm_of_comparisons() {
        const KEYS: u64 = 1 << 14;
        // A halving for each bit, in the list of lists and in a list, and one more in each.
        let most = u64::from(KEYS.ilog2()) + 3;
        let mut map = SortedMap::new();
        let mut counted = |what: &str, act: &mut dyn FnMut(&mut SortedMap<Counted, ()>)| {
            COMPARED.set(0);
            act(&mut map);
            let compared = COMPARED.get();
            assert!(compared <= most, "{what} took {compared} comparisons");
        };
        for place in 0..KEYS {
            counted("an insertion", &mut |map| {
                map.insert(Counted(2 * place), ());
            });
        }
        for place in (0..KEYS).rev() {
            let key = Counted(2 * place);
            counted("a search", &mut |map| assert!(map.contains_key(&key)));
            counted("a range", &mut |map| {
                let range = map.range(Counted(2 * place)..);
                assert_eq!(range.take(1).count(), 1);
            });
            counted("a removal", &mut |map| assert!(map.remove(&key).is_some()));
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u16),
        Default(u16),
        Remove(u16),
        RemoveMany(u16, u16),
        Retain(u16),
        PopFirst,
        Change(u16, u16),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let key = || 0_u16..500;
        let step = prop_oneof![
            12 => key().prop_map(Step::Insert),
            4 => key().prop_map(Step::Default),
            6 => key().prop_map(Step::Remove),
            1 => (key(), 0_u16..100).prop_map(|(first, more)| Step::RemoveMany(first, more)),
            1 => (2_u16..9).prop_map(Step::Retain),
            2 => Just(Step::PopFirst),
            2 => (key(), 0_u16..200).prop_map(|(first, more)| Step::Change(first, more)),
        ];
        proptest::collection::vec(step, 0..900)
    }

    fn hash_of(map: &SortedMap<u16, usize>) -> u64 {
        BuildHasherDefault::<DefaultHasher>::default().hash_one(map)
    }

    #[test]
    fn a_full_chunk_is_split_wherever_an_entry_goes() {
        let most = 2 * CHUNK as u16;
        let full: SortedMap<u16, u16> = (1..most).step_by(2).map(|key| (key, 0)).collect();
        for key in (0..=most).step_by(2) {
            let mut map = full.clone();
            *map.get_or_default(key) = 7;
            let sevens = map.iter().filter(|(_, value)| **value == 7);
            assert_eq!(sevens.map(|(key, _)| *key).collect::<Vec<_>>(), [key]);
            assert!(map.keys().is_sorted() && map.len() == CHUNK + 1);
        }
    }

    proptest! {
        #[test]
        fn it_does_what_a_b_tree_does(steps in steps(), first in 0_u16..500, end in 0_u16..500) {
            let (mut map, mut expected) = (SortedMap::new(), BTreeMap::new());
            for (value, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Insert(key) => {
                        prop_assert_eq!(map.insert(key, value), expected.insert(key, value));
                    }
                    Step::Default(key) => {
                        *map.get_or_default(key) += value;
                        *expected.entry(key).or_default() += value;
                    }
                    Step::Remove(key) => prop_assert_eq!(map.remove(&key), expected.remove(&key)),
                    Step::RemoveMany(first, more) => {
                        for key in first..=first + more {
                            prop_assert_eq!(map.remove(&key), expected.remove(&key));
                        }
                    }
                    Step::Retain(every) => {
                        map.retain(|key, _| key % every != 0);
                        expected.retain(|key, _| key % every != 0);
                    }
                    Step::PopFirst => prop_assert_eq!(map.pop_first(), expected.pop_first()),
                    Step::Change(first, more) => {
                        for (key, value) in map.range_mut(first..=first + more) {
                            *value += usize::from(*key);
                        }
                        for (key, value) in expected.range_mut(first..=first + more) {
                            *value += usize::from(*key);
                        }
                    }
                }
                prop_assert_eq!(map.len(), expected.len());
                let least = usize::from(map.chunks.len() > 1);
                prop_assert!(map.chunks.iter().all(|it| (least..=CHUNK).contains(&it.len())));
            }
            prop_assert!(map.iter().eq(&expected));
            let (mut bytes, mut of_tree) = (Vec::new(), Vec::new());
            map.write(&mut bytes);
            expected.write(&mut of_tree);
            prop_assert_eq!(&bytes, &of_tree);
            let read = SortedMap::parse(&bytes);
            prop_assert_eq!(read.as_ref(), Ok(&map));
            prop_assert!(map.iter().rev().eq(expected.iter().rev()));
            prop_assert_eq!(map.first_key_value(), expected.first_key_value());
            prop_assert_eq!(map.last_key_value(), expected.last_key_value());
            for key in 0..500 {
                prop_assert_eq!(map.get(&key), expected.get(&key));
                prop_assert_eq!(map.contains_key(&key), expected.contains_key(&key));
            }
            prop_assert!(map.range(..end).eq(expected.range(..end)));
            prop_assert!(map.range(first..).rev().eq(expected.range(first..).rev()));
            if first < end {
                prop_assert!(map.range(first..end).eq(expected.range(first..end)));
                let excluded = (Bound::Excluded(first), Bound::Included(end));
                prop_assert!(map.range(excluded).eq(expected.range(excluded)));
            } else if end < first {
                prop_assert_eq!(map.range(first..end).next(), None);
            }
            // However it came to be.
            let again: SortedMap<_, _> = expected.into_iter().collect();
            prop_assert_eq!(hash_of(&again), hash_of(&map));
            prop_assert_eq!(&again, &map);
            prop_assert!(again.into_iter().eq(map));
        }
    }
}
