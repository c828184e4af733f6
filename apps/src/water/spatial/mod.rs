//! Water-spatial: every molecule interacts with those in the cells around it (SPLASH-2's
//! Water-spatial).
//!
//! The box is divided into cells that are not smaller than the cut-off radius, and the nodes share
//! out the cells in blocks. A node computes the forces on the molecules in its own cells. So each
//! pair is computed twice, once from either side, and no node adds to another's forces. A molecule
//! that leaves its cell is handed on.
//!
//! A molecule is in the cell of its oxygen atom. As in SPLASH-2, cells that do not touch do not
//! interact, even if a hydrogen atom in one is within the radius of a molecule in the other. The
//! force is nearly zero there.
//!
//! The order of the computation depends on the cells and the molecules' numbers alone. So every
//! division among nodes moves every molecule alike, bit for bit.

pub mod block;
pub mod grid;
pub mod records;
pub mod sequential;
pub mod shared;

use super::problem::Record;
use super::solve::Program;

/// The program `water-spatial`.
pub const PROGRAM: Program = Program {
    name: "water-spatial",
    sequential: |problem, after_step| sequential::run(problem, after_step),
    shared: |w, problem, solution, after_step| match problem.record {
        Record::Split => shared::run(w, problem, solution, after_step),
        Record::Splash => records::run(w, problem, solution, after_step),
    },
};
