//! The programs on processes, over every transport, against their sequential versions: as a user
//! starts them, with `dhole run`, which is to be built before where this crate is tested alone
//! (`cargo build -p dhole-cli`).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const TRANSPORTS: [&str; 4] = ["shm", "tcp", "udp", "mixed"];

/// The command, which `cargo test --workspace` builds beside the programs.
///
/// # Panics
/// Where it is not there: a test that does not run does not pass.
fn dhole() -> PathBuf {
    let command = Path::new(env!("CARGO_BIN_EXE_sor")).with_file_name("dhole");
    let path = command.display();
    assert!(
        command.exists(),
        "no {path}: cargo build -p dhole-cli makes it"
    );
    command
}

/// Runs a program on three processes over each transport: none may be further from its sequential
/// version than `most`.
fn verify(program: &str, options: &[&str], most: f64) {
    let dhole = dhole();
    for transport in TRANSPORTS {
        let output = Command::new(&dhole)
            .args(["run", "-n", "3", "--transport", transport, "--", program])
            .args(options)
            .args(["--verify", "--json"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let all = || format!("{program} over {transport}: {output:?}");
        assert!(output.status.success(), "{}", all());
        let printed = String::from_utf8_lossy(&output.stdout);
        let report: Value = serde_json::from_str(printed.trim()).unwrap();
        assert_eq!(report["transport"], transport, "{}", all());
        assert_eq!(report["nodes"], 3, "{}", all());
        let error = report["result"]["max_error"].as_f64();
        assert!(error.is_some_and(|error| error <= most), "{}", all());
    }
}

#[test]
fn sor_on_processes_is_exact() {
    let options = ["--rows", "64", "--columns", "64", "--steps", "6"];
    verify(env!("CARGO_BIN_EXE_sor"), &options, 0.0);
}

#[test]
fn barnes_on_processes_is_exact() {
    let options = ["--bodies", "256", "--steps", "2"];
    verify(env!("CARGO_BIN_EXE_barnes"), &options, 0.0);
}

#[test]
fn water_nsquared_on_processes_differs_by_rounding_alone() {
    let options = ["--molecules", "64", "--steps", "2"];
    verify(env!("CARGO_BIN_EXE_water-nsquared"), &options, 1e-9);
}

#[test]
fn water_spatial_on_processes_differs_by_rounding_alone() {
    let options = ["--molecules", "64", "--steps", "2"];
    verify(env!("CARGO_BIN_EXE_water-spatial"), &options, 1e-9);
}
