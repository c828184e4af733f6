//! A program that is asked for what it is built without says which feature it lacks, and runs on
//! nothing else instead. `docs/testing.md` says how these tests are built.
#![cfg(not(all(feature = "sim", feature = "tls")))]

use std::process::Command;

/// What a run on two nodes ends with in a process with these variables.
fn run_with(variables: &[(&str, &str)]) -> String {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--ignored", "--exact", "a_program", "--nocapture"])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "a program that the other tests start"]
fn a_program() {
    match dhole::Config::nodes(2).run(|w| Ok(w.nodes())) {
        Ok(run) => println!("ran on {} nodes", run.value),
        Err(error) => println!("refused: {error}"),
    }
}

#[track_caller]
fn lacks(variables: &[(&str, &str)], feature: &str) {
    let said = run_with(variables);
    assert!(said.contains("refused: "), "{said}");
    assert!(
        said.contains(&format!("dhole's feature `{feature}`")),
        "{said}"
    );
    let added = format!("cargo add dhole --features {feature}");
    assert!(said.contains(&added), "{said}");
}

#[test]
fn a_program_without_features_runs_on_threads() {
    assert!(run_with(&[]).contains("ran on 2 nodes"));
}

#[cfg(not(feature = "sim"))]
#[test]
fn a_program_without_sim_that_is_started_as_a_simulation_names_the_feature() {
    lacks(&[("DHOLE_SIM", "nodes=4")], "sim");
    assert!(run_with(&[("DHOLE_SIM", "")]).contains("ran on 2 nodes"));
}

#[cfg(not(feature = "processes"))]
#[test]
fn a_program_without_processes_that_is_started_as_a_node_names_the_feature() {
    lacks(&[("DHOLE_NODE", "1"), ("DHOLE_NODES", "2")], "processes");
    lacks(&[("DHOLE_MEETING", "127.0.0.1:1")], "processes");
    lacks(&[("DHOLE_RUN", "7")], "processes");
}

#[cfg(not(feature = "mpi"))]
#[test]
fn a_program_without_mpi_that_mpirun_starts_names_the_feature() {
    let said = run_with(&[("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "0")]);
    assert!(
        said.contains("refused: ") && said.contains("feature `mpi`"),
        "{said}"
    );
}

#[cfg(all(feature = "processes", not(feature = "tls")))]
#[test]
fn a_node_without_tls_that_is_to_encrypt_names_the_feature() {
    let node = [
        ("DHOLE_NODE", "1"),
        ("DHOLE_NODES", "2"),
        ("DHOLE_MEETING", "127.0.0.1:1"),
        ("DHOLE_TLS", "always"),
    ];
    lacks(&node, "tls");
}
