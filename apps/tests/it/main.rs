//! The programs beside their sequential versions, and their command lines. Tests of a run whose
//! nodes are killed are `surviving`, a process of its own.
#![forbid(unsafe_code)]

mod command_lines;
mod dosa;
mod full_disk;
mod memory;
mod orca;
mod processes;
mod programs;
mod tsplib;
mod water;
