use std::ops::Range;

use crate::SortedMap;

/// A state for each place of a long sequence in which most neighbours are alike. Places with equal
/// state form a *segment*. Memory and time depend on the number of segments, not of places.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Segments<S> {
    /// The start of each segment, which ends where the next one starts. Places before the first
    /// have the default; so does the last segment, as a rule.
    starts: SortedMap<u64, S>,
}

impl<S: Copy + Eq + Default> Segments<S> {
    /// All places have the default.
    pub const fn new() -> Segments<S> {
        Segments {
            starts: SortedMap::new(),
        }
    }

    /// The number of segments, without the first, which has the default.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether all places have the default.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Gives all places the default. Room for a few segments is kept.
    pub fn clear(&mut self) {
        self.starts.clear();
    }

    /// The state of a place.
    pub fn at(&self, place: u64) -> S {
        let segment = self.starts.range(..=place).next_back();
        segment.map_or_else(S::default, |(_, state)| *state)
    }

    /// The segments of `range`, cut off at its ends, in order.
    pub fn of(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, S)> {
        let mut inner = self.starts.range(range.start.saturating_add(1)..);
        let mut next = (range.start, self.at(range.start));
        std::iter::from_fn(move || {
            let (start, state) = next;
            if start >= range.end {
                return None;
            }
            let (end, after) = inner
                .next()
                .map_or((range.end, state), |(end, s)| (*end, *s));
            let end = end.min(range.end);
            next = (end, after);
            Some((start..end, state))
        })
    }

    /// The segment around `place`, cut off at the ends of `within`.
    pub fn around(&self, place: u64, within: Range<u64>) -> Range<u64> {
        let before = self.starts.range(..=place).next_back();
        let after = self.starts.range(place.saturating_add(1)..).next();
        let start = before.map_or(0, |(start, _)| *start).max(within.start);
        start..after.map_or(u64::MAX, |(end, _)| *end).min(within.end)
    }

    /// Calls `f` with each segment of `range`; `f` may change its state.
    pub fn update(&mut self, range: Range<u64>, mut f: impl FnMut(Range<u64>, &mut S)) {
        if range.is_empty() {
            return;
        }
        self.split(range.start);
        self.split(range.end);
        let mut segments = self.starts.range_mut(range.clone()).peekable();
        while let Some((start, state)) = segments.next() {
            let end = segments.peek().map_or(range.end, |(end, _)| **end);
            f(*start..end, state);
        }
        self.join(range);
    }

    /// Sets the state of all of `range`.
    pub fn set(&mut self, range: Range<u64>, state: S) {
        self.update(range, |_, old| *old = state);
    }

    /// Makes a segment start at `place`.
    fn split(&mut self, place: u64) {
        let state = self.at(place);
        self.starts.get_or_insert_with(place, || state);
    }

    /// Joins equal neighbours, from the segment before `range` to that after it.
    fn join(&mut self, range: Range<u64>) {
        let before = self.starts.range(..range.start).next_back();
        let mut last = before.map_or_else(S::default, |(_, state)| *state);
        let mut from = range.start;
        while let Some(start) = self.like_before(from, range.end, &mut last) {
            self.starts.remove(&start);
            from = start;
        }
    }

    /// The first segment that starts in `from..=to` and equals the one before it, which is `last`.
    fn like_before(&self, from: u64, to: u64, last: &mut S) -> Option<u64> {
        let starts = self
            .starts
            .range(from..)
            .take_while(|(start, _)| **start <= to);
        let mut alike = starts.filter(|(_, state)| std::mem::replace(last, **state) == **state);
        alike.next().map(|(start, _)| *start)
    }
}

/// A set of places, by ranges.
pub type RangeSet = Segments<bool>;

impl RangeSet {
    /// Whether all of `range` is in the set.
    pub fn covers(&self, range: Range<u64>) -> bool {
        self.of(range).all(|(_, is_in)| is_in)
    }

    /// Whether any of `range` is in the set.
    pub fn meets(&self, range: Range<u64>) -> bool {
        self.of(range).any(|(_, is_in)| is_in)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLACES: u64 = 40;

    fn ranges() -> impl Strategy<Value = Vec<(Range<u64>, u8)>> {
        let range = (0..PLACES, 0..12_u64).prop_map(|(start, n)| start..(start + n).min(PLACES));
        proptest::collection::vec((range, 0..3_u8), 0..30)
    }

    fn sound(segments: &Segments<u8>) {
        let states: Vec<u8> = segments.starts.values().copied().collect();
        assert_ne!(states.first(), Some(&0), "the default needs no segment");
        assert!(
            states.windows(2).all(|pair| pair[0] != pair[1]),
            "{segments:?}"
        );
    }

    proptest! {
        #[test]
        fn segments_are_what_is_said_of_each_place_alone(changes in ranges()) {
            let (mut segments, mut places) = (Segments::new(), [0_u8; PLACES as usize]);
            for (range, by) in changes {
                segments.update(range.clone(), |_, state| *state = (*state + by) % 3);
                for place in range.clone() {
                    places[place as usize] = (places[place as usize] + by) % 3;
                }
                sound(&segments);
                let mut seen = range.start;
                for (part, state) in segments.of(range.clone()) {
                    prop_assert_eq!(part.start, seen);
                    prop_assert!(part.clone().all(|at| places[at as usize] == state));
                    seen = part.end;
                }
                prop_assert_eq!(seen, range.end.max(range.start));
            }
            for at in 0..PLACES {
                prop_assert_eq!(segments.at(at), places[at as usize]);
            }
            let within = 2..PLACES - 2;
            for at in within.clone() {
                let alike = segments.around(at, within.clone());
                let is_like = |i: u64| places[i as usize] == places[at as usize];
                prop_assert!(alike.contains(&at) && alike.clone().all(is_like));
                prop_assert!(alike.start == within.start || !is_like(alike.start - 1));
                prop_assert!(alike.end == within.end || !is_like(alike.end));
            }
        }

        #[test]
        fn a_range_set_holds_the_places_that_were_put_into_it(changes in ranges()) {
            let (mut set, mut places) = (RangeSet::new(), [false; PLACES as usize]);
            for (range, by) in changes {
                set.set(range.clone(), by > 0);
                range.clone().for_each(|at| places[at as usize] = by > 0);
                let of_range = || range.clone().map(|at| places[at as usize]);
                prop_assert_eq!(set.covers(range.clone()), of_range().all(|x| x));
                prop_assert_eq!(set.meets(range.clone()), of_range().any(|x| x));
                prop_assert_eq!(set.is_empty(), places.iter().all(|x| !x));
            }
        }
    }
}
