//! `tsp` over dhole.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use apps::program;
use apps::tsp::{Options, PROGRAM};

fn main() -> ExitCode {
    let options: Options = program::options();
    program::main(
        PROGRAM.name,
        &options.common,
        |_| options.problem(),
        |cluster, problem| PROGRAM.solve(&options.common, cluster, problem),
    )
}
