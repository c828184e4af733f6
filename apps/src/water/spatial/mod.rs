//! Every molecule looks at those in the cells around it (SPLASH-2's Water-spatial).
//!
//! The box is divided into cells that are not smaller than the cut-off radius, and cells are
//! divided among the nodes in blocks. A node computes the forces on the molecules in its own
//! cells, so that each pair is looked at twice, once from either side, and nobody adds to another
//! node's forces. Molecules that leave a cell are handed on.
//!
//! A molecule is in the cell of its oxygen atom. As in SPLASH-2, cells that do not touch do not
//! see each other, even where a hydrogen atom in one comes within the radius of a molecule in the
//! other; the force is near nothing there.
//!
//! Here all is looked at in an order that depends on the cells and the molecules' numbers alone, so
//! that every division among nodes moves every molecule alike, bit for bit.

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
