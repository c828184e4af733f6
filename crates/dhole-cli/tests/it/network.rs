//! `dhole sim --network` as a user meets it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use dhole::sim::{Description, Settings};

const LEAST: &str = "name = \"mine\"\nabout = \"a test's\"\nmedium = \"switch\"\nlatency_ns = 7\n\
                     bytes_per_second = 1_000_000\nsend_ns = 8\nreceive_ns = 9\n";

/// Runs a shell script as a program that says hello and that it has computed for 2 ms, on three
/// nodes with these options; it prints its settings.
fn sim(options: &[&str]) -> Output {
    let script = "printf 'run\\ncomputed_ns=2000000' > $DHOLE_HELLO; echo $DHOLE_SIM";
    Command::new(env!("CARGO_BIN_EXE_dhole"))
        .args(["sim", "--nodes", "3"])
        .args(options)
        .args(["--", "/bin/sh", "-c", script])
        .output()
        .unwrap()
}

fn settings(options: &[&str]) -> Settings {
    let output = sim(options);
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    said.trim().parse().unwrap()
}

/// What `dhole` says when it refuses.
fn refusal(options: &[&str]) -> String {
    let output = sim(options);
    assert_eq!(output.status.code(), Some(2), "{options:?}: {output:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn file(folder: &Path, text: &str) -> String {
    let file = folder.join("mine.toml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn every_network_that_comes_with_dhole_reaches_the_program() {
    for name in Description::known() {
        let settings = settings(&["--network", name]);
        let described = Description::find(name).unwrap();
        assert_eq!(settings.network, described.network);
        assert_eq!(settings.network_name, name);
    }
    assert_eq!(settings(&[]), Settings::new(3));
}

#[test]
fn a_file_describes_a_network_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("unit_ns = 2.5\ncompute_scale = 30\n{LEAST}");
    let file = file(folder.path(), &text);
    let measured = settings(&["--network", &file]);
    assert_eq!(
        (measured.network_name.as_str(), measured.compute_scale),
        ("mine", 30.0)
    );
    assert_eq!(
        (measured.network.latency_ns, measured.network.receive_ns),
        (7, 9)
    );
    let unit = |options: &[&str]| settings(&[&["--network", &file], options].concat()).computation;
    let fixed = |unit_ns| dhole::sim::Computation::FixedCost { unit_ns };
    assert_eq!(unit(&["--fixed-cost"]), fixed(2.5));
    assert_eq!(unit(&["--fixed-cost=4"]), fixed(4.0));
    assert_eq!(
        settings(&["--network", &file, "--compute-scale", "3"]).compute_scale,
        3.0
    );
}

#[test]
fn an_unknown_network_is_refused_with_those_that_are_known() {
    let said = refusal(&["--network", "dosa-2000"]);
    assert!(said.contains("there is no network \"dosa-2000\""), "{said}");
    assert!(
        Description::known().all(|name| said.contains(name)),
        "{said}"
    );
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_file_key_value_and_range() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to, says) in [
        ("latency_ns = 7\n", "", "the key \"latency_ns\" is missing"),
        ("= 7", "= -7", "\"latency_ns\" is a whole number, not -7"),
        (
            "= 7",
            "= 4000000000000",
            "\"latency_ns\" is 0 to 3600000000000, not 4000000000000",
        ),
        (
            "1_000_000",
            "0",
            "\"bytes_per_second\" is 1 to 1000000000000000, not 0",
        ),
        ("send_ns", "sned_ns", "the key \"send_ns\" is missing"),
        ("name", "sned_ns = 8\nname", "there is no key \"sned_ns\""),
        (
            "switch",
            "string",
            "\"medium\" is \"links\", \"switch\" or \"hubs\", not string",
        ),
        ("= 7", "7", "is not TOML: "),
    ] {
        let path = file(folder.path(), &LEAST.replace(from, to));
        let said = refusal(&["--network", &path]);
        assert!(
            said.contains(says) && said.contains(&path),
            "{says}: {said}"
        );
    }
    let missing = folder.path().join("none.toml");
    let said = refusal(&["--network", missing.to_str().unwrap()]);
    assert!(said.contains("none.toml: No such file"), "{said}");
}

#[test]
fn computation_is_scaled_to_what_one_node_takes() {
    let scaled = settings(&["--sequential-seconds", "60"]);
    assert_eq!((scaled.nodes, scaled.compute_scale), (3, 60.0 / 0.002));
    assert_eq!(scaled.alone_ns, Some(60_000_000_000));
}

#[test]
fn one_node_computes_alone_what_needs_the_memory_of_all() {
    let script = "printf 'run\\ncomputed_ns=2000000' > $DHOLE_HELLO; echo $DHOLE_SIM >&2";
    let output = Command::new(env!("CARGO_BIN_EXE_dhole"))
        .args([
            "sim",
            "--nodes=3",
            "--network=dosa-1999",
            "--sequential-seconds=60",
        ])
        .args(["--", "/bin/sh", "-c", script])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let limits = said.lines().map(|line| {
        let settings: Settings = line.parse().unwrap();
        (settings.nodes, settings.network.memory_bytes)
    });
    assert_eq!(limits.collect::<Vec<_>>(), [(1, 0), (3, 256 << 20)]);
}

#[test]
fn a_program_that_computes_nothing_cannot_be_scaled() {
    let output = Command::new(env!("CARGO_BIN_EXE_dhole"))
        .args(["sim", "--nodes", "3", "--sequential-seconds", "60", "--"])
        .args(["/bin/sh", "-c", "echo run > $DHOLE_HELLO"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("`/bin/sh` did not compute to its end on one node"),
        "{said}"
    );
}

#[test]
fn scales_that_cannot_be_are_refused() {
    for (options, says) in [
        (&["--compute-scale", "0"][..], "compute_scale"),
        (&["--compute-scale=-1"], "compute_scale"),
        (&["--compute-scale", "nan"], "compute_scale"),
        (&["--sequential-seconds", "0"], "0.000001 to 1000000000"),
        (
            &["--sequential-seconds", "1", "--compute-scale", "2"],
            "--compute-scale",
        ),
        (
            &["--sequential-seconds", "1", "--fixed-cost"],
            "--fixed-cost",
        ),
        (&["--json"], "--json"),
    ] {
        let said = refusal(options);
        assert!(said.contains(says), "{options:?}: {said}");
    }
}
