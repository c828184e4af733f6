//! The travelling salesman problem by branch and bound, as Orca's programs solve it. Node 0 puts
//! jobs into a central queue: the first hops of tours. Every node takes jobs and searches all tours
//! that begin so. It leaves out those that cannot be shorter than the shortest tour so far, whose
//! length is a replicated object.
//!
//! Over raw memory it is TreadMarks' program instead, with a pool of tours (`pool`). Jackal's
//! program takes jobs from a list in sections (`sections`), or by message passing (`calls`).

mod calls;
mod edges;
mod file;
mod instance;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod memory;
mod one_tree;
mod options;
mod pool;
mod pooled;
mod search;
mod sections;
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
use crate::random::SplitMix;
use crate::raw::Granularity;
use crate::report::count;
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
    /// The tour that the search begins with, if it is not that to the nearest cities.
    pub first: Option<Tour>,
    /// How it is solved on many nodes.
    pub way: Way,
}

/// How a problem is solved on many nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Way {
    /// With Orca's queue of jobs and bound.
    #[default]
    Objects,
    /// With TreadMarks' pool of tours in raw memory.
    Pooled(Pooled),
    /// With Jackal's list of jobs, in sections.
    Sections,
    /// With a queue that nodes call.
    Calls,
}

impl Problem {
    /// The tour that a search begins with.
    fn first_tour(&self, search: &Search<'_>) -> Tour {
        self.first.clone().unwrap_or_else(|| search.greedy())
    }

    /// The same, beginning with a shortest tour: each order of the search does the same work.
    pub fn preset(self) -> Problem {
        let (found, _) = sequential::solve(&self);
        Problem {
            first: Some(found.tour),
            ..self
        }
    }
}

/// How a problem is solved by a pool of tours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pooled {
    /// Cities that are left where a node searches a tour by itself, at least 1.
    pub depth: usize,
    /// Whether the length of a shorter tour is pushed to all nodes.
    pub push: bool,
    /// Bytes of a minipage of tours.
    pub unit: u32,
    /// What is a minipage.
    pub granularity: Granularity,
}

/// What a run over raw memory tells of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raw {
    /// What node 0 has allocated.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub usage: dhole::memory::MemoryUsage,
}

impl Instance {
    /// Cities at random places in a square, as far from each other as in the plane.
    pub fn random(cities: usize, seed: u64) -> Instance {
        let mut random = SplitMix::new(seed);
        let places: Vec<[f64; 2]> = (0..cities)
            .map(|_| [0, 1].map(|_| random.between(0.0, 1_000.0)))
            .collect();
        let distance = |a: &[f64; 2], b: &[f64; 2]| {
            let apart = (a[0] - b[0]).hypot(a[1] - b[1]);
            apart.round() as u32
        };
        let all = places
            .iter()
            .flat_map(|a| places.iter().map(move |b| distance(a, b)));
        Instance::of(&format!("random-{cities}"), cities, all.collect())
    }
}

impl From<Instance> for Problem {
    fn from(instance: Instance) -> Problem {
        Problem {
            instance,
            bound: LowerBound::default(),
            time_limit: None,
            first: None,
            way: Way::Objects,
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
    /// Of a run over raw memory, on node 0.
    pub raw: Option<Raw>,
}

/// The program.
pub const PROGRAM: Program<Problem, Found> = Program {
    name: "tsp",
    losses: Losses::Survives,
    sequential: |problem| match problem.way {
        Way::Pooled(pooled) => pooled::solve(problem, pooled),
        Way::Objects | Way::Sections | Way::Calls => sequential::solve(problem),
    },
    shared: |w, problem, steps| match problem.way {
        Way::Objects => shared::solve(w, problem, steps),
        Way::Sections => sections::solve(w, problem, steps),
        Way::Calls => calls::solve(w, problem, steps),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Way::Pooled(pooled) => memory::solve(w, problem, pooled, steps),
        #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
        Way::Pooled(_) => Err("--share memory: only Linux on x86-64 has raw memory".into()),
    },
    differ,
    title: |problem| {
        let Instance { name, .. } = &problem.instance;
        format!("tour of {name}, {} cities", problem.instance.cities())
    },
    found: |_, found| {
        let length = count(found.tour.length as usize);
        match found.stopped {
            true => format!("the shortest so far is {length} long"),
            false => format!("the shortest is {length} long"),
        }
    },
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
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    if let Some(raw) = &found.raw {
        return crate::raw::with(result, &crate::raw::shown(&raw.usage));
    }
    result
}
