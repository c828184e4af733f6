//! What the programs' `main` have in common: refuse, run, report.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::{self, ExitCode};

use clap::Parser;
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

/// The options of the command line. Where it asks for help, or makes no sense, the process says so
/// and ends, with an error also where that cannot be written.
pub fn options<O: Parser>() -> O {
    O::try_parse().unwrap_or_else(|instead| {
        let shown = instead.print().and_then(|()| io::stdout().flush());
        process::exit(match shown {
            Err(cause) if cause.kind() != ErrorKind::BrokenPipe => 1,
            _ => instead.exit_code(),
        })
    })
}

/// Says why the program fails. Where that cannot be written the exit code still says that it does.
fn complain(why: impl Display) {
    let _ = io::stderr().write_all(format!("error: {why}\n").as_bytes());
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
            complain(format_args!("{wrong}{}", wrong.advice(name)));
            return ExitCode::from(BAD_INPUT);
        }
    };
    match solve(cluster, &problem) {
        Ok(report) => {
            if report.node == 0
                && let Err(cause) = report.print(common.json)
            {
                complain(format_args!("writing the report: {cause}"));
                return ExitCode::FAILURE;
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(error);
            ExitCode::FAILURE
        }
    }
}
