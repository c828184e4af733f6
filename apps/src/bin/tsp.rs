//! `tsp` over dhole.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use apps::program;
use apps::tsp::{Options, PROGRAM, stop};

fn main() -> ExitCode {
    let options: Options = program::options();
    if let Err(cause) = stop::at_signals() {
        eprintln!("error: asking for signals: {cause}");
        return ExitCode::FAILURE;
    }
    program::main(
        PROGRAM.name,
        PROGRAM.losses,
        &options.common,
        |_| options.problem(),
        |cluster, problem| PROGRAM.solve(&options.common, cluster, problem),
    )
}
