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

//! With a class it is NAS's own problem: its generator, its changes between rankings, its partial
//! verification of five ranks in each ranking, and its full one, which puts all keys into the order
//! of their ranks (`nas`). MultiView's sizes are none of its classes.

mod memory;
mod nas;
mod options;
mod sequential;

pub use memory::solve;
pub use nas::Class;
pub use options::Options;

use std::ops::Range;

use dhole::memory::MemoryUsage;
use serde_json::{Value, json};

use crate::program::Losses;
use crate::random::SplitMix;
use crate::raw::{self, Cut};
use crate::report::count;
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
    /// NAS's class, if it is one: then it has its own keys.
    pub class: Option<Class>,
    /// How the counts of all regions are cut into minipages.
    pub cut: Cut,
    /// Whether a node asks for all regions before it reads the first.
    pub prefetch: bool,
}

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Tells the counts of all rankings from others.
    pub counts: u64,
    /// Tells the ranks of all keys in the last ranking from others.
    pub ranks: u64,
    /// How many of NAS's partial and full verifications were right, and how many there are, of a
    /// class: on node 0.
    pub verifications: Option<(u32, u32)>,
    /// What node 0 has allocated, if it is shared.
    pub usage: Option<MemoryUsage>,
}

impl Found {
    /// Nothing is ranked.
    fn nothing(problem: &Problem) -> Found {
        Found {
            counts: 0,
            ranks: 0,
            verifications: problem.class.map(|class| (0, class.verifications())),
            usage: None,
        }
    }

    /// Takes in how many keys are smaller than each value, in a ranking.
    fn ranked(&mut self, problem: &Problem, ranking: usize, starts: &[u64]) {
        self.counts = Problem::counted(self.counts, starts);
        if let (Some(class), Some((right, _))) = (problem.class, &mut self.verifications) {
            *right += class.partial(ranking, starts);
        }
    }

    /// Takes in the order of all keys, by the last ranking.
    fn ordered(&mut self, problem: &Problem, starts: &[u64]) {
        if let Some((right, _)) = &mut self.verifications {
            *right += u32::from(problem.in_order(starts));
        }
    }
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
        if let Some(class) = self.class {
            return class.key(index);
        }
        let bits = SplitMix::new(self.seed).at(index as u64);
        let four = [0, 16, 32, 48].map(|shift| bits >> shift & 0xffff);
        let sum: u64 = four.iter().sum();
        ((sum * self.values as u64) >> 18) as u32
    }

    /// Changes two keys before a ranking, as NAS does, so that no two rankings are the same. `keys`
    /// are those of a part.
    fn change(&self, keys: &mut [u32], part: Range<usize>, ranking: usize) {
        if let Some(class) = self.class {
            for (index, value) in class.changes(ranking) {
                if part.contains(&index) {
                    keys[index - part.start] = value;
                }
            }
            return;
        }
        let last = self.values as u32 - 1;
        let small = ranking as u32 % self.values as u32;
        for (index, value) in [(ranking, small), (ranking + self.rankings, last - small)] {
            if part.contains(&index) {
                keys[index - part.start] = value;
            }
        }
    }

    /// Whether all keys, as they are in the last ranking, are in order once each is at the place of
    /// its rank (NAS's full verification).
    fn in_order(&self, starts: &[u64]) -> bool {
        let mut keys: Vec<u32> = (0..self.keys).map(|index| self.key(index)).collect();
        for ranking in 0..self.rankings {
            self.change(&mut keys, 0..self.keys, ranking);
        }
        let mut next = starts.to_vec();
        let mut sorted = vec![None; self.keys];
        for key in keys {
            let Some(rank) = next.get_mut(key as usize) else {
                return false;
            };
            match sorted.get_mut(*rank as usize) {
                Some(place) => *place = Some(key),
                None => return false,
            }
            *rank += 1;
        }
        sorted.iter().all(Option::is_some) && sorted.is_sorted()
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
    differ,
    title: |problem| {
        let [keys, values] = [problem.keys, problem.values].map(count);
        let class = problem
            .class
            .map(|class| format!(", class {}", class.name()));
        let class = class.unwrap_or_default();
        let rankings = problem.rankings;
        format!("{keys} keys of {values} values{class}, ranked {rankings} times")
    },
    found: |_, found| {
        let ranks = format!("ranks {:016x}", found.ranks);
        match found.verifications {
            Some((right, all)) => format!("{right} of {all} of NAS's verifications right; {ranks}"),
            None => ranks,
        }
    },
    result,
    keep: |_, _| Ok(()),
};

fn differ(alone: &Found, found: &Found) -> Option<String> {
    let of = |found: &Found| [found.counts, found.ranks];
    let (alone, ranked) = (of(alone), of(found));
    if alone != ranked {
        return Some(format!("{alone:016x?} and {ranked:016x?}"));
    }
    let (right, all) = found.verifications?;
    (right != all).then(|| format!("{right} of {all} of NAS's verifications are right"))
}

fn result(problem: &Problem, found: &Found) -> Value {
    let mut result = json!({
        "keys": problem.keys,
        "values": problem.values,
        "rankings": problem.rankings,
        "counts": format!("{:016x}", found.counts),
        "ranks": format!("{:016x}", found.ranks),
    });
    if let (Some(class), Some((right, all))) = (problem.class, found.verifications) {
        result["class"] = json!(class.name());
        result["verifications"] = json!([right, all]);
    }
    match &found.usage {
        Some(usage) => raw::with(result, &raw::shown(usage)),
        None => result,
    }
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
            class: None,
            cut: Cut::ROWS,
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
