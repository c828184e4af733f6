//! Water-nsquared: every molecule interacts with half of all others (SPLASH's Water).
//!
//! The molecules are divided among the nodes by their numbers. For each of its own molecules, a
//! node computes the pairs with the half of all that follow it, in a circle. So each pair is
//! computed once. Jackal's program computes each pair twice, once for each of its molecules, over
//! molecules at home at their nodes (`sections`), or by message passing (`calls`).

pub mod calls;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod memory;
pub mod records;
pub mod section;
pub mod sections;
pub mod sequential;
pub mod shared;
mod whole;

use super::problem::{Record, Way};
use super::solve::Program;

/// The program `water-nsquared`.
pub const PROGRAM: Program = Program {
    name: "water-nsquared",
    sequential: |problem, after_step| sequential::run(problem, after_step),
    shared: |w, problem, solution, after_step| match (problem.way, problem.cut, problem.record) {
        (Way::Calls, ..) => calls::run(w, problem, solution, after_step),
        (Way::Sections { construct, inlined }, ..) => {
            let how = (construct, inlined);
            sections::run(w, problem, how, solution, after_step)
        }
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        (Way::Own, Some(cut), _) => memory::run(w, (problem, cut), solution, after_step),
        #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
        (Way::Own, Some(_), _) => Err("--share memory: only Linux on x86-64 has raw memory".into()),
        (Way::Own, None, Record::Split) => shared::run(w, problem, solution, after_step),
        (Way::Own, None, Record::Splash) => records::run(w, problem, solution, after_step),
    },
};
