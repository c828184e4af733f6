use std::collections::BTreeMap;
use std::ops::Range;

/// A set of numbers, kept as ranges that do not touch. It is small if its members are consecutive,
/// however many they are.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct IdSet {
    ranges: BTreeMap<u64, u64>,
}

impl IdSet {
    /// Adds numbers, some of which may be members.
    pub fn add(&mut self, Range { mut start, mut end }: Range<u64>) {
        if start >= end {
            return;
        }
        if let Some((&before, &its_end)) = self.ranges.range(..=start).next_back()
            && its_end >= start
        {
            (start, end) = (before, end.max(its_end));
        }
        while let Some((&next, &its_end)) = self.ranges.range(start..=end).next() {
            end = end.max(its_end);
            self.ranges.remove(&next);
        }
        self.ranges.insert(start, end);
    }

    /// Removes numbers, some of which may be no members.
    pub fn remove(&mut self, Range { start, end }: Range<u64>) {
        if start >= end {
            return;
        }
        while let Some((&first, &its_end)) = self.ranges.range(..end).next_back()
            && its_end > start
        {
            self.ranges.remove(&first);
            if first < start {
                self.ranges.insert(first, start);
            }
            if its_end > end {
                self.ranges.insert(end, its_end);
            }
        }
    }

    /// Whether all these numbers are members.
    pub fn covers(&self, numbers: Range<u64>) -> bool {
        let before = self.ranges.range(..=numbers.start).next_back();
        numbers.is_empty() || before.is_some_and(|(_, end)| *end >= numbers.end)
    }

    /// Removes the first `count` consecutive members, and returns the first of them.
    pub fn take(&mut self, count: u64) -> Option<u64> {
        let fits = |(start, end): &(&u64, &u64)| *end - *start >= count;
        let (&start, &end) = self.ranges.iter().find(fits)?;
        self.ranges.remove(&start);
        if start + count < end {
            self.ranges.insert(start + count, end);
        }
        Some(start)
    }

    /// The ranges, in order.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = Range<u64>> {
        self.ranges.iter().map(|(start, end)| *start..*end)
    }

    /// The members among these numbers.
    pub fn within(&self, Range { start, end }: Range<u64>) -> IdSet {
        let mut within = IdSet::default();
        let first = self.ranges.range(..start).next_back();
        let rest = self.ranges.range(start..end.max(start));
        for (from, to) in first.into_iter().chain(rest) {
            within.add(start.max(*from)..end.min(*to));
        }
        within
    }

    /// How many members there are.
    pub fn count(&self) -> u64 {
        self.ranges().map(|range| range.end - range.start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        let mut set = IdSet::default();
        for range in [4..6, 8..9, 1..2, 6..8, 2..2] {
            set.add(range);
        }
        assert_eq!(set.ranges().collect::<Vec<_>>(), [1..2, 4..9]);
        assert!(set.covers(4..9) && set.covers(5..6) && !set.covers(3..5) && !set.covers(8..10));
        set.add(0..20);
        assert_eq!((set.ranges().len(), set.count()), (1, 20));
    }

    #[test]
    fn what_is_removed_may_lie_across_ranges() {
        let mut set = IdSet::default();
        set.add(2..6);
        set.add(8..10);
        set.add(12..20);
        set.remove(4..14);
        set.remove(16..17);
        set.remove(3..3);
        assert_eq!(set.ranges().collect::<Vec<_>>(), [2..4, 14..16, 17..20]);
    }

    #[test]
    fn what_lies_within_is_cut_at_both_ends() {
        let mut set = IdSet::default();
        set.add(2..6);
        set.add(8..10);
        set.add(12..20);
        let within = |range| set.within(range).ranges().collect::<Vec<_>>();
        assert_eq!(within(4..13), [4..6, 8..10, 12..13]);
        assert_eq!(within(6..8), []);
        assert_eq!(within(14..15), std::slice::from_ref(&(14..15)));
    }

    #[test]
    fn what_is_taken_is_no_member_any_more() {
        let mut set = IdSet::default();
        set.add(3..4);
        set.add(10..14);
        assert_eq!(set.take(3), Some(10));
        assert_eq!(set.take(3), None);
        assert_eq!(set.take(1), Some(3));
        assert!(set.ranges().eq(std::iter::once(13..14)));
    }
}
