use dhole_wire::Wire;
use serde::{Deserialize, Serialize};
use std::fmt;

use crate::SortedMap;

/// Objects in a chunk of object ids. All objects of a chunk are of one type.
pub const CHUNK: u64 = 64;

/// The globally unique id of a shared object, and the object's place in every node's handle table
/// (DOSA, section 3.2). Ids are never reused. So a stale id leads to an empty handle and never to
/// another object. 0 names no object.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, Wire,
)]
pub struct Oid(pub u64);

impl Oid {
    /// The number of the chunk that this id lies in.
    #[inline]
    pub const fn chunk(self) -> u64 {
        self.0 / CHUNK
    }

    /// The place of this id within its chunk.
    #[inline]
    pub const fn slot(self) -> usize {
        (self.0 % CHUNK) as usize
    }

    /// The id `n` places further on.
    #[inline]
    pub const fn plus(self, n: u64) -> Oid {
        Oid(self.0 + n)
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {:#x}", self.0)
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "o{:#x}", self.0)
    }
}

/// Objects with consecutive ids.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, Wire,
)]
pub struct OidRange {
    /// The first id.
    pub first: Oid,
    /// How many ids, at least 1.
    pub count: u32,
}

impl OidRange {
    /// The range that holds one object.
    pub const fn one(oid: Oid) -> OidRange {
        OidRange {
            first: oid,
            count: 1,
        }
    }

    /// The last id.
    pub const fn last(self) -> Oid {
        Oid(self.first.0 + self.count as u64 - 1)
    }

    /// Whether the object is in the range.
    pub const fn contains(self, oid: Oid) -> bool {
        oid.0 >= self.first.0 && oid.0 - self.first.0 < self.count as u64
    }

    /// The ids of the range, in order.
    pub fn iter(self) -> impl Iterator<Item = Oid> {
        (self.first.0..self.first.0 + u64::from(self.count)).map(Oid)
    }

    /// Removes the entries of these ids.
    pub fn remove_from<V>(self, map: &mut SortedMap<Oid, V>) {
        while let Some((&oid, _)) = map.range(self.first..=self.last()).next() {
            map.remove(&oid);
        }
    }

    /// Appends `oid` to a list of ranges. The last range grows if `oid` follows on it.
    pub fn push(ranges: &mut Vec<OidRange>, oid: Oid) {
        match ranges.last_mut() {
            Some(last)
                if last.first.0 + u64::from(last.count) == oid.0 && last.count < u32::MAX =>
            {
                last.count += 1
            }
            _ => ranges.push(OidRange::one(oid)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_range_are_removed_and_no_others() {
        let mut map = [3, 4, 6, 7]
            .map(|oid| (Oid(oid), ()))
            .into_iter()
            .collect::<SortedMap<_, _>>();
        let range = OidRange {
            first: Oid(4),
            count: 3,
        };
        range.remove_from(&mut map);
        assert!(map.keys().eq(&[Oid(3), Oid(7)]));
    }

    #[test]
    fn consecutive_ids_share_a_range() {
        let mut ranges = Vec::new();
        for oid in [4, 5, 6, 9, 11, 12] {
            OidRange::push(&mut ranges, Oid(oid));
        }
        let ids: Vec<u64> = ranges.iter().flat_map(|r| r.iter()).map(|o| o.0).collect();
        assert_eq!(ids, [4, 5, 6, 9, 11, 12]);
        assert_eq!(ranges.len(), 3);
    }
}
