//! `dhole run`: runs a program on processes. They end when this command does, and nothing is left
//! of them.

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
mod stop;
mod supervise;
mod verdict;

use std::process::ExitCode;

use dhole::Defaults;

use crate::arguments::{Dump, Node, Run};

pub use error::{RunError, advice};

/// Runs the program on processes, and returns the exit code of the first that failed.
///
/// # Errors
/// [`RunError`] if they cannot all be started.
pub fn run(wanted: &Run) -> Result<ExitCode, RunError> {
    Defaults::check_env()?;
    let hosts = wanted.hosts.as_deref().map(hosts::read).transpose()?;
    let places = hosts::places(hosts.as_deref(), wanted.nodes)?;
    supervise::run(wanted, &places).map(ExitCode::from)
}

/// Becomes the program of a node. Returns only when that fails.
///
/// # Errors
/// [`RunError`] if the program cannot run.
pub fn become_node(wanted: &Node) -> Result<ExitCode, RunError> {
    Err(node::become_node(wanted))
}

/// Makes the nodes of a run report what they do.
///
/// # Errors
/// [`RunError`] if there is no run, or several and none is named.
pub fn dump(wanted: &Dump) -> Result<ExitCode, RunError> {
    dump::dump(wanted.run).map(|()| ExitCode::SUCCESS)
}

/// Starts and ends a node on the orders of a `dhole run` on another machine.
///
/// # Errors
/// [`RunError`] if an order cannot be executed.
pub fn agent() -> Result<ExitCode, RunError> {
    agent::run().map(ExitCode::from)
}
