//! Two kernels of the *bale* collection: a histogram, and a gather. A table of 8-byte elements lies
//! on all nodes; each node has random indices into all of it. The batched calls of arrays do both.

use std::sync::atomic::{AtomicU64, Ordering};

use bench::Outcome;
use dhole::{Array, Result, Worker};
use dhole_model::SplitMix64;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::lap::{self, Lap};
use crate::{Program, Took};

const TABLE: usize = 1 << 20;
const INDICES: usize = 10_000_000;
/// Indices of one call.
const BATCH: usize = 1 << 16;

pub const HISTOGRAM: Program = Program {
    name: "histogram",
    about: "10,000,000 counts in a table of 1,048,576, twice",
    phases: &["first", "second"],
    sequential: count_alone,
    also_sequential: &[],
    rayon: count_with_rayon,
    shared: &[("add_all", count_shared)],
};

pub const GATHER: Program = Program {
    name: "gather",
    about: "10,000,000 look-ups in a table of 1,048,576, twice",
    phases: &["first", "second"],
    sequential: look_alone,
    also_sequential: &[],
    rayon: look_with_rayon,
    shared: &[("gather", look_shared)],
};

/// The indices of one of so many workers.
fn indices(worker: usize, workers: usize) -> Vec<usize> {
    let of = |i: usize| SplitMix64::after(i as u64) as usize % TABLE;
    (INDICES * worker / workers..INDICES * (worker + 1) / workers)
        .map(of)
        .collect()
}

fn value(i: usize) -> u64 {
    SplitMix64::after(!(i as u64))
}

/// A number that says what is in a table.
fn digest(first: usize, counts: impl Iterator<Item = u64>) -> u64 {
    let all = (first..).zip(counts);
    all.fold(0, |sum, (i, count)| {
        sum.wrapping_add(count.wrapping_mul(value(i)))
    })
}

fn took(laps: [Lap; 2], found: u64) -> Took {
    Took {
        laps: laps.to_vec(),
        found,
    }
}

fn count_alone() -> Outcome<Took> {
    let (indices, mut counts) = (indices(0, 1), vec![0_u64; TABLE]);
    let mut count = || indices.iter().for_each(|i| counts[*i] += 1);
    let ((), first) = lap::alone(&mut count);
    let ((), second) = lap::alone(&mut count);
    Ok(took([first, second], digest(0, counts.into_iter())))
}

fn count_with_rayon() -> Outcome<Took> {
    let indices = indices(0, 1);
    let counts: Vec<AtomicU64> = (0..TABLE).map(|_| AtomicU64::new(0)).collect();
    let count = || {
        let each = indices.par_iter();
        each.for_each(|i| {
            counts[*i].fetch_add(1, Ordering::Relaxed);
        });
    };
    let ((), first) = lap::by_others(count);
    let ((), second) = lap::by_others(count);
    let counts = counts.into_iter().map(AtomicU64::into_inner);
    Ok(took([first, second], digest(0, counts)))
}

/// A table of which each node has written its part; the node's part.
fn table(
    w: &mut Worker<'_>,
    value: impl Fn(usize) -> u64,
) -> Result<(Array<u64>, std::ops::Range<usize>)> {
    let table = w.once(|w| Ok(w.alloc_array::<u64>(TABLE)))?;
    let (me, nodes) = (w.node().index(), w.nodes());
    let part = TABLE * me / nodes..TABLE * (me + 1) / nodes;
    let elements = table.slice_mut(w, part.clone()).iter_mut();
    elements
        .zip(part.clone())
        .for_each(|(element, i)| *element = value(i));
    w.barrier()?;
    Ok((table, part))
}

fn count_shared(w: &mut Worker<'_>) -> Result<Took> {
    let indices = indices(w.node().index(), w.nodes());
    let (table, part) = table(w, |_| 0)?;
    let ones = vec![1; BATCH];
    let count = |w: &mut Worker<'_>| {
        for batch in indices.chunks(BATCH) {
            table.add_all(w, batch, &ones[..batch.len()])?;
        }
        Ok(())
    };
    let ((), first) = lap::together(w, count)?;
    let ((), second) = lap::together(w, count)?;
    let found = digest(part.start, table.slice(w, part).iter().copied());
    let found = w.all_reduce(found, u64::wrapping_add)?;
    Ok(took([first, second], found))
}

fn look_alone() -> Outcome<Took> {
    let indices = indices(0, 1);
    let table: Vec<u64> = (0..TABLE).map(value).collect();
    let look = || indices.iter().map(|i| table[*i]).collect::<Vec<u64>>();
    let (found, first) = lap::alone(look);
    let (again, second) = lap::alone(look);
    Ok(took([first, second], sum(&found).wrapping_add(sum(&again))))
}

fn look_with_rayon() -> Outcome<Took> {
    let indices = indices(0, 1);
    let table: Vec<u64> = (0..TABLE).map(value).collect();
    let look = || indices.par_iter().map(|i| table[*i]).collect::<Vec<u64>>();
    let (found, first) = lap::by_others(look);
    let (again, second) = lap::by_others(look);
    Ok(took([first, second], sum(&found).wrapping_add(sum(&again))))
}

fn sum(found: &[u64]) -> u64 {
    found.iter().fold(0, |sum, value| sum.wrapping_add(*value))
}

fn look_shared(w: &mut Worker<'_>) -> Result<Took> {
    let indices = indices(w.node().index(), w.nodes());
    let (table, _) = table(w, value)?;
    let look = |w: &mut Worker<'_>| Ok(table.gather(w, &indices));
    let (found, first) = lap::together(w, look)?;
    let (again, second) = lap::together(w, look)?;
    let found = sum(&found).wrapping_add(sum(&again));
    let found = w.all_reduce(found, u64::wrapping_add)?;
    Ok(took([first, second], found))
}
