//! The parts that the programs' `main` functions share: they refuse bad input, run, and report.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::{self, ExitCode};

use clap::Parser;
use dhole::RunError;
use thiserror::Error;

use crate::cluster::{BadCluster, Cluster};
use crate::options::{BAD_INPUT, BadInput, Common};
use crate::report::Report;

/// What a program does when a node is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Losses {
    /// It ends with an error.
    End,
    /// It goes on where that is asked for, and finds the same.
    Survives,
}

/// Why a program does not begin.
#[derive(Error, Clone, PartialEq, Debug)]
enum Refused {
    #[error(transparent)]
    Cluster(#[from] BadCluster),
    #[error(transparent)]
    Input(#[from] BadInput),
    #[error(
        "--survive: {name} cannot go on when a node is lost, for a part of its data is on that \
         node alone. Run it without --survive; raytrace, tsp and ida can survive"
    )]
    Survival { name: String },
}

impl Refused {
    /// What helps whoever has mistyped: the options say nothing of a cluster that the command, or
    /// the environment, has decided on.
    fn advice(&self, name: &str) -> String {
        match self {
            Refused::Input(_) => format!("\n\nFor more information, try '{name} --help'."),
            Refused::Cluster(_) | Refused::Survival { .. } => String::new(),
        }
    }
}

/// The options of the command line. Where it asks for help, or makes no sense, the process says so
/// and ends, with an error also where that cannot be written.
pub fn options<O: Parser>() -> O {
    read(std::env::args_os()).unwrap_or_else(|instead| {
        let shown = instead.print().and_then(|()| io::stdout().flush());
        process::exit(match shown {
            Err(cause) if cause.kind() != ErrorKind::BrokenPipe => {
                complain(format_args!("writing the help: {cause}"));
                1
            }
            _ => instead.exit_code(),
        })
    })
}

/// Reads a command line. A negative number is a value, so that the error about it says what the
/// option takes.
fn read<O: Parser>(words: impl IntoIterator<Item = OsString>) -> Result<O, clap::Error> {
    let mut command = O::command().mut_args(|arg| {
        let takes_values = arg.get_action().takes_values();
        arg.allow_negative_numbers(takes_values)
    });
    let mut matches = command.try_get_matches_from_mut(words)?;
    O::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Says why the program fails. Where that cannot be written the exit code still says that it does.
fn complain(why: impl Display) {
    let _ = io::stderr().write_all(format!("error: {why}\n").as_bytes());
}

/// Finds out what is to be solved on how many nodes (`problem`), solves it, and prints the report
/// that `solve` returns. The exit code is 2 when the input is refused and 1 when the run fails.
pub fn main<P>(
    name: &str,
    losses: Losses,
    common: &Common,
    problem: impl FnOnce(u16) -> Result<P, BadInput>,
    solve: impl FnOnce(Cluster, &P) -> Result<Report, RunError>,
) -> ExitCode {
    let switched = common.check_switches().map_err(Refused::from);
    let survival = |cluster: &Cluster| match losses {
        Losses::End if cluster.config(common).survives() => Err(Refused::Survival {
            name: name.to_owned(),
        }),
        _ => Ok(()),
    };
    let asked = switched
        .and_then(|()| Ok(Cluster::of(common)?))
        .and_then(|cluster| survival(&cluster).map(|()| cluster))
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
            if report.is_first
                && let Err(cause) = report.print(common)
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

#[cfg(test)]
mod tests {
    use crate::options::size;

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[arg(long, value_parser = size())]
        steps: u32,
        #[command(flatten)]
        common: Common,
    }

    #[test]
    fn a_negative_number_is_a_value_that_is_refused() {
        let refused = |words: &str| {
            let words = words.split(' ').map(OsString::from);
            let refused = read::<Options>(words).err().expect("it is refused");
            refused.to_string()
        };
        let steps = refused("sor --steps -3");
        assert!(steps.contains("'-3' for '--steps"), "{steps}");
        let nodes = refused("barnes -n -1");
        assert!(nodes.contains("'-1' for '--nodes"), "{nodes}");
    }
}
