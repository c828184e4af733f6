//! A random permutation is made, as the kernel *random permutation* of the collection bale does.

use std::sync::atomic::{AtomicU32, Ordering};

use bench::Outcome;
use dhole::{Array, Result, Worker};
use dhole_model::SplitMix64;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::lap::{self, Lap};
use crate::{Program, Took};

const NUMBERS: usize = 4_000_000;

pub const PROGRAM: Program = Program {
    name: "permutation",
    about: "4,000,000 numbers in random order",
    phases: &["permute"],
    sequential,
    also_sequential: &[],
    rayon: with_rayon,
    shared: &[("all_to_all", by_all_to_all)],
};

/// What all ways find: how many different numbers a permutation has.
fn took(permutation: &[u32], lap: Lap) -> Took {
    let mut is_there = vec![false; NUMBERS];
    permutation
        .iter()
        .for_each(|number| is_there[*number as usize] = true);
    let found = is_there.into_iter().filter(|it| *it).count() as u64;
    Took {
        laps: vec![lap],
        found,
    }
}

/// Fisher and Yates.
fn shuffle(numbers: &mut [u32], random: &mut SplitMix64) {
    for end in (1..numbers.len()).rev() {
        numbers.swap(end, random.below(end as u64 + 1) as usize);
    }
}

fn sequential() -> Outcome<Took> {
    let (permutation, lap) = lap::alone(|| {
        let mut all: Vec<u32> = (0..NUMBERS as u32).collect();
        shuffle(&mut all, &mut SplitMix64(1));
        all
    });
    Ok(took(&permutation, lap))
}

/// Darts, as in bale: each number is thrown at a board of twice as many places until it hits a free
/// one.
fn with_rayon() -> Outcome<Took> {
    const FREE: u32 = u32::MAX;
    let (permutation, lap) = lap::by_others(|| -> Vec<u32> {
        let free = || AtomicU32::new(FREE);
        let board: Vec<AtomicU32> = std::iter::repeat_with(free).take(2 * NUMBERS).collect();
        (0..NUMBERS as u32).into_par_iter().for_each(|number| {
            let mut random = SplitMix64(number.into());
            let is_hit = |place: &AtomicU32| {
                let (order, failed) = (Ordering::Relaxed, Ordering::Relaxed);
                place.compare_exchange(FREE, number, order, failed).is_ok()
            };
            while !is_hit(&board[random.below(board.len() as u64) as usize]) {}
        });
        let places = board.into_iter().map(AtomicU32::into_inner);
        places.filter(|it| *it != FREE).collect()
    });
    Ok(took(&permutation, lap))
}

/// Each number goes to a node that chance chooses, which shuffles those that came (Rao, 1961;
/// Sandelius, 1962). The nodes write them behind each other into an array.
fn by_all_to_all(w: &mut Worker<'_>) -> Result<Took> {
    let all: Array<u32> = w.once(|w| Ok(w.alloc_array(NUMBERS)))?;
    let ((), lap) = lap::together(w, |w| {
        let (me, nodes) = (w.node().index(), w.nodes());
        let mut random = SplitMix64(me as u64);
        let mut parts = vec![Vec::with_capacity(NUMBERS / nodes); nodes];
        for number in NUMBERS * me / nodes..NUMBERS * (me + 1) / nodes {
            parts[random.below(nodes as u64) as usize].push(number as u32);
        }
        let mut mine = w.all_to_all(parts)?.concat();
        shuffle(&mut mine, &mut random);
        let before = w.exclusive_scan(mine.len(), |one, next| one + next)?;
        all.write_all(w, before.unwrap_or(0), &mine);
        Ok(())
    })?;
    Ok(took(all.slice(w, ..), lap))
}
