//! The travelling salesman problem by branch and bound, as Orca's programs solve it: a master makes
//! jobs, which are the first hops of tours, and puts them into a central queue; every node takes
//! jobs from it and looks at all tours that begin so, but for those that cannot be shorter than the
//! shortest found so far, whose length is a replicated object.

mod instance;
mod options;
mod search;
mod sequential;
mod shared;
mod weights;

pub use instance::Instance;
pub use options::Options;
pub use search::{Known, Search, Tour};
pub use shared::solve_with;

use serde_json::{Value, json};

use crate::solve::Program;

/// What a run found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The shortest tour.
    pub tour: Tour,
    /// Beginnings of tours that were looked at.
    pub nodes_expanded: u64,
}

/// The program.
pub const PROGRAM: Program<Instance, Found> = Program {
    name: "tsp",
    sequential: sequential::solve,
    shared: shared::solve,
    differ: |alone, found| {
        let (alone, found) = (alone.tour.length, found.tour.length);
        (alone != found).then(|| format!("{alone} is the shortest, not {found}"))
    },
    result,
    keep: |_, _| Ok(()),
};

fn result(instance: &Instance, found: &Found) -> Value {
    let cities: Vec<u32> = found.tour.cities.iter().map(|city| city + 1).collect();
    json!({
        "instance": instance.name,
        "cities": instance.cities(),
        "optimum": found.tour.length,
        "tour": cities,
        "nodes_expanded": found.nodes_expanded,
    })
}
