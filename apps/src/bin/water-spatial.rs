//! `water-spatial`: molecular dynamics of water over dhole.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use apps::program::{self, Losses};
use apps::water::options::SpatialOptions;
use apps::water::spatial::PROGRAM;

fn main() -> ExitCode {
    let options: SpatialOptions = program::options();
    let problem = |nodes| options.problem(nodes);
    program::main(
        PROGRAM.name,
        Losses::End,
        &options.common,
        problem,
        |cluster, problem| PROGRAM.solve(&options.common, cluster, problem),
    )
}
