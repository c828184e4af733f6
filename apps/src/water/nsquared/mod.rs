//! Water-nsquared: every molecule interacts with half of all others (SPLASH's Water).
//!
//! The molecules are divided among the nodes by their numbers. For each of its own molecules, a
//! node computes the pairs with the half of all that follow it, in a circle. So each pair is
//! computed once.

pub mod records;
pub mod section;
pub mod sequential;
pub mod shared;

use super::problem::Record;
use super::solve::Program;

/// The program `water-nsquared`.
pub const PROGRAM: Program = Program {
    name: "water-nsquared",
    sequential: |problem, after_step| sequential::run(problem, after_step),
    shared: |w, problem, solution, after_step| match problem.record {
        Record::Split => shared::run(w, problem, solution, after_step),
        Record::Splash => records::run(w, problem, solution, after_step),
    },
};
