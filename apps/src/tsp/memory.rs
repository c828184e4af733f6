//! TreadMarks' TSP over raw memory (MultiView, section 4.3): a shared pool of tours under a lock.
//! The length of the shortest tour is read without one, and changed under another.
//!
//! Each tour is a minipage of 148 bytes, or tours lie one behind the other and minipages are cut
//! from them that are 128 or 256 bytes. Whoever finds a shorter tour pushes the new length to all
//! nodes, the one line that MultiView's authors changed.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

use dhole::memory::{self, SharedCell, SharedRow, SharedRows, TryAccess};
use dhole::{Error, Lock, Result, Worker};

use super::pool::{HEAD_WORDS, MOST_CITIES, Place, Pool, Store, TOUR_WORDS, TOURS};
use super::search::{Known, Search, Tour};
use super::{Found, Pooled, Problem, Raw};
use crate::raw::Granularity;
use crate::solve::Steps;

/// Of the pool, and of the shortest tour.
const LOCKS: [Lock; 2] = [Lock::numbered(0), Lock::numbered(1)];

/// Units of work after which a node that searches hears of what others have found, if it is not
/// told at once: in a simulation.
const UNITS_BETWEEN_LOOKS: u64 = 20_000;

/// The words of the pool, as this node sees them.
struct Words<'id> {
    tours: Vec<&'id [AtomicU32]>,
    /// Words in a row of `tours`.
    row_words: usize,
    queue: &'id [AtomicU32],
    free: &'id [AtomicU32],
    head: &'id [AtomicU32],
}

impl Words<'_> {
    fn at(&self, place: Place) -> &AtomicU32 {
        match place {
            Place::Tour(at, word) => {
                let word = at * TOUR_WORDS + word;
                &self.tours[word / self.row_words][word % self.row_words]
            }
            Place::Queue(at, word) => &self.queue[at * 2 + word],
            Place::Free(at) => &self.free[at],
            Place::Head(word) => &self.head[word],
        }
    }
}

impl Store for Words<'_> {
    fn load(&self, place: Place) -> u32 {
        self.at(place).load(Relaxed)
    }

    fn store(&self, place: Place, word: u32) {
        self.at(place).store(word, Relaxed);
    }
}

struct Shared<'a, 'id> {
    w: &'a mut Worker<'id>,
    /// The length of the shortest tour.
    bound: SharedCell<u64>,
    /// The same, as this node sees it.
    shortest: &'id AtomicU64,
    best: SharedRow<u32>,
    pushes: bool,
    /// Units of work since this node looked.
    units: u64,
}

impl Known for Shared<'_, '_> {
    type Error = Error;

    fn shortest(&self) -> u64 {
        self.shortest.load(Relaxed)
    }

    fn is_shorter(&mut self, length: u64) -> Result<bool> {
        if self.units >= UNITS_BETWEEN_LOOKS {
            self.units = 0;
            self.w.pause()?;
        }
        Ok(length < self.shortest.try_load(Relaxed)?)
    }

    fn found(&mut self, tour: Tour) -> Result<()> {
        let Shared {
            bound,
            best,
            pushes,
            ..
        } = *self;
        LOCKS[1].with(self.w, |w| {
            let length = tour.length;
            let shortest = bound.get(w);
            if length < shortest.try_load(Relaxed)? {
                let cells = best.cells(w).iter().zip(&tour.cities);
                cells.for_each(|(cell, city)| cell.store(*city, Relaxed));
                shortest.store(length, SeqCst);
                if pushes {
                    bound.push(w)?;
                }
            }
            Ok(())
        })
    }

    fn worked(&mut self, units: u64) {
        self.w.work(units);
        self.units += units;
    }
}

/// The rows of the tours.
fn tours(w: &mut Worker<'_>, pooled: Pooled) -> Result<SharedRows<u32>> {
    let bytes = TOUR_WORDS * 4;
    Ok(match (pooled.granularity, pooled.unit as usize) {
        (Granularity::Page, _) => memory::alloc_contiguous(w, TOURS, TOUR_WORDS)?,
        (Granularity::Adaptive, unit) => {
            memory::alloc_groups(w, (TOURS * bytes).div_ceil(unit), unit / 4)?
        }
        (Granularity::Allocation, unit) => {
            memory::alloc_rows(w, (TOURS * bytes).div_ceil(unit), unit / 4)?
        }
    })
}

/// The shortest tour. The result is complete on node 0.
///
/// # Errors
/// Those of the runtime; and that the run has no raw memory.
pub fn solve(
    w: &mut Worker<'_>,
    problem: &Problem,
    pooled: Pooled,
    steps: &mut Steps,
) -> Result<Found> {
    let mut search = Search::by_length(&problem.instance);
    let greedy = search.greedy();
    let (tours, queue, free, head, bound, best) = w.once(|w| {
        Ok((
            tours(w, pooled)?,
            memory::alloc_contiguous::<u32>(w, 1, TOURS * 2)?,
            memory::alloc_contiguous::<u32>(w, 1, TOURS)?,
            memory::alloc_rows::<u32>(w, 1, HEAD_WORDS)?,
            memory::alloc::<u64>(w)?,
            memory::alloc_rows::<u32>(w, 1, MOST_CITIES)?.row(0),
        ))
    })?;
    let words = Words {
        tours: (0..tours.count())
            .map(|row| tours.row(row).cells(w))
            .collect(),
        row_words: tours.row_len(),
        queue: queue.row(0).cells(w),
        free: free.row(0).cells(w),
        head: head.row(0).cells(w),
    };
    let pool = Pool {
        store: words,
        depth: pooled.depth,
    };
    let first = w.node().index() == 0;
    if first {
        pool.begin();
        bound.get(w).store(greedy.length, Relaxed);
        let cells = best.cells(w).iter().zip(&greedy.cities);
        cells.for_each(|(cell, city)| cell.store(*city, Relaxed));
    }
    w.barrier()?;
    steps.begin(w)?;
    let mut done = None;
    let shortest = bound.get(w);
    loop {
        let taken = LOCKS[0].with(w, |w| {
            let (taken, units) = pool.take(&mut search, done, shortest.load(Relaxed));
            w.work(units);
            Ok(taken)
        })?;
        let Some((at, beginning)) = taken else {
            break;
        };
        let mut shared = Shared {
            w,
            bound,
            shortest,
            best,
            pushes: pooled.push,
            units: 0,
        };
        search.run(&beginning, &mut shared)?;
        done = Some(at);
    }
    steps.end(w)?;
    let expanded = w.reduce(search.expanded, |sum, more| sum + more)?;
    let (mut tour, mut raw) = (greedy, None);
    if first {
        tour.length = shortest.load(Relaxed);
        let cells = best.cells(w).iter().zip(&mut tour.cities);
        cells.for_each(|(cell, city)| *city = cell.load(Relaxed));
        raw = Some(Raw {
            usage: memory::usage(w)?,
        });
    }
    w.barrier()?;
    Ok(Found {
        tour,
        nodes_expanded: expanded.unwrap_or(search.expanded),
        stopped: false,
        raw,
    })
}
