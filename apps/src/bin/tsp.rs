//! `tsp` over dhole.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use apps::cluster::Cluster;
use apps::options::Common;
use apps::program::{self, Losses};
use apps::share::Share;
use apps::tsp::{Options, PROGRAM, stop};
use dhole::Config;

fn main() -> ExitCode {
    let options: Options = program::options();
    let over_memory = options.share == Share::Memory;
    // Only Orca's search ends early, and goes on when a node is lost.
    let is_orca = options.share == Share::Objects;
    if is_orca && let Err(cause) = stop::at_signals() {
        eprintln!("error: asking for signals: {cause}");
        return ExitCode::FAILURE;
    }
    let losses = match is_orca {
        true => PROGRAM.losses,
        false => Losses::End,
    };
    program::main(
        PROGRAM.name,
        losses,
        &options.common,
        |_| options.problem(),
        |cluster, problem| {
            let config = config(cluster, &options.common, over_memory);
            PROGRAM.solve_on((&options.common, &config), cluster, problem)
        },
    )
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn config(cluster: Cluster, common: &Common, over_memory: bool) -> Config {
    let config = cluster.config(common);
    match over_memory {
        true => config.memory(dhole::memory::MemorySettings::default()),
        false => config,
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn config(cluster: Cluster, common: &Common, _over_memory: bool) -> Config {
    cluster.config(common)
}
