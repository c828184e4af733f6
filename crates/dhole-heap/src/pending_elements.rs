//! Elements that came in a shared call, of which the worker is told at its end.

use dhole_model::{Elements, Oid, RangeSet};
use rustc_hash::FxHashMap;

/// The buffers of as many arrays are kept for the next call, so a warm miss allocates nothing.
const MOST_KEPT: usize = 8;

/// Elements by array. Neighbours are joined, so a call that brings alternate elements, one after
/// the other, costs what it brings, and not the square of it.
#[derive(Default)]
pub(crate) struct PendingElements {
    arrays: FxHashMap<Oid, RangeSet>,
    some: bool,
}

impl PendingElements {
    pub(crate) fn is_empty(&self) -> bool {
        !self.some
    }

    pub(crate) fn push(&mut self, elements: Elements) {
        let ranges = self.arrays.entry(elements.array).or_default();
        ranges.set(elements.range(), true);
        self.some |= elements.count > 0;
    }

    /// Whether any of these elements are among them.
    pub(crate) fn meets(&self, elements: Elements) -> bool {
        let ranges = self.arrays.get(&elements.array);
        ranges.is_some_and(|ranges| ranges.meets(elements.range()))
    }

    /// Whether all of these elements are among them.
    pub(crate) fn has(&self, elements: Elements) -> bool {
        let ranges = self.arrays.get(&elements.array);
        ranges.is_some_and(|ranges| ranges.covers(elements.range()))
    }

    /// All of them, range by range.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Elements> {
        self.arrays.iter().flat_map(|(array, ranges)| {
            let all = ranges.of(0..u64::MAX);
            let pending = all.filter(|(_, is_in)| *is_in);
            pending.map(|(range, _)| Elements::new(*array, range))
        })
    }

    /// Takes all of them out.
    pub(crate) fn clear(&mut self) {
        match self.arrays.len() > MOST_KEPT {
            true => self.arrays.clear(),
            false => self.arrays.values_mut().for_each(RangeSet::clear),
        }
        self.some = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternate_elements_become_one_range_and_each_array_is_told_of() {
        let part = |array, range| Elements::new(Oid(array), range);
        let mut pending = PendingElements::default();
        assert!(pending.is_empty() && !pending.meets(part(64, 0..9)));
        (0..100)
            .step_by(2)
            .for_each(|i| pending.push(part(64, i..i + 1)));
        assert!(pending.has(part(64, 4..5)) && pending.meets(part(64, 3..5)));
        assert!(!pending.has(part(64, 4..6)) && !pending.meets(part(128, 4..5)));
        (0..100)
            .skip(1)
            .step_by(2)
            .for_each(|i| pending.push(part(64, i..i + 1)));
        pending.push(part(128, 7..8));
        // Nothing is searched but the ranges of one array.
        let segments = pending.arrays.get(&Oid(64)).map(RangeSet::len);
        assert_eq!((segments, pending.arrays.len()), (Some(2), 2));
        let mut all: Vec<_> = pending.iter().collect();
        all.sort_unstable();
        assert_eq!(all, [part(64, 0..100), part(128, 7..8)]);
        pending.clear();
        assert!(pending.is_empty() && pending.iter().next().is_none());
        assert!(!pending.meets(part(64, 0..100)));
    }
}
