//! All-pairs shortest paths by Floyd's algorithm. The rows of the matrix of distances are dealt out
//! to the nodes in turn. In step `k` every node takes its rows through vertex `k` where that is
//! shorter, the row that is needed next before the others. When a row includes the paths through
//! all vertices before it, its node writes the row to a replicated object, which is a multicast.
//!
//! Jackal's program has contiguous blocks of rows, and a row goes down a tree of nodes: in sections
//! (`sections`), or by message passing (`calls`).

mod calls;
mod graph;
mod kernel;
mod options;
mod row;
mod sections;
mod sequential;
mod shared;
mod tree;

pub use graph::Graph;
pub use kernel::{NO_PATH, found, relax};
pub use options::Options;
pub use shared::solve_with;

use dhole::{Result, Worker};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::program::Losses;
use crate::report::count;
use crate::share::Construct;
use crate::solve::{Program, Steps};

/// The result of a run: the digest of the matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Found {
    /// Tells the matrix of distances from others.
    pub checksum: u64,
    /// Pairs between which there is a path.
    pub pairs: u64,
}

impl Found {
    /// Both parts of the matrix together.
    fn and(self, other: Found) -> Found {
        Found {
            checksum: self.checksum.wrapping_add(other.checksum),
            pairs: self.pairs + other.pairs,
        }
    }
}

/// The program.
pub const PROGRAM: Program<Graph, Found> = Program {
    name: "asp",
    losses: Losses::End,
    sequential: sequential::solve,
    shared: shared::solve,
    differ: |alone, found| (alone != found).then(|| format!("{alone:?} and {found:?}")),
    title: |graph| {
        let (vertices, arcs) = (count(graph.vertices), count(graph.arcs.len()));
        format!("shortest paths between {vertices} vertices over {arcs} arcs")
    },
    found: |_, found| {
        let Found { checksum, pairs } = found;
        format!(
            "{} pairs have a path; checksum {checksum:016x}",
            count(*pairs as usize)
        )
    },
    result,
    keep: |_, _| Ok(()),
};

/// How the program is to be solved on many nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// With Orca's replicated object.
    Objects,
    /// In sections, with rings of rows that are allocated here or there.
    Sections(Construct),
    /// By calls; whether parents wait for each child.
    Calls {
        /// Whether they do.
        waits: bool,
    },
}

impl Way {
    /// The program.
    pub const fn program(self) -> Program<Graph, Found> {
        let shared: fn(&mut Worker<'_>, &Graph, &mut Steps) -> Result<Found> = match self {
            Way::Objects => shared::solve,
            Way::Sections(Construct::Here) => {
                |w, graph, steps| sections::solve(w, graph, steps, Construct::Here)
            }
            Way::Sections(Construct::There) => {
                |w, graph, steps| sections::solve(w, graph, steps, Construct::There)
            }
            Way::Calls { waits: false } => |w, graph, steps| calls::solve(w, graph, steps, false),
            Way::Calls { waits: true } => |w, graph, steps| calls::solve(w, graph, steps, true),
        };
        Program { shared, ..PROGRAM }
    }
}

fn result(graph: &Graph, found: &Found) -> Value {
    json!({
        "vertices": graph.vertices,
        "arcs": graph.arcs.len(),
        "pairs": found.pairs,
        "checksum": format!("{:016x}", found.checksum),
    })
}
