//! What a program of dhole's tells the command, in a file: that it ran, and what it computed.

use std::fs;
use std::process::Command;

use dhole::{Config, sim};

/// What the program computes in its two runs.
const WORK_NS: [u64; 2] = [3_000_000, 500_000];

#[test]
fn a_program_that_runs_twice_says_what_it_computed_in_both() {
    const NAME: &str = "hello::a_program_that_runs_twice_says_what_it_computed_in_both";
    if std::env::var_os(sim::ENVIRONMENT_VARIABLE).is_some() {
        for units in WORK_NS {
            let run = Config::nodes(1).run(|w| {
                w.work(units);
                Ok(())
            });
            run.unwrap();
        }
        return;
    }
    let hello = tempfile::NamedTempFile::new().unwrap();
    // This very test is the program, once the command's two variables are there.
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME])
        .env(sim::ENVIRONMENT_VARIABLE, "nodes=1,fixed_cost=1")
        .env("DHOLE_HELLO", hello.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = fs::read_to_string(hello.path()).unwrap();
    let [first, second] = WORK_NS.map(|ns| format!("run\ncomputed_ns={ns}\n"));
    assert_eq!(said, first + &second);
}

#[test]
fn the_command_scales_by_all_that_a_program_computed() {
    let script = "for ns in 3000000 500000; do \
                  printf 'run\\ncomputed_ns=%s\\n' $ns >> $DHOLE_HELLO; done; echo $DHOLE_SIM";
    let output = Command::new(env!("CARGO_BIN_EXE_dhole"))
        .args(["sim", "--nodes=2", "--sequential-seconds=7"])
        .args(["--", "/bin/sh", "-c", script])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let settings: sim::Settings = said.trim().parse().unwrap();
    assert_eq!(settings.compute_scale, 7e9 / 3_500_000.0);
}

#[test]
fn the_run_that_only_measures_shows_no_report() {
    let script =
        "printf 'run\\ncomputed_ns=3000000\\n' >> $DHOLE_HELLO; echo report=$DHOLE_REPORT >&2";
    let said = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_dhole"))
            .args(["sim", "--nodes=2", "--sequential-seconds=7"])
            .args(words)
            .args(["--", "/bin/sh", "-c", script])
            .env("DHOLE_REPORT", "text")
            .output()
            .unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(said(&[]), "report=\nreport=text\n");
    assert_eq!(said(&["--report=json"]), "report=\nreport=json\n");
}
