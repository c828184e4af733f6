//! IS over raw memory.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use dhole::memory::{self, SharedRows};
use dhole::{Result, Worker};

use super::{Found, Problem, UNITS_EACH};
use crate::solve::Steps;

/// Ranks the keys on the cluster of `w`. The result is complete on node 0.
///
/// # Errors
/// Those of the runtime; and that the run has no raw memory.
pub fn solve(w: &mut Worker<'_>, problem: &Problem, steps: &mut Steps) -> Result<Found> {
    let (node, nodes) = (w.node().index(), w.nodes());
    let region = problem.values.div_ceil(nodes);
    let shared = w.once(|w| Ok(problem.cut.rows::<u32>(w, nodes, region)?))?;
    let part = problem.part(node, nodes);
    let mut keys: Vec<u32> = part.clone().map(|index| problem.key(index)).collect();
    let mut found = Found::nothing(problem);
    let mut last = Vec::new();
    steps.begin(w)?;
    for ranking in 0..problem.rankings {
        problem.change(&mut keys, part.clone(), ranking);
        let mut own = vec![0; region * nodes];
        keys.iter().for_each(|key| own[*key as usize] += 1);
        w.work(keys.len() as u64 * UNITS_EACH);
        for phase in 0..nodes {
            let place = (node + phase) % nodes;
            let counts = shared.row(place).cells(w);
            let own = &own[place * region..][..region];
            add(counts, own, phase == 0);
            w.work(region as u64 * UNITS_EACH);
            w.barrier()?;
        }
        let starts = Problem::starts(&all(w, shared, problem)?);
        if node == 0 {
            found.ranked(problem, ranking, &starts);
        }
        if ranking + 1 == problem.rankings {
            found.ranks = Problem::ranks(&keys, part.start, &starts);
            last = starts;
        }
        w.barrier()?;
    }
    steps.end(w)?;
    let ranks = w.reduce(found.ranks, u64::wrapping_add)?;
    found.ranks = ranks.unwrap_or(found.ranks);
    if node == 0 {
        found.ordered(problem, &last);
        found.usage = Some(memory::usage(w)?);
    }
    Ok(found)
}

/// Adds counts to shared ones, or is the first to count.
fn add(counts: &[AtomicU32], own: &[u32], first: bool) {
    for (count, own) in counts.iter().zip(own) {
        if first {
            count.store(*own, Relaxed);
        } else {
            // A load before the store would fault for a copy to read first.
            count.fetch_add(*own, Relaxed);
        }
    }
}

/// The counts of all values.
fn all(w: &Worker<'_>, shared: SharedRows<u32>, problem: &Problem) -> Result<Vec<u32>> {
    if problem.prefetch {
        for region in 0..shared.count() {
            shared.row(region).prefetch(w)?;
        }
    }
    let regions = (0..shared.count()).map(|region| shared.row(region).cells(w));
    let counts = regions.flatten().map(|count| count.load(Relaxed));
    Ok(counts.take(problem.values).collect())
}
