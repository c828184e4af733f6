//! Every molecule looks at half of all others (SPLASH's Water).
//!
//! The molecules are divided among the nodes by their numbers. A node looks, for each of its own
//! molecules, at the half of all that follow it, in a circle; so each pair is looked at once.

pub mod section;
pub mod sequential;
pub mod shared;

use super::solve::Program;

/// The program `water-nsquared`.
pub const PROGRAM: Program = Program {
    name: "water-nsquared",
    sequential: |problem, after_step| sequential::run(problem, after_step),
    shared: |w, problem, solution, after_step| shared::run(w, problem, solution, after_step),
};
