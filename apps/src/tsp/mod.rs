//! The travelling salesman problem by branch and bound, as Orca's programs solve it. Node 0 puts
//! jobs into a central queue: the first hops of tours. Every node takes jobs and searches all tours
//! that begin so. It leaves out those that cannot be shorter than the shortest tour so far, whose
//! length is a replicated object.

mod edges;
mod file;
mod instance;
mod one_tree;
mod options;
mod search;
mod sequential;
mod shared;
pub mod stop;
mod weights;

pub use file::File;
pub use instance::Instance;
pub use options::Options;
pub use search::{Known, Search, Tour};
pub use shared::solve_with;

use std::time::Duration;

use serde_json::{Value, json};

use crate::program::Losses;
use crate::solve::Program;

/// How it is found what the rest of a tour takes at least.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LowerBound {
    /// By the shortest tree that joins the cities that are left, as the papers' programs do.
    #[default]
    Tree,
    /// By Held and Karp's 1-trees, with subgradient ascent: slower for each beginning of a tour, of
    /// which it leaves far fewer.
    OneTree,
}

/// The problem, and how to solve it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The cities.
    pub instance: Instance,
    /// The bound.
    pub bound: LowerBound,
    /// The time after which the shortest tour so far is good enough.
    pub time_limit: Option<Duration>,
}

impl From<Instance> for Problem {
    fn from(instance: Instance) -> Problem {
        Problem {
            instance,
            bound: LowerBound::default(),
            time_limit: None,
        }
    }
}

/// The result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The shortest tour.
    pub tour: Tour,
    /// Beginnings of tours that were looked at.
    pub nodes_expanded: u64,
    /// Whether the search ended before it was done: there may be shorter tours.
    pub stopped: bool,
}

/// The program.
pub const PROGRAM: Program<Problem, Found> = Program {
    name: "tsp",
    losses: Losses::Survives,
    sequential: sequential::solve,
    shared: shared::solve,
    differ,
    result,
    keep: |_, _| Ok(()),
};

fn differ(alone: &Found, found: &Found) -> Option<String> {
    let [of_alone, of_found] = [alone, found].map(|it| it.tour.length);
    let wrong = match (alone.stopped, found.stopped) {
        (false, false) => of_alone != of_found,
        (false, true) => of_found < of_alone,
        (true, false) => of_alone < of_found,
        (true, true) => false,
    };
    wrong.then(|| format!("{of_alone} is the shortest, not {of_found}"))
}

fn result(problem: &Problem, found: &Found) -> Value {
    let cities: Vec<u32> = found.tour.cities.iter().map(|city| city + 1).collect();
    let mut result = json!({
        "instance": problem.instance.name,
        "cities": problem.instance.cities(),
        "tour": cities,
        "nodes_expanded": found.nodes_expanded,
    });
    // What is not proved is not called the optimum.
    let length = if found.stopped {
        "shortest_so_far"
    } else {
        "optimum"
    };
    result[length] = json!(found.tour.length);
    result
}
