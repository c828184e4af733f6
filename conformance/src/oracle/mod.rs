//! Random programs, checked against a plain sequential run.
//!
//! A seed decides a [`Program`]: phases that end at barriers, in which the nodes allocate, link,
//! walk, read, write and add to objects and rows. In each phase an object belongs to one node, or
//! is only read, or is only added to under its lock. So the program is free of races, and every
//! value that a node reads is determined. [`expected`] computes these values, and [`execute`] must
//! find the same on any platform.

mod execute;
mod expect;
mod generate;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod memory;
mod program;
mod shrink;

pub use execute::execute;
pub use expect::{Race, expected};
pub use generate::{Size, generate};
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
pub use memory::{MemoryProgram, execute_memory, generate_memory};
pub use program::{Action, End, Phase, Program, ROW_LEN};
pub use shrink::shrink;
