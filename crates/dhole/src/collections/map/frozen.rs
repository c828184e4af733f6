//! A map as it was: entries in shared objects, which all nodes read.

use std::marker::PhantomData;
use std::ops::Range;

use dhole_heap::{Refs, decode_next};
use dhole_model::{CallSite, Counted, NodeId};
use dhole_node::Worker;
use dhole_node::object::encode_to;
use serde::{Deserialize, Serialize};

use super::{DistMap, Mapped};
use crate::collections::key::{owner, place_among};
use crate::collections::{DistHash, MapError};
use crate::job_queue::ByValue;

/// So many buckets have their beginnings in one object, with the end of the last one.
const BUCKETS: usize = 255;
/// So many bytes of entries are one object.
const BYTES: usize = 1024;

/// The entries of one node: those of each bucket follow on each other. They lie in objects and not
/// in an array, because objects are read one-sided.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Part {
    /// A power of two.
    buckets: usize,
    /// Where the bytes of each bucket begin, and behind the last one where they end.
    begins: Refs<[u32; BUCKETS + 1]>,
    bytes: Refs<[u8; BYTES]>,
    entries: u64,
}

/// A [`DistMap`] as it was when all nodes [froze](DistMap::freeze) it. Every node may read all of
/// it; nobody writes it.
///
/// ```
/// use dhole::collections::DistMap;
/// use dhole::{Config, MessageKind};
///
/// let run = Config::nodes(2).run(|w| {
///     let squares = w.once(|w| Ok(DistMap::<u32, u64>::new(w)?))?;
///     let mine = (0..100).skip(w.node().index()).step_by(2);
///     squares.insert_all(w, mine.map(|it| (it, u64::from(it) * u64::from(it))))?;
///     let frozen = squares.freeze(w)?; // every node calls it
///     let before = w.counters();
///     let sum: u64 = frozen.get_all(w, &[3, 4, 100])?.into_iter().flatten().sum();
///     assert_eq!(w.counters().messages, before.messages); // the other thread's memory is seen
///     Ok((sum, frozen.get(w, &9)?))
/// })?;
/// assert_eq!(run.value, (25, Some(81)));
/// # Ok::<(), dhole::RunError>(())
/// ```
///
/// - **Cost.** An entry lies in shared objects of the node to which its key belongs. Where that
///   node's memory is seen, a look-up sends no message. Elsewhere it takes two messages for where
///   the entry lies and two for the entry, or as many for all keys of a node in one call. What has
///   come stays here: the next look-up of an entry within the same KiB costs no message.
/// - **For what.** Look-ups one by one, as a search makes them. Of many keys at once
///   [`DistMap::get_all`] takes two messages an owner, and less time of a processor: a frozen entry
///   is deserialised at each look-up.
/// - **Later changes** of the map do not show. Freeze it again after them.
/// - Each node has the whole handle, of some 40 bytes for each node. It is cloned, and travels by
///   value. The entries take memory a second time, serialised: 4 GiB on a node at most.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct FrozenMap<K: DistHash, V: ByValue> {
    parts: Vec<Part>,
    of: PhantomData<fn(K) -> V>,
}

impl<K: DistHash, V: ByValue> Clone for FrozenMap<K, V> {
    fn clone(&self) -> FrozenMap<K, V> {
        FrozenMap {
            parts: self.parts.clone(),
            of: PhantomData,
        }
    }
}

impl<K: DistHash, V: ByValue> std::fmt::Debug for FrozenMap<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FrozenMap({})", Counted(self.len(), "entry", "entries"))
    }
}

/// A bucket: the node, and the number there.
type Place = (usize, usize);

impl<K: DistHash, V: ByValue> FrozenMap<K, V> {
    /// As [`DistMap::freeze`].
    #[track_caller]
    pub(super) fn of(w: &mut Worker<'_>, map: DistMap<K, V>) -> Mapped<FrozenMap<K, V>> {
        let (node, site) = (w.node(), CallSite::caller());
        // What any node did before counts.
        w.barrier()?;
        let mine = Rows::of(w, map)?;
        let mine = mine.map(|rows| rows.publish(w));
        let all = w.all_gather(mine)?;
        let refused = |of, cause| MapError::Unfrozen {
            of,
            node,
            site,
            cause,
        };
        let parts = all.into_iter().enumerate().map(|(of, part)| {
            let of = NodeId::at(of);
            part.map_err(|cause| refused(of, cause))
        });
        let parts = parts.collect::<Mapped<_>>()?;
        let of = PhantomData;
        Ok(FrozenMap { parts, of })
    }

    /// How many keys have values.
    pub fn len(&self) -> u64 {
        let entries = self.parts.iter().map(|part| part.entries);
        entries.fold(0, u64::saturating_add)
    }

    /// Whether no key has a value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The node to which a key belongs: that of [`DistMap::owner`].
    pub fn owner(&self, key: &K) -> NodeId {
        NodeId::at(owner(key, self.parts.len()))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// [`MapError::Access`] if the entry cannot be had, as from a map that is freed, and
    /// [`MapError::Malformed`] if what another node has there is no entry.
    #[track_caller]
    pub fn get(&self, w: &Worker<'_>, key: &K) -> Mapped<Option<V>> {
        self.read(w, self.place(key), key)
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    /// As [`get`](FrozenMap::get).
    #[track_caller]
    pub fn contains_key(&self, w: &Worker<'_>, key: &K) -> Mapped<bool> {
        Ok(self.get(w, key)?.is_some())
    }

    /// The values of all these keys, in their order; `None` for a key without a value. The entries
    /// of other nodes that are not here come in two rounds of messages to each of them, or without
    /// a message where its memory is seen.
    ///
    /// # Errors
    /// As [`get`](FrozenMap::get).
    #[track_caller]
    pub fn get_all(&self, w: &Worker<'_>, keys: &[K]) -> Mapped<Vec<Option<V>>> {
        let places: Vec<Place> = keys.iter().map(|key| self.place(key)).collect();
        self.bring(w, &places)?;
        let values = places.iter().zip(keys);
        let values = values.map(|(place, key)| self.read(w, *place, key));
        values.collect()
    }

    /// Frees the entries, and not the map of which they are. One node calls it, when no node reads
    /// them any more.
    ///
    /// # Errors
    /// [`MapError::Access`] if they were freed before.
    #[track_caller]
    pub fn free(self, w: &mut Worker<'_>) -> Mapped<()> {
        for part in self.parts {
            w.free((part.begins, part.bytes))?;
        }
        Ok(())
    }

    /// The entries of a node. A handle comes from another node, and may lack them.
    #[inline]
    #[track_caller]
    fn part(&self, w: &Worker<'_>, node: usize) -> Mapped<&Part> {
        let part = self.parts.get(node);
        part.ok_or_else(|| malformed(w, node, "the handle has no entries of that node".to_owned()))
    }

    fn place(&self, key: &K) -> Place {
        let node = owner(key, self.parts.len());
        let buckets = self.parts.get(node).map_or(1, |part| part.buckets);
        (node, place_among(key, buckets))
    }

    /// Brings the entries of other nodes' buckets here.
    #[track_caller]
    fn bring(&self, w: &Worker<'_>, places: &[Place]) -> Mapped<()> {
        let me = w.node().index();
        let others = places.iter().filter(|(node, _)| *node != me);
        let mut others: Vec<Place> = others.copied().collect();
        others.sort_unstable();
        others.dedup();
        let mut rows: Vec<Place> = others.iter().map(|it| (it.0, it.1 / BUCKETS)).collect();
        rows.dedup();
        let rows = rows
            .iter()
            .filter_map(|it| self.parts.get(it.0)?.begins.get(it.1));
        w.prefetch(rows.collect::<Vec<_>>())?;
        let mut blocks: Vec<Place> = Vec::new();
        for place in others {
            let bytes = self.row(w, place)?;
            if !bytes.is_empty() {
                let of_bucket = bytes.start / BYTES..bytes.end.div_ceil(BYTES);
                blocks.extend(of_bucket.map(|block| (place.0, block)));
            }
        }
        blocks.sort_unstable();
        blocks.dedup();
        let blocks = blocks
            .iter()
            .filter_map(|it| self.parts.get(it.0)?.bytes.get(it.1));
        Ok(w.prefetch(blocks.collect::<Vec<_>>())?)
    }

    /// The bytes of a bucket, of which there are as many.
    #[inline]
    #[track_caller]
    fn row(&self, w: &Worker<'_>, (node, bucket): Place) -> Mapped<Range<usize>> {
        let part = self.part(w, node)?;
        let Some(begins) = part.begins.get(bucket / BUCKETS) else {
            return Err(malformed(w, node, "there is no such bucket".to_owned()));
        };
        let begins = begins.try_get(w)?;
        let at = bucket % BUCKETS;
        let row = begins[at] as usize..begins[at + 1] as usize;
        if row.start > row.end || row.end > part.bytes.len() * BYTES {
            let cause = format!("a bucket of the bytes {} to {}", row.start, row.end);
            return Err(malformed(w, node, cause));
        }
        Ok(row)
    }

    #[inline]
    #[track_caller]
    fn read(&self, w: &Worker<'_>, place: Place, key: &K) -> Mapped<Option<V>> {
        let row = self.row(w, place)?;
        if row.is_empty() {
            return Ok(None);
        }
        let (first, last) = (row.start / BYTES, (row.end - 1) / BYTES);
        let part = self.part(w, place.0)?;
        let joined;
        let mut bytes = if first == last {
            &part.bytes.at(first).try_get(w)?[row.start % BYTES..(row.end - 1) % BYTES + 1]
        } else {
            let mut blocks = Vec::with_capacity((last + 1 - first) * BYTES);
            for block in first..=last {
                blocks.extend_from_slice(part.bytes.at(block).try_get(w)?);
            }
            joined = blocks;
            &joined[row.start - first * BYTES..row.end - first * BYTES]
        };
        while !bytes.is_empty() {
            let next = decode_next::<(K, V)>(&mut bytes);
            let (known, value) = next.map_err(|cause| malformed(w, place.0, cause.to_string()))?;
            if known == *key {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}

/// The entries of a node in the order of their buckets.
struct Rows {
    begins: Vec<u32>,
    bytes: Vec<u8>,
    entries: u64,
}

impl Rows {
    /// Those of this node; the words of what is wrong, which all nodes hear.
    #[track_caller]
    fn of<K: DistHash, V: ByValue>(
        w: &mut Worker<'_>,
        map: DistMap<K, V>,
    ) -> Mapped<Result<Rows, String>> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        let mut refused = None;
        // The hash of each key, from which its bucket follows once all are counted.
        map.for_each_own(w, |key, value| {
            if refused.is_none() {
                refused = encode_to("an entry", &(key, value), &mut bytes).err();
                ends.push((place_among(key, usize::MAX), bytes.len()));
            }
        })?;
        if let Some(refused) = refused {
            return Ok(Err(refused.to_string()));
        }
        if u32::try_from(bytes.len()).is_err() {
            let bytes = bytes.len();
            return Ok(Err(format!(
                "its entries are {bytes} bytes, and the most is 4294967295; use more nodes"
            )));
        }
        Ok(Ok(Rows::sorted(&bytes, &ends)))
    }

    /// Those of these entries, each with its place among the most buckets and where it ends.
    fn sorted(bytes: &[u8], ends: &[(usize, usize)]) -> Rows {
        let buckets = ends.len().next_power_of_two();
        let mut begins = vec![0_u32; buckets + 1];
        let begun = [0].into_iter().chain(ends.iter().map(|(_, end)| *end));
        let entries = ends.iter().zip(begun);
        let entries = entries.map(|((place, end), begins)| (place & (buckets - 1), begins..*end));
        for (bucket, entry) in entries.clone() {
            begins[bucket + 1] += entry.len() as u32;
        }
        for bucket in 1..=buckets {
            begins[bucket] += begins[bucket - 1];
        }
        let (mut next, mut sorted) = (begins.clone(), vec![0; bytes.len()]);
        for (bucket, entry) in entries {
            let place = next[bucket] as usize;
            sorted[place..place + entry.len()].copy_from_slice(&bytes[entry.clone()]);
            next[bucket] += entry.len() as u32;
        }
        Rows {
            begins,
            bytes: sorted,
            entries: ends.len() as u64,
        }
    }

    #[track_caller]
    fn publish(self, w: &mut Worker<'_>) -> Part {
        let buckets = self.begins.len() - 1;
        let begins = w.alloc_range_with(
            buckets.div_ceil(BUCKETS),
            |block, to: &mut [u32; BUCKETS + 1]| {
                let of_block = &self.begins[block * BUCKETS..];
                let of_block = &of_block[..of_block.len().min(to.len())];
                to[..of_block.len()].copy_from_slice(of_block);
            },
        );
        let blocks = self.bytes.len().div_ceil(BYTES);
        let bytes = w.alloc_range_with(blocks, |block, to: &mut [u8; BYTES]| {
            let of_block = &self.bytes[block * BYTES..];
            let of_block = &of_block[..of_block.len().min(BYTES)];
            to[..of_block.len()].copy_from_slice(of_block);
        });
        Part {
            buckets,
            begins,
            bytes,
            entries: self.entries,
        }
    }
}

#[cold]
#[track_caller]
fn malformed(w: &Worker<'_>, from: usize, cause: String) -> MapError {
    MapError::Malformed {
        from: NodeId::at(from),
        node: w.node(),
        site: CallSite::caller(),
        cause,
    }
}

#[cfg(test)]
mod tests;
