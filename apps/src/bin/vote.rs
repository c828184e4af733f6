//! `vote` over dhole.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use apps::program;
use apps::vote::{LOSSES, NAME, Options, solve};

fn main() -> ExitCode {
    let options: Options = program::options();
    program::main(
        NAME,
        LOSSES,
        &options.common,
        |nodes| options.problem(nodes),
        |cluster, problem| solve(&options.common, cluster, problem),
    )
}
