//! The `dhole` command: `dhole sim` runs a dhole program inside a simulated cluster.
#![forbid(unsafe_code)]

mod arguments;
mod calibrate;
mod child;
mod error;
mod hello;
mod primitive;
mod sim;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    let ended = match command {
        Command::Sim(wanted) => sim::run(&wanted),
    };
    match ended {
        Ok(code) => code,
        Err(error) => {
            eprintln!("dhole: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
