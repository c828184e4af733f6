//! What the programs' `main` have in common: refuse, run, report.

use std::process::ExitCode;

use dhole::RunError;
use thiserror::Error;

use crate::cluster::{BadCluster, Cluster};
use crate::options::{BAD_INPUT, BadInput, Common};
use crate::report::Report;

/// Why a program does not begin.
#[derive(Error, Clone, PartialEq, Debug)]
enum Refused {
    #[error(transparent)]
    Cluster(#[from] BadCluster),
    #[error(transparent)]
    Input(#[from] BadInput),
}

impl Refused {
    /// What helps whoever has mistyped: the options say nothing of a cluster that the command, or
    /// the environment, has decided on.
    fn advice(&self, name: &str) -> String {
        match self {
            Refused::Input(_) => format!("\n\nFor more information, try '{name} --help'."),
            Refused::Cluster(_) => String::new(),
        }
    }
}

/// Finds out what is to be solved on how many nodes (`problem`), solves it, and prints the report
/// that `solve` returns. The exit code is 2 when the input is refused and 1 when the run fails.
pub fn main<P>(
    name: &str,
    common: &Common,
    problem: impl FnOnce(u16) -> Result<P, BadInput>,
    solve: impl FnOnce(Cluster, &P) -> Result<Report, RunError>,
) -> ExitCode {
    let switched = common.check_switches().map_err(Refused::from);
    let asked = switched
        .and_then(|()| Ok(Cluster::of(common)?))
        .and_then(|cluster| Ok((cluster, problem(cluster.nodes)?)));
    let (cluster, problem) = match asked {
        Ok(asked) => asked,
        Err(wrong) => {
            eprintln!("error: {wrong}{}", wrong.advice(name));
            return ExitCode::from(BAD_INPUT);
        }
    };
    match solve(cluster, &problem) {
        Ok(report) => {
            if report.node == 0
                && let Err(cause) = report.print(common.json)
            {
                eprintln!("error: writing the report: {cause}");
                return ExitCode::FAILURE;
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
