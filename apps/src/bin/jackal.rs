//! `jackal` over dhole.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use apps::jackal::{Options, PROGRAM};
use apps::program;

fn main() -> ExitCode {
    let Options { benchmark } = program::options();
    program::main(
        PROGRAM.name,
        PROGRAM.losses,
        benchmark.common(),
        |nodes| benchmark.problem(nodes),
        |cluster, problem| PROGRAM.solve(benchmark.common(), cluster, problem),
    )
}
