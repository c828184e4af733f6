//! TreadMarks' pool of tours, as its TSP has it: beginnings of tours, the most promising of which
//! is taken first, and split until so few cities are left that a node searches the rest by itself.
//!
//! A pool is words in some [`Store`], so that the sequential version and the one over raw memory
//! are the same program. A tour has 37 words, 148 bytes, of which TreadMarks' `TourElement`
//! consists.

use super::search::Search;

/// Words of a tour: 32 cities, how many there are, what they take, and the lower bound.
pub const TOUR_WORDS: usize = 37;
/// Tours in the pool (TreadMarks' `MAX_NUM_TOURS`). With 12 bytes for each in the queue and the
/// list of free ones, and the distances of 32 cities, which are not shared here, that makes
/// MultiView's 785 KB. A tour is not split where there is no room for what that makes.
pub const TOURS: usize = 5_000;
/// Most cities.
pub const MOST_CITIES: usize = 32;

const COUNT: usize = 32;
const BOUND: usize = 34;

/// Where a word of a pool is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Word `1` of tour `0`.
    Tour(usize, usize),
    /// Word `1` of entry `0` of the queue: its bound, or its tour.
    Queue(usize, usize),
    /// An entry of the list of free tours.
    Free(usize),
    /// How many entries the queue has, how many the list, how many tours were ever in use, and
    /// whether nothing is left to do.
    Head(usize),
}

/// Words that all share.
pub trait Store {
    /// A word.
    fn load(&self, place: Place) -> u32;
    /// Changes a word.
    fn store(&self, place: Place, word: u32);
}

/// The words of `Head`.
const QUEUED: Place = Place::Head(0);
const FREE: Place = Place::Head(1);
const USED: Place = Place::Head(2);
/// How many words those are.
pub const HEAD_WORDS: usize = 3;

/// What a search of a tour taken from the pool begins with.
pub type Beginning = Vec<u32>;

/// A pool of tours. Whoever calls holds its lock.
#[derive(Debug)]
pub struct Pool<S> {
    /// The words.
    pub store: S,
    /// Cities that a node searches by itself (TreadMarks' recursion level).
    pub depth: usize,
}

impl<S: Store> Pool<S> {
    /// Begins with the tour that is only the first city.
    pub fn begin(&self) {
        self.store.store(Place::Tour(0, 0), 0);
        self.store.store(Place::Tour(0, COUNT), 1);
        self.store.store(USED, 1);
        self.put(0, 0);
    }

    /// Takes the most promising tour that is to be searched, and splits those before it
    /// (`get_tour`). `done` is the tour that was taken before, which is free from here on. Returns
    /// the tour and its cities, and the units of work that splitting took; nothing where no tour is
    /// left that can be shorter than `shortest`.
    pub fn take(
        &self,
        search: &mut Search<'_>,
        done: Option<usize>,
        shortest: u64,
    ) -> (Option<(usize, Beginning)>, u64) {
        if let Some(done) = done {
            self.free(done);
        }
        let mut units = 0;
        while let Some((at, bound)) = self.next() {
            if u64::from(bound) >= shortest {
                // Nor can any other.
                self.store.store(QUEUED, 0);
                break;
            }
            let beginning = self.beginning(at);
            let left = search.cities() - beginning.len();
            if left <= self.depth || self.room() < left {
                return (Some((at, beginning)), units);
            }
            units += self.split(search, (at, beginning), shortest);
        }
        (None, units)
    }

    /// Replaces a tour by those that go on to one more city (`split_tour`).
    fn split(
        &self,
        search: &mut Search<'_>,
        (at, mut beginning): (usize, Beginning),
        shortest: u64,
    ) -> u64 {
        let mut units = 0;
        let left = (search.cities() - beginning.len() - 1) as u64;
        for city in search.next_cities(&beginning) {
            beginning.push(city);
            let bound = search.lower_bound(&beginning);
            units += 3 * left * left;
            if bound < shortest {
                let new = self.new_tour();
                for (place, city) in beginning.iter().enumerate() {
                    self.store.store(Place::Tour(new, place), *city);
                }
                self.store
                    .store(Place::Tour(new, COUNT), beginning.len() as u32);
                self.put(new, u32::try_from(bound).unwrap_or(u32::MAX)); // still a lower bound
            }
            beginning.pop();
        }
        self.free(at);
        units
    }

    fn beginning(&self, at: usize) -> Beginning {
        let count = self.store.load(Place::Tour(at, COUNT)) as usize;
        let cities = 0..count.min(MOST_CITIES);
        cities
            .map(|place| self.store.load(Place::Tour(at, place)))
            .collect()
    }

    /// Tours that are not in use.
    fn room(&self) -> usize {
        let used = self.store.load(USED) as usize;
        self.store.load(FREE) as usize + TOURS.saturating_sub(used)
    }

    /// A tour that is not in use; there is room.
    fn new_tour(&self) -> usize {
        if let Some(last) = self.store.load(FREE).checked_sub(1) {
            self.store.store(FREE, last);
            return self.store.load(Place::Free(last as usize)) as usize;
        }
        let used = self.store.load(USED);
        self.store.store(USED, used + 1);
        used as usize
    }

    fn free(&self, at: usize) {
        let count = self.store.load(FREE);
        self.store.store(Place::Free(count as usize), at as u32);
        self.store.store(FREE, count + 1);
    }

    fn entry(&self, place: usize) -> (u32, u32) {
        let of = |word| self.store.load(Place::Queue(place, word));
        (of(0), of(1))
    }

    fn set_entry(&self, place: usize, (bound, at): (u32, u32)) {
        self.store.store(Place::Queue(place, 0), bound);
        self.store.store(Place::Queue(place, 1), at);
    }

    /// Puts a tour into the queue, a heap.
    fn put(&self, at: usize, bound: u32) {
        self.store.store(Place::Tour(at, BOUND), bound);
        let count = self.store.load(QUEUED) as usize;
        self.store.store(QUEUED, count as u32 + 1);
        let new = (bound, at as u32);
        let mut place = count;
        while place > 0 {
            let above = (place - 1) / 2;
            let entry = self.entry(above);
            if entry <= new {
                break;
            }
            self.set_entry(place, entry);
            place = above;
        }
        self.set_entry(place, new);
    }

    /// Takes the tour of the least bound out of the queue.
    fn next(&self) -> Option<(usize, u32)> {
        let count = self.store.load(QUEUED).checked_sub(1)? as usize;
        self.store.store(QUEUED, count as u32);
        let (bound, at) = self.entry(0);
        let last = self.entry(count);
        let mut place = 0;
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(count);
            let least = children.map(|child| (self.entry(child), child)).min();
            match least {
                Some((entry, child)) if entry < last => {
                    self.set_entry(place, entry);
                    place = child;
                }
                _ => break,
            }
        }
        if count > 0 {
            self.set_entry(place, last);
        }
        Some((at as usize, bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tsp::pooled::Words;

    #[test]
    fn tours_come_by_their_bounds() {
        let pool = Pool {
            store: Words::default(),
            depth: 0,
        };
        let bounds = [5, 3, 9, 1, 7, 3, 8, 2, 6, 4];
        for (at, bound) in bounds.into_iter().enumerate() {
            pool.put(at, bound);
        }
        let mut taken = Vec::new();
        while let Some((at, bound)) = pool.next() {
            assert_eq!(bounds[at], bound);
            taken.push(bound);
        }
        assert_eq!(taken, [1, 2, 3, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(pool.next(), None);
    }
}
