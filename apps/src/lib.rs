//! The papers' programs over dhole, each beside a plain sequential version of itself.
//!
//! Every program is a folder: the problem, the kernels that the sequential and the shared version
//! both call, and one file for each version. The sequential version does not use dhole. Speedups
//! are measured against it. It counts its work in the same units (`Worker::work`). So a simulation
//! with a fixed cost for each unit knows the time of the sequential run.
#![forbid(unsafe_code)]

pub mod asp;
pub mod barnes;
pub mod cluster;
pub mod digest;
pub mod ida;
pub mod input;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod is;
pub mod mistake;
pub mod options;
pub mod picture;
pub mod pool;
pub mod program;
pub mod progress;
pub mod random;
pub mod raytrace;
pub mod report;
pub mod solve;
pub mod sor;
pub mod tsp;
pub mod vector;
pub mod water;
