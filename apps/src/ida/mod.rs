//! The 15-puzzle by iterative deepening (Korf's IDA*, 1985). A round searches all positions that
//! may be solved within a number of moves, by the distances of the tiles. The next round allows
//! more moves, until there is a solution. Tasks are positions a few moves from the first: each node
//! has its own, and a node that has none left takes some of another's.

mod options;
mod position;
mod search;
mod sequential;
mod shared;

pub use options::Options;
pub use position::Position;
pub use shared::solve_with;

use serde_json::{Value, json};

use crate::program::Losses;
use crate::report::count;
use crate::solve::Program;

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The fewest moves that solve the puzzle.
    pub moves: u32,
    /// In how many ways they do.
    pub solutions: u64,
    /// Positions that were looked at; the last round is finished too, so that this is the same
    /// however many nodes do it.
    pub nodes_expanded: u64,
}

/// The program.
pub const PROGRAM: Program<Position, Found> = Program {
    name: "ida",
    losses: Losses::Survives,
    sequential: sequential::solve,
    shared: shared::solve,
    differ: |alone, found| (alone != found).then(|| format!("{alone:?} and {found:?}")),
    title: |position| format!("15-puzzle {position}"),
    found: |_, found| {
        let (solutions, looked_at) = (
            count(found.solutions as usize),
            count(found.nodes_expanded as usize),
        );
        let moves = found.moves;
        format!("{moves} moves, in {solutions} ways; {looked_at} positions looked at")
    },
    result,
    keep: |_, _| Ok(()),
};

fn result(position: &Position, found: &Found) -> Value {
    json!({
        "position": position.to_string(),
        "moves": found.moves,
        "solutions": found.solutions,
        "nodes_expanded": found.nodes_expanded,
    })
}
