//! The rows of a matrix are sorted so that it becomes upper triangular, as the kernel *toposort* of
//! the collection bale does: in each round the rows with one column left take it out of all others.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bench::Outcome;
use dhole::collections::DistGraph;
use dhole::{Result, Worker};
use dhole_model::SplitMix64;
use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::lap::{self, Lap};
use crate::{Program, Took};

const ROWS: u32 = 200_000;
/// Entries of a row beside that on the diagonal, at most.
const BESIDE: usize = 8;

pub const PROGRAM: Program = Program {
    name: "toposort",
    about: "a matrix of 200,000 rows, 9 entries in each at most",
    phases: &["build", "sort"],
    sequential,
    also_sequential: &[],
    rayon: with_rayon,
    shared: &[("DistGraph", over_dist_graph)],
};

/// A matrix that is upper triangular in some order of its rows and columns: the columns of each
/// row.
fn matrix() -> Vec<Vec<u32>> {
    let mut random = SplitMix64(3);
    let [rows, columns] = [(); 2].map(|()| {
        let mut order: Vec<u32> = (0..ROWS).collect();
        for end in (1..order.len()).rev() {
            order.swap(end, random.below(end as u64 + 1) as usize);
        }
        order
    });
    let mut matrix = vec![Vec::new(); ROWS as usize];
    for at in 0..ROWS {
        let behind = u64::from(ROWS - at - 1);
        let mut entries: Vec<u32> = (0..BESIDE)
            .filter(|_| behind > 0)
            .map(|_| at + 1 + random.below(behind.max(1)) as u32)
            .collect();
        entries.push(at);
        entries.sort_unstable();
        entries.dedup();
        let entries = entries.into_iter().map(|column| columns[column as usize]);
        matrix[rows[at as usize] as usize] = entries.collect();
    }
    matrix
}

/// The rows that have an entry in each column.
fn transposed(matrix: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut rows_of = vec![Vec::new(); matrix.len()];
    for (row, columns) in (0..).zip(matrix) {
        for column in columns {
            rows_of[*column as usize].push(row);
        }
    }
    rows_of
}

/// The number of columns that a row has left, and their sum, which is the last one's number.
fn left(columns: &[u32]) -> (u32, u64) {
    let sum = columns.iter().map(|column| u64::from(*column)).sum();
    (columns.len() as u32, sum)
}

/// What all ways find: each row counts with its round.
fn took(laps: [Lap; 2], found: u64) -> Took {
    Took {
        laps: laps.to_vec(),
        found,
    }
}

fn sequential() -> Outcome<Took> {
    let matrix = matrix();
    let (rows_of, build) = lap::alone(|| transposed(&matrix));
    let (found, sort) = lap::alone(|| {
        let mut rows: Vec<(u32, u64)> = matrix.iter().map(|it| left(it)).collect();
        let is_single = |row: &u32| rows[*row as usize].0 == 1;
        let mut frontier: Vec<u32> = (0..ROWS).filter(is_single).collect();
        let (mut round, mut found) = (0, 0);
        while !frontier.is_empty() {
            round += 1;
            found += round * frontier.len() as u64;
            let mut next = Vec::new();
            for row in frontier {
                let column = rows[row as usize].1;
                for &other in &rows_of[column as usize] {
                    let (count, sum) = &mut rows[other as usize];
                    (*count, *sum) = (*count - 1, *sum - column);
                    if *count == 1 {
                        next.push(other);
                    }
                }
            }
            frontier = next;
        }
        found
    });
    Ok(took([build, sort], found))
}

fn with_rayon() -> Outcome<Took> {
    let matrix = matrix();
    let (rows_of, build) = lap::by_others(|| transposed(&matrix));
    let (found, sort) = lap::by_others(|| {
        let atomic = |(count, sum)| (AtomicU32::new(count), AtomicU64::new(sum));
        let rows: Vec<_> = matrix.par_iter().map(|it| atomic(left(it))).collect();
        let is_single = |row: &u32| rows[*row as usize].0.load(Ordering::Relaxed) == 1;
        let mut frontier: Vec<u32> = (0..ROWS).into_par_iter().filter(is_single).collect();
        let (mut round, mut found) = (0, 0);
        while !frontier.is_empty() {
            round += 1;
            found += round * frontier.len() as u64;
            let column = |row: &u32| rows[*row as usize].1.load(Ordering::Relaxed);
            // Before any of them is changed.
            let columns: Vec<u64> = frontier.par_iter().map(column).collect();
            let (rows, rows_of) = (&rows, &rows_of);
            let takes = |column: u64| {
                let others = rows_of[column as usize].iter().copied();
                others.filter(move |other| {
                    let (count, sum) = &rows[*other as usize];
                    sum.fetch_sub(column, Ordering::Relaxed);
                    count.fetch_sub(1, Ordering::Relaxed) == 2
                })
            };
            frontier = columns.into_par_iter().flat_map_iter(takes).collect();
        }
        found
    });
    Ok(took([build, sort], found))
}

/// A graph leads from each column to the rows that have an entry there. A node keeps what is left
/// of its own rows. In each round it tells the owners of columns which are taken, and these tell
/// the owners of their rows.
fn over_dist_graph(w: &mut Worker<'_>) -> Result<Took> {
    let matrix = matrix();
    let (graph, build) = lap::together(w, |w| {
        let mine = (0..ROWS).skip(w.node().index()).step_by(w.nodes());
        let entries = mine.flat_map(|row| {
            let columns = matrix[row as usize].iter();
            columns.map(move |column| (*column, row))
        });
        Ok(DistGraph::from_edges(w, ROWS, entries)?)
    })?;
    let own = graph.own(w.node());
    let owner = |vertex| {
        graph
            .owner(vertex)
            .expect("each row and column is a vertex")
    };
    let (found, sort) = lap::together(w, |w| {
        let mine = &matrix[own.start as usize..own.end as usize];
        let mut rows: Vec<(u32, u64)> = mine.iter().map(|it| left(it)).collect();
        let single = (own.clone())
            .zip(&rows)
            .filter(|(_, (count, _))| *count == 1);
        let mut frontier: Vec<u32> = single.map(|(row, _)| row).collect();
        let (mut round, mut found) = (0, 0);
        loop {
            round += 1;
            found += round * frontier.len() as u64;
            let column = |row: &u32| rows[(row - own.start) as usize].1 as u32;
            let mut taken = vec![Vec::new(); w.nodes()];
            for column in frontier.iter().map(column) {
                taken[owner(column).index()].push(column);
            }
            let goes_on = !frontier.is_empty();
            let parts = taken.into_iter().map(|part| (part, goes_on)).collect();
            let came: Vec<(Vec<u32>, bool)> = w.all_to_all(parts)?;
            if came.iter().all(|(_, goes_on)| !goes_on) {
                return Ok(w.all_reduce(found, |one, next| one + next)?);
            }
            let local = graph.local(w)?;
            let mut entries = vec![Vec::new(); w.nodes()];
            for column in came.iter().flat_map(|(part, _)| part) {
                for row in local.neighbours(*column) {
                    entries[owner(row.to).index()].push((row.to, *column));
                }
            }
            let came: Vec<Vec<(u32, u32)>> = w.all_to_all(entries)?;
            frontier.clear();
            for (row, column) in came.into_iter().flatten() {
                let (count, sum) = &mut rows[(row - own.start) as usize];
                (*count, *sum) = (*count - 1, *sum - u64::from(column));
                if *count == 1 {
                    frontier.push(row);
                }
            }
        }
    })?;
    Ok(took([build, sort], found))
}
