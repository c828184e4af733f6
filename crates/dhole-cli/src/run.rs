//! `dhole run`: a program on processes, which end when this command does, and of which nothing is
//! left.

mod agent;
mod dump;
mod error;
mod gathering;
mod heard;
mod hosts;
mod line;
mod node;
mod nodes;
mod order;
mod output;
mod secret;
mod supervise;
mod verdict;

use std::process::ExitCode;

use crate::arguments::{Dump, Node, Run};

pub use error::RunError;

/// Runs the program on processes, and returns the exit code of the first that failed.
///
/// # Errors
/// [`RunError`] when they cannot all be started.
pub fn run(wanted: &Run) -> Result<ExitCode, RunError> {
    let hosts = wanted.hosts.as_deref().map(hosts::read).transpose()?;
    let places = hosts::places(hosts.as_deref(), wanted.nodes)?;
    supervise::run(wanted, &places).map(ExitCode::from)
}

/// Becomes the program of a node. Returns only when that fails.
///
/// # Errors
/// [`RunError`] when the program cannot be run.
pub fn become_node(wanted: &Node) -> Result<ExitCode, RunError> {
    Err(node::become_node(wanted))
}

/// Asks the nodes of a run what they do.
///
/// # Errors
/// [`RunError`] when it is not clear which run, or there is none.
pub fn dump(wanted: &Dump) -> Result<ExitCode, RunError> {
    dump::dump(wanted.run).map(|()| ExitCode::SUCCESS)
}

/// Starts and ends a node as the `dhole run` on another machine says.
///
/// # Errors
/// [`RunError`] when what it says cannot be done.
pub fn agent() -> Result<ExitCode, RunError> {
    agent::run().map(ExitCode::from)
}
