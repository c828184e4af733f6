//! The search of a pool on one processor.

use std::cell::RefCell;
use std::convert::Infallible;

use super::pool::{HEAD_WORDS, Place, Pool, Store, TOUR_WORDS, TOURS};
use super::search::{Known, Search, Tour};
use super::{Found, Pooled, Problem};

/// The words of a pool.
#[derive(Debug)]
pub struct Words {
    tours: RefCell<Vec<u32>>,
    queue: RefCell<Vec<u32>>,
    free: RefCell<Vec<u32>>,
    head: RefCell<[u32; HEAD_WORDS]>,
}

impl Default for Words {
    fn default() -> Words {
        Words {
            tours: RefCell::new(vec![0; TOURS * TOUR_WORDS]),
            queue: RefCell::new(vec![0; TOURS * 2]),
            free: RefCell::new(vec![0; TOURS]),
            head: RefCell::default(),
        }
    }
}

impl Store for Words {
    fn load(&self, place: Place) -> u32 {
        match place {
            Place::Tour(at, word) => self.tours.borrow()[at * TOUR_WORDS + word],
            Place::Queue(at, word) => self.queue.borrow()[at * 2 + word],
            Place::Free(at) => self.free.borrow()[at],
            Place::Head(word) => self.head.borrow()[word],
        }
    }

    fn store(&self, place: Place, word: u32) {
        match place {
            Place::Tour(at, of) => self.tours.borrow_mut()[at * TOUR_WORDS + of] = word,
            Place::Queue(at, of) => self.queue.borrow_mut()[at * 2 + of] = word,
            Place::Free(at) => self.free.borrow_mut()[at] = word,
            Place::Head(of) => self.head.borrow_mut()[of] = word,
        }
    }
}

struct Alone {
    best: Tour,
    units: u64,
}

impl Known for Alone {
    type Error = Infallible;

    fn shortest(&self) -> u64 {
        self.best.length
    }

    fn is_shorter(&mut self, length: u64) -> Result<bool, Infallible> {
        Ok(length < self.best.length)
    }

    fn found(&mut self, tour: Tour) -> Result<(), Infallible> {
        self.best = tour;
        Ok(())
    }

    fn worked(&mut self, units: u64) {
        self.units += units;
    }
}

/// The shortest tour, and the units of work that it took to find it.
pub fn solve(problem: &Problem, pooled: Pooled) -> (Found, u64) {
    let mut search = Search::by_length(&problem.instance);
    let pool = Pool {
        store: Words::default(),
        depth: pooled.depth,
    };
    let mut alone = Alone {
        best: search.greedy(),
        units: 0,
    };
    pool.begin();
    let mut done = None;
    loop {
        let (taken, units) = pool.take(&mut search, done, alone.best.length);
        alone.units += units;
        let Some((at, beginning)) = taken else {
            break;
        };
        let Ok(()) = search.run(&beginning, &mut alone);
        done = Some(at);
    }
    let found = Found {
        tour: alone.best,
        nodes_expanded: search.expanded,
        stopped: false,
        raw: None,
    };
    (found, alone.units)
}
