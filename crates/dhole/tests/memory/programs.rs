//! What the started processes do.

use crate::{config, sync, threads};

/// Runs a program by its name; the exit code of the process.
pub fn run(name: &str) -> i32 {
    let run = match name {
        "increments" => config(1).run(|w| threads::increments(w, 2)),
        "starts" => config(1).run(sync::starts),
        "under a lock" => config(1).run(|w| sync::increments_under_a_lock(w, 3)),
        other => panic!("there is no program {other}"),
    };
    match run {
        Ok(run) => {
            println!("=> value {}", run.value);
            0
        }
        Err(error) => {
            println!("=> {error}");
            1
        }
    }
}
