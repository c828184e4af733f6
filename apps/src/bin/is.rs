//! `is` over dhole.
#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> ExitCode {
    use apps::is::{Options, PROGRAM};
    use apps::program;

    let options: Options = program::options();
    program::main(
        PROGRAM.name,
        PROGRAM.losses,
        &options.common,
        |_| options.problem(),
        |cluster, problem| {
            let memory = dhole::memory::MemorySettings::default();
            let mut config = cluster.config(&options.common).memory(memory);
            if let Some(consistency) = options.consistency {
                config = config.memory_consistency(consistency);
            }
            PROGRAM.solve_on((&options.common, &config), cluster, problem)
        },
    )
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() -> ExitCode {
    eprintln!("error: is: only Linux on x86-64 has raw memory");
    ExitCode::from(2)
}
