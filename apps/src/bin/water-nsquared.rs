//! `water-nsquared`: molecular dynamics of water over dhole.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use apps::program::{self, Losses};
use apps::water::nsquared::PROGRAM;
use apps::water::options::NsquaredOptions;

fn main() -> ExitCode {
    let options: NsquaredOptions = program::options();
    let problem = |nodes| options.problem(nodes);
    program::main(
        PROGRAM.name,
        Losses::End,
        &options.common,
        problem,
        |cluster, problem| PROGRAM.solve(&options.common, cluster, problem),
    )
}
