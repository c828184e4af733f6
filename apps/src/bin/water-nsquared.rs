//! `water-nsquared`: molecular dynamics of water over dhole.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use apps::program;
use apps::water::nsquared::{sequential, shared};
use apps::water::options::NsquaredOptions;
use apps::water::solve::Program;
use clap::Parser;

const PROGRAM: Program = Program {
    name: "water-nsquared",
    sequential: |problem, after_step| sequential::run(problem, after_step),
    shared: |w, problem, solution, after_step| shared::run(w, problem, solution, after_step),
};

fn main() -> ExitCode {
    let options = NsquaredOptions::parse();
    let problem = |nodes| options.problem(nodes);
    program::main(
        PROGRAM.name,
        &options.common,
        problem,
        |cluster, problem| PROGRAM.solve(&options.common, cluster, problem),
    )
}
