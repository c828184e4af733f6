//! The `dhole` command: `dhole run` runs a dhole program on processes, `dhole sim` inside a
//! simulated cluster, `dhole paper` a paper's evaluation.
#![forbid(unsafe_code)]

mod arguments;
mod calibrate;
mod child;
mod error;
mod hello;
mod paper;
mod primitive;
mod run;
mod sim;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command, Paper};

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    let ended = match command {
        Command::Run(wanted) => run::run(&wanted).map_err(|e| (e.exit_code(), e.to_string())),
        Command::Dump(wanted) => run::dump(&wanted).map_err(|e| (e.exit_code(), e.to_string())),
        Command::Node(wanted) => {
            run::become_node(&wanted).map_err(|e| (e.exit_code(), e.to_string()))
        }
        Command::Agent => run::agent().map_err(|e| (e.exit_code(), e.to_string())),
        Command::Sim(wanted) => sim::run(&wanted).map_err(|e| (e.exit_code(), e.to_string())),
        Command::Paper(Paper::Dosa(wanted)) => {
            paper::dosa(&wanted).map_err(|e| (e.exit_code(), e.to_string()))
        }
    };
    ended.unwrap_or_else(|(code, said)| {
        eprintln!("dhole: {said}");
        ExitCode::from(code)
    })
}
