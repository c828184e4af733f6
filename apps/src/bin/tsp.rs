//! `tsp` over dhole.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use apps::cluster::Cluster;
use apps::options::Common;
use apps::program::{self, Losses};
use apps::raw::Share;
use apps::tsp::{Options, PROGRAM, stop};
use dhole::Config;

fn main() -> ExitCode {
    let options: Options = program::options();
    let over_memory = options.share == Share::Memory;
    // Over raw memory a search does not end early.
    if !over_memory && let Err(cause) = stop::at_signals() {
        eprintln!("error: asking for signals: {cause}");
        return ExitCode::FAILURE;
    }
    let losses = match over_memory {
        true => Losses::End,
        false => PROGRAM.losses,
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
