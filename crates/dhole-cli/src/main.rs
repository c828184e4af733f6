//! The command `dhole`: `dhole run` runs a dhole program on processes, `dhole sim` in a simulated
//! cluster, `dhole paper` repeats a paper's evaluation, and `dhole cc` builds programs in C.
#![forbid(unsafe_code)]

mod arguments;
mod calibrate;
mod cc;
mod child;
mod error;
mod hello;
mod manual;
mod run;
mod sim;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use arguments::{Arguments, Command};
use dhole_cli::{paper, primitive, say};
use dhole_space::runtime_thread::SignalMask;
use signal_hook::consts::SIGXFSZ;

fn main() -> ExitCode {
    // A file longer than `ulimit -f` allows is an error here. Programs begin without the mask.
    SignalMask::current().with(&[SIGXFSZ]).apply();
    let command = match Arguments::read(std::env::args_os()) {
        Ok(Arguments { command }) => command,
        Err(instead) => return show(&instead),
    };
    let ended = match command {
        Command::Run(wanted) => run::run(&wanted).map_err(|e| (e.exit_code(), e.to_string())),
        Command::Dump(wanted) => run::dump(&wanted).map_err(|e| (e.exit_code(), e.to_string())),
        Command::Node(wanted) => {
            run::become_node(&wanted).map_err(|e| (e.exit_code(), e.to_string()))
        }
        Command::Agent => run::agent().map_err(|e| (e.exit_code(), e.to_string())),
        Command::Sim(wanted) => sim::run(&wanted).map_err(|e| (e.exit_code(), e.to_string())),
        Command::Paper(_) => {
            let error = paper::start();
            Err((error.exit_code(), error.to_string()))
        }
        Command::Cc(wanted) => cc::run(&wanted).map_err(|e| (e.exit_code(), e.to_string())),
        Command::Man { command } => printed(manual::page(command.as_deref())),
        Command::Completions { shell } => printed(manual::completions(shell)),
    };
    ended.unwrap_or_else(|(code, said)| {
        say::complain(said);
        ExitCode::from(code)
    })
}

/// Prints help, the version, or an error in the arguments.
fn show(instead: &clap::Error) -> ExitCode {
    let shown = instead.print().and_then(|()| io::stdout().flush());
    match shown {
        Err(cause) if cause.kind() != ErrorKind::BrokenPipe => {
            say::complain(unwritten(&cause));
            ExitCode::FAILURE
        }
        _ => ExitCode::from(u8::try_from(instead.exit_code()).unwrap_or(u8::MAX)),
    }
}

fn printed(printed: io::Result<()>) -> Result<ExitCode, (u8, String)> {
    let printed = printed.map(|()| ExitCode::SUCCESS);
    printed.map_err(|cause| (1, unwritten(&cause)))
}

fn unwritten(cause: &io::Error) -> String {
    format!("writing to standard output: {cause}")
}
