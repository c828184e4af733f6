//! Pushed copies of elements, which are kept aside until they are read.

use std::collections::BTreeMap;
use std::ops::Range;

use dhole_model::{Elements, Oid, OidRange};

use crate::{ElementsRefused, HeapMut};

/// Copies of elements, packed: pieces of arrays that do not overlap.
#[derive(Default)]
pub(crate) struct KeptElements {
    arrays: BTreeMap<Oid, BTreeMap<u64, Piece>>,
}

/// The bytes of some elements that follow on each other.
struct Piece {
    count: u64,
    bytes: Vec<u8>,
}

/// Lets a piece begin at `place` if one has it.
fn split(pieces: &mut BTreeMap<u64, Piece>, place: u64) {
    let Some((&first, piece)) = pieces.range_mut(..place).next_back() else {
        return;
    };
    let before = place - first;
    if before >= piece.count {
        return;
    }
    let each = piece.bytes.len() / piece.count as usize;
    let rest = Piece {
        count: piece.count - before,
        bytes: piece.bytes.split_off(before as usize * each),
    };
    piece.count = before;
    pieces.insert(place, rest);
}

/// Takes what is kept of a range out, in order.
fn take(pieces: &mut BTreeMap<u64, Piece>, range: Range<u64>) -> BTreeMap<u64, Piece> {
    split(pieces, range.start);
    split(pieces, range.end);
    let mut taken = pieces.split_off(&range.start);
    pieces.append(&mut taken.split_off(&range.end));
    taken
}

impl KeptElements {
    fn take(&mut self, elements: Elements) -> BTreeMap<u64, Piece> {
        let Some(pieces) = self.arrays.get_mut(&elements.array) else {
            return BTreeMap::new();
        };
        let taken = take(pieces, elements.range());
        if pieces.is_empty() {
            self.arrays.remove(&elements.array);
        }
        taken
    }

    /// The arrays among these ids were freed.
    pub(crate) fn forget(&mut self, ids: OidRange) {
        ids.remove_from(&mut self.arrays);
    }
}

impl HeapMut<'_> {
    /// Keeps packed bytes of elements aside that nobody has asked for, in place of older ones.
    pub fn keep_elements(&mut self, elements: Elements, bytes: &[u8]) {
        self.discard_kept_elements(elements);
        let pieces = self.heap.kept_elements.arrays.entry(elements.array);
        let piece = Piece {
            count: elements.count,
            bytes: bytes.to_vec(),
        };
        pieces.or_default().insert(elements.first, piece);
    }

    /// Drops what was kept aside of elements.
    pub fn discard_kept_elements(&mut self, elements: Elements) {
        self.heap.kept_elements.take(elements);
    }

    /// Makes what was kept aside the node's valid copy of absent elements, all of which were.
    ///
    /// # Errors
    /// As [`install_elements`](HeapMut::install_elements); nothing is kept any longer.
    pub fn install_kept_elements(&mut self, elements: Elements) -> Result<(), ElementsRefused> {
        let mut pieces = self.heap.kept_elements.take(elements).into_values();
        let mut bytes = pieces.next().map_or(Vec::new(), |first| first.bytes);
        pieces.for_each(|piece| bytes.extend_from_slice(&piece.bytes));
        self.install_elements(elements, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_where_others_begin_or_end() {
        let mut pieces = BTreeMap::new();
        let bytes = (0..20).collect();
        pieces.insert(10, Piece { count: 10, bytes });
        let taken = take(&mut pieces, 13..15);
        assert_eq!(taken[&13].bytes, [6, 7, 8, 9]);
        let left = pieces.iter().map(|(at, p)| (*at, p.count, p.bytes.len()));
        let left: Vec<_> = left.collect();
        assert_eq!(left, [(10, 3, 6), (15, 5, 10)]);
        assert!(take(&mut pieces, 13..15).is_empty());
        let all = take(&mut pieces, 0..100);
        assert_eq!((all.len(), pieces.len()), (2, 0));
    }
}
