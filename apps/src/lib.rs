//! The papers' programs over dhole, each beside a plain sequential version of itself.
//!
//! Every program is a folder: the problem, the kernels that the sequential and the shared version
//! both call, and one file for each version. The sequential version does not use dhole. Speedups
//! are measured against it. It counts its work in the same units (`Worker::work`). So a simulation
//! with a fixed cost for each unit knows the time of the sequential run.
//!
//! [`barnes`] is a crate of its own, so that the first program that a user builds does not wait for
//! the others. What all of them share is another.
#![forbid(unsafe_code)]

pub use apps_common::{
    cluster, digest, input, mistake, options, picture, pool, program, progress, random, report,
    solve, vector,
};
pub use barnes;

pub mod asp;
pub mod ida;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod is;
pub mod jackal;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod lu;
pub mod raw;
pub mod raytrace;
pub mod share;
pub mod sor;
pub mod tsp;
pub mod uts;
pub mod vote;
pub mod water;
