//! Integer sort, after NAS's kernel IS as TreadMarks has it: it ranks many small numbers, again
//! and again (MultiView, section 4.3). Over raw memory.
//!
//! A ranking counts how often each value occurs. Each node counts its own keys, and then adds its
//! counts to the shared ones, which are cut into as many regions as there are nodes, each a
//! minipage. In phase `p` node `i` adds to region `i + p`, so that no two nodes want the same one.
//! A barrier ends each phase, and one more the ranking, when all have read all counts.
//!
//! With `n` nodes a ranking takes `n + 1` barriers. Each node faults to write `n` regions, for each
//! was another's last, and to read `n - 1`. Node 0 allocates all, and writes its own region for the
//! first time without asking.

mod memory;
mod options;
mod sequential;

pub use memory::solve;
pub use options::Options;

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::program::Losses;
use crate::random::SplitMix;
use crate::solve::Program;

/// What is to be ranked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Problem {
    /// How many keys, at least twice as many as rankings.
    pub keys: usize,
    /// How many values a key may have: 0 to this, exclusively.
    pub values: usize,
    /// How often the keys are ranked.
    pub rankings: usize,
    /// Chooses the keys.
    pub seed: u64,
    /// Whether a node asks for all regions before it reads the first.
    pub prefetch: bool,
}

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Found {
    /// Tells the counts of all rankings from others.
    pub counts: u64,
    /// Tells the ranks of all keys in the last ranking from others.
    pub ranks: u64,
}

/// The cost of one key that is counted, or one count that is added, in units of `Worker::work`.
const UNITS_EACH: u64 = 1;

impl Problem {
    /// The keys of node `node` of `nodes`.
    fn part(&self, node: usize, nodes: usize) -> Range<usize> {
        self.keys * node / nodes..self.keys * (node + 1) / nodes
    }

    /// A key before the first ranking: the mean of four random numbers, as NAS has it.
    fn key(&self, index: usize) -> u32 {
        let bits = SplitMix::new(self.seed).at(index as u64);
        let four = [0, 16, 32, 48].map(|shift| bits >> shift & 0xffff);
        let sum: u64 = four.iter().sum();
        ((sum * self.values as u64) >> 18) as u32
    }

    /// Changes two keys before a ranking, as NAS does, so that no two rankings are the same. `keys`
    /// are those of a part.
    fn change(&self, keys: &mut [u32], part: Range<usize>, ranking: usize) {
        let last = self.values as u32 - 1;
        let small = ranking as u32 % self.values as u32;
        for (index, value) in [(ranking, small), (ranking + self.rankings, last - small)] {
            if part.contains(&index) {
                keys[index - part.start] = value;
            }
        }
    }

    /// How many keys are smaller, for each value.
    fn starts(counts: &[u32]) -> Vec<u64> {
        let before = |sum: &mut u64, count: &u32| {
            let start = *sum;
            *sum += u64::from(*count);
            Some(start)
        };
        counts.iter().scan(0, before).collect()
    }

    /// The part of `ranks` of these keys, of which the first has this index.
    fn ranks(keys: &[u32], first: usize, starts: &[u64]) -> u64 {
        let each = keys.iter().enumerate().map(|(place, key)| {
            let odd = 2 * (first + place) as u64 + 1;
            starts[*key as usize].wrapping_mul(odd)
        });
        each.fold(0, u64::wrapping_add)
    }

    /// `counts` after one more ranking.
    fn counted(before: u64, starts: &[u64]) -> u64 {
        let each = starts.iter().zip(0_u64..);
        let sum = each.fold(0_u64, |sum, (start, value)| {
            sum.wrapping_add(start.wrapping_mul(2 * value + 1))
        });
        before.rotate_left(1).wrapping_add(sum)
    }
}

/// The program.
pub const PROGRAM: Program<Problem, Found> = Program {
    name: "is",
    losses: Losses::End,
    sequential: sequential::solve,
    shared: memory::solve,
    differ: |alone, found| (alone != found).then(|| format!("{alone:?} and {found:?}")),
    result,
    keep: |_, _| Ok(()),
};

fn result(problem: &Problem, found: &Found) -> Value {
    json!({
        "keys": problem.keys,
        "values": problem.values,
        "rankings": problem.rankings,
        "counts": format!("{:016x}", found.counts),
        "ranks": format!("{:016x}", found.ranks),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_a_plain_sort() {
        let problem = Problem {
            keys: 500,
            values: 64,
            rankings: 3,
            seed: 1,
            prefetch: false,
        };
        let mut keys: Vec<u32> = (0..500).map(|index| problem.key(index)).collect();
        assert!(keys.iter().all(|key| *key < 64));
        for ranking in 0..3 {
            problem.change(&mut keys, 0..500, ranking);
        }
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        let ranks = keys.iter().zip(0_u64..).map(|(key, index)| {
            let rank = sorted.partition_point(|other| other < key) as u64;
            rank.wrapping_mul(2 * index + 1)
        });
        let (found, _) = sequential::solve(&problem);
        assert_eq!(found.ranks, ranks.fold(0, u64::wrapping_add));
    }
}
