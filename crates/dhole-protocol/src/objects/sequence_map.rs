//! A map whose keys are the numbers of calls. Numbers are given out one after the other, and most
//! calls are over soon: so all but a few old ones lie in a row.

use dhole_model::SortedMap;
use std::collections::VecDeque;

/// So many numbers lie in the row at most.
const MOST_IN_A_ROW: u64 = 1024;
/// So many are taken out until the row is made shorter: what was just written is not moved then.
const OUT_AT_ONCE: u32 = 32;

/// Things by number; cheap where most of the numbers are near each other.
#[derive(Clone, Debug)]
pub struct SequenceMap<T> {
    /// The number of the first in the row. It never becomes less.
    first: u64,
    row: VecDeque<Option<T>>,
    /// How many there are in the row.
    in_a_row: usize,
    /// How many were taken out of it since it was made shorter.
    out: u32,
    /// All those of lower numbers.
    old: SortedMap<u64, T>,
}

impl<T> Default for SequenceMap<T> {
    fn default() -> SequenceMap<T> {
        SequenceMap {
            first: 0,
            row: VecDeque::new(),
            in_a_row: 0,
            out: 0,
            old: SortedMap::new(),
        }
    }
}

impl<T> SequenceMap<T> {
    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.in_a_row + self.old.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn place(&self, number: u64) -> Option<usize> {
        let place = number.checked_sub(self.first)? as usize;
        (place < self.row.len()).then_some(place)
    }

    /// That of this number.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&T> {
        match self.place(number) {
            Some(place) => self.row[place].as_ref(),
            None => self.old.get(&number),
        }
    }

    /// That of this number, to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        match self.place(number) {
            Some(place) => self.row[place].as_mut(),
            None => self.old.get_mut(&number),
        }
    }

    /// Whether there is one of this number.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        self.get(number).is_some()
    }

    /// From here on this is the one of this number.
    #[inline]
    pub fn insert(&mut self, number: u64, it: T) {
        self.insert_with(number, || it);
    }

    /// The same, made where it is to lie: its place is there before it is.
    #[inline(always)]
    pub fn insert_with(&mut self, number: u64, make: impl FnOnce() -> T) {
        if self.in_a_row == 0 {
            self.row.clear();
            self.first = self.first.max(number);
        }
        let Some(place) = number.checked_sub(self.first) else {
            self.old.insert(number, make());
            return;
        };
        if place == self.row.len() as u64 && place < MOST_IN_A_ROW {
            self.row.push_back(None);
            if let Some(last) = self.row.back_mut() {
                last.get_or_insert_with(make);
                self.in_a_row += 1;
            }
            return;
        }
        self.insert_farther(number, make());
    }

    /// Not behind the last one, or too far from the first.
    #[cold]
    fn insert_farther(&mut self, number: u64, it: T) {
        while number - self.first >= MOST_IN_A_ROW
            && let Some(first) = self.row.pop_front()
        {
            if let Some(old) = first {
                self.old.insert(self.first, old);
                self.in_a_row -= 1;
            }
            self.first += 1;
        }
        if self.row.is_empty() {
            self.first = number;
        }
        let place = (number - self.first) as usize;
        if place >= self.row.len() {
            self.row.resize_with(place + 1, || None);
        }
        self.in_a_row += usize::from(self.row[place].replace(it).is_none());
    }

    /// Takes out the one of this number.
    #[inline]
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let Some(place) = self.place(number) else {
            return self.old.remove(&number);
        };
        let it = self.row[place].take()?;
        self.is_out();
        Some(it)
    }

    /// Drops the one of this number where it lies.
    #[inline]
    pub fn forget(&mut self, number: u64) {
        let Some(place) = self.place(number) else {
            self.old.remove(&number);
            return;
        };
        if self.row[place].is_some() {
            self.row[place] = None;
            self.is_out();
        }
    }

    /// One is in the row no longer.
    #[inline]
    fn is_out(&mut self) {
        self.in_a_row -= 1;
        self.out += 1;
        if self.out >= OUT_AT_ONCE {
            self.shorten();
        }
    }

    /// Nothing but what is there lies at the beginning of the row.
    #[inline(never)]
    fn shorten(&mut self) {
        self.out = 0;
        while let Some(None) = self.row.front() {
            self.row.pop_front();
            // No number is higher than the highest.
            self.first = self.first.saturating_add(1);
        }
    }

    /// All of them, the lowest number first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let old = self.old.iter().map(|(number, it)| (*number, it));
        let number = |place| self.first + place as u64;
        let row = self.row.iter().enumerate();
        old.chain(row.filter_map(move |(place, it)| Some((number(place), it.as_ref()?))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// How the next number differs from the last one.
    fn steps() -> impl Strategy<Value = Vec<(i64, bool)>> {
        let step = prop_oneof![Just(1_i64), -3..4_i64, -2000..3000_i64, Just(1 << 40)];
        prop::collection::vec((step, any::<bool>()), 0..300)
    }

    #[test]
    fn the_highest_number_is_one_as_others() {
        let mut sequence = SequenceMap::default();
        sequence.insert(u64::MAX - 1, 1);
        for again in 0..2 {
            sequence.insert(u64::MAX, 2 + again);
            assert_eq!(sequence.iter().last(), Some((u64::MAX, &(2 + again))));
            sequence.forget(u64::MAX - 1);
            assert_eq!(sequence.remove(u64::MAX), Some(2 + again));
            assert!(sequence.is_empty() && !sequence.contains(u64::MAX));
        }
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in steps()) {
            let (mut sequence, mut map) = (SequenceMap::default(), BTreeMap::new());
            let mut number = 0_u64;
            for (at, (step, inserts)) in steps.into_iter().enumerate() {
                number = number.saturating_add_signed(step);
                match inserts {
                    true => {
                        sequence.insert(number, at);
                        map.insert(number, at);
                    }
                    false if at % 2 == 0 => {
                        prop_assert_eq!(sequence.remove(number), map.remove(&number));
                    }
                    false => {
                        sequence.forget(number);
                        map.remove(&number);
                    }
                }
                prop_assert_eq!(sequence.get(number), map.get(&number));
                prop_assert_eq!(sequence.get_mut(number), map.get_mut(&number));
                prop_assert_eq!(sequence.len(), map.len());
                prop_assert_eq!(sequence.is_empty(), map.is_empty());
                prop_assert!(sequence.row.len() as u64 <= MOST_IN_A_ROW);
            }
            prop_assert!(sequence.iter().eq(map.iter().map(|(number, it)| (*number, it))));
        }
    }
}
