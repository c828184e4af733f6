//! `dhole sim --calibrate`: the networks that come with dhole are those of the papers.

use std::process::{Command, Output};

use serde_json::Value;

fn calibrate(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dhole"))
        .args(["sim", "--calibrate"])
        .args(words)
        .output()
        .unwrap()
}

fn primitives(network: &str) -> Value {
    let output = calibrate(&["--network", network, "--json"]);
    assert!(output.status.success(), "{output:?}");
    let mut object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["network"], network);
    object["primitives"].take()
}

/// Every primitive that the paper names is measured and within 15% of it: these are, and those that
/// hold what is not published are not.
fn meets(network: &str, there: &[&str], outside: &[&str]) {
    let primitives = primitives(network);
    let published = primitives.as_object().unwrap().iter();
    let published = published.filter(|(_, of)| of["published"].is_number());
    let (mut met, mut missed) = (Vec::new(), Vec::new());
    for (name, of) in published {
        let ratio = of["ratio"]
            .as_f64()
            .unwrap_or_else(|| panic!("{name} is measured"));
        match (0.85..=1.15).contains(&ratio) {
            true => met.push(name.as_str()),
            false => missed.push(name.as_str()),
        }
    }
    assert_eq!((&met[..], &missed[..]), (there, outside), "{primitives}");
    for name in outside {
        let ratio = primitives[name]["ratio"].as_f64().unwrap_or_default();
        assert!((0.7..=1.3).contains(&ratio), "{name}: {ratio}");
    }
}

#[test]
fn what_was_measured_and_cannot_be_printed_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let output = Command::new(env!("CARGO_BIN_EXE_dhole"))
        .args(["sim", "--calibrate"])
        .stdout(full.unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("writing to standard output: No space left"),
        "{said}"
    );
}

#[test]
fn dosa_1999_meets_its_primitives() {
    let there = [
        "barrier_32_us",
        "empty_diff_fault_us",
        "full_diff_fault_us",
        "lock_2_hops_us",
        "lock_3_hops_us",
        "page_fault_us",
        "round_trip_us",
    ];
    meets("dosa-1999", &there, &[]);
}

#[test]
fn orca_fe_meets_its_primitives() {
    let there = [
        "barrier_32_us",
        "barrier_8_us",
        "empty_diff_fault_us",
        "full_diff_fault_us",
        "group_write_8_us",
        "lock_2_hops_us",
        "lock_3_hops_us",
        "round_trip_us",
    ];
    // "The scheme we use for reliability and congestion control", whose costs are not published.
    meets("orca-fe", &there, &["group_write_32_us"]);
}

#[test]
fn orca_myrinet_meets_its_primitives() {
    let there = [
        "barrier_32_us",
        "barrier_8_us",
        "empty_diff_fault_us",
        "full_diff_fault_us",
        "group_write_32_us",
        "group_write_8_us",
        "lock_2_hops_us",
        "lock_3_hops_us",
        "round_trip_us",
        "sequence_number_us",
    ];
    meets("orca-myrinet", &there, &[]);
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn millipage_myrinet_meets_its_primitives() {
    let there = [
        "barrier_8_us",
        "lock_2_hops_us",
        "lock_3_hops_us",
        "minipage_read_128_us",
        "minipage_read_4096_us",
        "minipage_write_128_of_7_copies_us",
        "minipage_write_128_us",
        "minipage_write_4096_of_7_copies_us",
        "minipage_write_4096_us",
        "round_trip_4096_bytes_us",
        "round_trip_us",
    ];
    meets("millipage-myrinet", &there, &[]);
}

#[test]
fn manna_meets_its_primitives() {
    let there = [
        "copy_16_kib_us",
        "copy_32_kib_us",
        "copy_4_kib_us",
        "copy_64_kib_us",
        "copy_8_kib_us",
        "creation_us",
        "fetch_8_bytes_us",
        "invocation_128_bytes_us",
        "invocation_64_bytes_us",
        "invocation_us",
        "read_fault_us",
        "started_invocation_us",
    ];
    meets("manna", &there, &[]);
}

#[test]
fn jackal_myrinet_meets_its_primitives() {
    let there = [
        "fetch_8_bytes_us",
        "invocation_us",
        "round_trip_us",
        "throughput_mb_per_s",
    ];
    meets("jackal-myrinet", &there, &[]);
}

#[test]
fn todays_networks_meet_their_sources() {
    meets("ethernet-10g", &["round_trip_us"], &[]);
    meets(
        "ethernet-100g",
        &["round_trip_us", "throughput_mb_per_s"],
        &[],
    );
    meets("infiniband", &["round_trip_us"], &[]);
    for network in ["ethernet-10g", "ethernet-100g", "infiniband"] {
        let ratio = primitives(network)["round_trip_us"]["ratio"]
            .as_f64()
            .unwrap();
        assert!((0.98..=1.02).contains(&ratio), "{network}: {ratio}");
    }
}

#[test]
fn the_default_network_takes_what_its_numbers_say() {
    // Two messages of 26 bytes, which take 21 ns at 10 Gb/s.
    let primitives = primitives("default");
    assert_eq!(primitives["round_trip_us"]["simulated"], 24.042);
    assert_eq!(primitives["round_trip_us"]["published"], Value::Null);
}

#[test]
fn the_table_shows_each_primitive_beside_what_was_published() {
    let output = calibrate(&["--network", "orca-myrinet"]);
    let table = String::from_utf8(output.stdout).unwrap();
    for part in [
        "orca-myrinet: ",
        "round_trip_us",
        "40.60",
        "1.000",
        "sequence_number_us",
    ] {
        assert!(table.contains(part), "{part} in:\n{table}");
    }
}

#[test]
fn a_number_that_is_changed_is_measured_and_shows_in_the_name() {
    let output = calibrate(&["--latency-us", "20", "--json"]);
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["network"], "default with another latency_ns");
    assert_eq!(object["primitives"]["round_trip_us"]["simulated"], 44.042);
}

#[test]
fn what_belongs_to_a_program_does_not_belong_to_a_calibration() {
    for words in [
        &["--nodes", "2"][..],
        &["--fixed-cost"],
        &["--sequential-seconds", "3"],
        &["--", "/bin/true"],
    ] {
        assert_eq!(calibrate(words).status.code(), Some(2), "{words:?}");
    }
}
