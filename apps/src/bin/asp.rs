//! `asp` over dhole.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use apps::asp::{Options, PROGRAM};
use apps::program;

fn main() -> ExitCode {
    let options: Options = program::options();
    program::main(
        PROGRAM.name,
        PROGRAM.losses,
        &options.common,
        |_| options.problem(),
        |cluster, problem| {
            let program = options.way().program();
            program.solve(&options.common, cluster, problem)
        },
    )
}
