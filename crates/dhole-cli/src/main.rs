//! The `dhole` command: `dhole sim` runs a dhole program inside a simulated cluster, `dhole paper`
//! a paper's evaluation.
#![forbid(unsafe_code)]

mod arguments;
mod calibrate;
mod child;
mod error;
mod hello;
mod paper;
mod primitive;
mod sim;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command, Paper};

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    let ended = match command {
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
