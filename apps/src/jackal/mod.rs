//! The microbenchmarks of Jackal's paper. `counter` is its example of computation migration
//! (Jackal, section 6, figure 4): nodes add to a counter under its lock, in a section each.

mod counter;
mod options;

pub use options::{Benchmark, Options};

use serde_json::{Value, json};

use crate::program::Losses;
use crate::report::count;
use crate::solve::Program;

/// The nodes that add to the counter: they take turns.
pub const ADDERS: [usize; 2] = [1, 2];

/// What node 0 does, which is the counter's home.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Home {
    /// It waits for the others.
    #[default]
    Waits,
    /// It reads the counter, and computes with the reference for a while.
    Reads,
}

/// A counter to which nodes 1 and 2 add.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// How often each of them does.
    pub each: u64,
    /// Whether they take turns.
    pub turns: bool,
    /// What the home does.
    pub home: Home,
    /// The nodes that keep a copy of the counter when it begins.
    pub keepers: Vec<usize>,
}

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Found {
    /// The counter.
    pub value: i64,
    /// The time of all increments, summed over the nodes, in nanoseconds.
    pub increments_ns: u64,
    /// The longest increment in nanoseconds.
    pub longest_ns: u64,
}

/// The program.
pub const PROGRAM: Program<Problem, Found> = Program {
    name: "jackal",
    losses: Losses::End,
    sequential: |problem| {
        let adds = problem.adds();
        let alone = Found {
            value: adds as i64,
            increments_ns: 0,
            longest_ns: 0,
        };
        (alone, adds)
    },
    shared: counter::solve,
    differ: |alone, found| {
        let (alone, found) = (alone.value, found.value);
        (alone != found).then(|| format!("{alone} and {found}"))
    },
    title: |problem| {
        format!(
            "a counter to which two nodes add {} times each",
            problem.each
        )
    },
    found: |problem, found| {
        let ms = ms_an_increment(problem, found);
        format!(
            "{} counted; {ms:.3} ms an increment",
            count(found.value as usize)
        )
    },
    result,
    keep: |_, _| Ok(()),
};

impl Problem {
    /// All increments.
    pub fn adds(&self) -> u64 {
        self.each * ADDERS.len() as u64
    }
}

fn ms_an_increment(problem: &Problem, found: &Found) -> f64 {
    found.increments_ns as f64 / problem.adds().max(1) as f64 / 1e6
}

fn result(problem: &Problem, found: &Found) -> Value {
    // Three places, as a stopwatch has.
    let thousandths = (ms_an_increment(problem, found) * 1e3).round() / 1e3;
    json!({
        "each": problem.each,
        "turns": problem.turns,
        "value": found.value,
        "ms_an_increment": thousandths,
        "longest_ms": (found.longest_ns as f64 / 1e3).round() / 1e3,
    })
}
