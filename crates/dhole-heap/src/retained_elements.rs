//! Pushed copies of elements, which are kept aside until they are read.

use std::collections::BTreeMap;
use std::ops::Range;

use dhole_model::{Elements, Oid, OidRange, SortedMap};

/// Copies of elements, packed: pieces of arrays that do not overlap.
#[derive(Default)]
pub(crate) struct RetainedElements {
    arrays: SortedMap<Oid, BTreeMap<u64, Piece>>,
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

/// Takes what is kept of a range out, in order. It costs nothing for the pieces beside the range.
fn take(pieces: &mut BTreeMap<u64, Piece>, range: Range<u64>) -> Vec<Piece> {
    split(pieces, range.start);
    split(pieces, range.end);
    let mut taken = Vec::new();
    while let Some((&first, _)) = pieces.range(range.clone()).next() {
        taken.extend(pieces.remove(&first));
    }
    taken
}

impl RetainedElements {
    /// Keeps packed bytes of elements, in place of older ones.
    pub(crate) fn put(&mut self, elements: Elements, bytes: &[u8]) {
        self.discard(elements);
        let piece = Piece {
            count: elements.count,
            bytes: bytes.to_vec(),
        };
        let pieces = self.arrays.get_or_default(elements.array);
        pieces.insert(elements.first, piece);
    }

    /// Drops what is kept of elements.
    pub(crate) fn discard(&mut self, elements: Elements) {
        self.take_pieces(elements);
    }

    /// Takes out what is kept of elements, one piece after the other.
    pub(crate) fn take(&mut self, elements: Elements) -> Vec<u8> {
        let mut pieces = self.take_pieces(elements).into_iter();
        let mut bytes = pieces.next().map_or(Vec::new(), |first| first.bytes);
        pieces.for_each(|piece| bytes.extend_from_slice(&piece.bytes));
        bytes
    }

    fn take_pieces(&mut self, elements: Elements) -> Vec<Piece> {
        let Some(pieces) = self.arrays.get_mut(&elements.array) else {
            return Vec::new();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_where_others_begin_or_end() {
        let mut pieces = BTreeMap::new();
        let bytes = (0..20).collect();
        pieces.insert(10, Piece { count: 10, bytes });
        let taken = take(&mut pieces, 13..15);
        let taken: Vec<_> = taken.into_iter().map(|piece| piece.bytes).collect();
        assert_eq!(taken, [[6, 7, 8, 9]]);
        let left = pieces.iter().map(|(at, p)| (*at, p.count, p.bytes.len()));
        let left: Vec<_> = left.collect();
        assert_eq!(left, [(10, 3, 6), (15, 5, 10)]);
        assert!(take(&mut pieces, 13..15).is_empty());
        let all = take(&mut pieces, 0..100);
        assert_eq!((all.len(), pieces.len()), (2, 0));
    }
}
