//! Nodes as processes are, but all in this process. They have a program of their own: while they
//! agree on the ids of a run, no other run of the process may take ids.
#![forbid(unsafe_code)]

mod asking;
mod counted;
mod forged_diffs;
mod hostile;
mod looking;
mod multicast;
mod ordered;
mod pipelined;
mod raw_memory;
mod started;
mod suite;
