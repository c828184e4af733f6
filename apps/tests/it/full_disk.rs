//! What the programs write, where there is no room for it.

use std::fs::File;
use std::process::{Command, Output};

use crate::barnes_program;

const RAYTRACE: &str = env!("CARGO_BIN_EXE_raytrace");
const SCENE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/spheres.scene");
const CITIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/four.tsp");

/// Every program of this crate, and the words for the least of what it can compute.
const PROGRAMS: [(&str, &[&str]); 7] = [
    (env!("CARGO_BIN_EXE_asp"), &["--vertices", "4"]),
    (
        env!("CARGO_BIN_EXE_ida"),
        &["--position", "1,0,2,3,4,5,6,7,8,9,10,11,12,13,14,15"],
    ),
    (
        RAYTRACE,
        &["--width", "8", "--height", "8", "--input", SCENE],
    ),
    (
        env!("CARGO_BIN_EXE_sor"),
        &["--rows", "8", "--columns", "8", "--steps", "1"],
    ),
    (env!("CARGO_BIN_EXE_tsp"), &["--input", CITIES]),
    (
        env!("CARGO_BIN_EXE_water-nsquared"),
        &["--molecules", "8", "--steps", "1"],
    ),
    (
        env!("CARGO_BIN_EXE_water-spatial"),
        &["--molecules", "8", "--steps", "1"],
    ),
];

/// Runs a program on one node, whose standard output is full where that is said.
fn run(program: &str, words: &[&str], is_full: bool) -> Output {
    let mut command = Command::new(program);
    command.args(words).env_remove("DHOLE_SIM");
    if is_full {
        command.stdout(File::options().write(true).open("/dev/full").unwrap());
    }
    command.output().expect("the program can be started")
}

#[test]
fn a_report_that_cannot_be_written_is_an_error() {
    let barnes: (&str, &[&str]) = (barnes_program(), &["--bodies", "16", "--steps", "1"]);
    for (program, words) in PROGRAMS.into_iter().chain([barnes]) {
        for words in [words, &[words, &["--json"]].concat()] {
            let words = [words, &["-n", "1"]].concat();
            let output = run(program, &words, false);
            assert!(output.status.success(), "{program}: {output:?}");
            let output = run(program, &words, true);
            assert_eq!(output.status.code(), Some(1), "{program}: {output:?}");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("writing the report: No space left"), "{said}");
        }
        for words in ["--help", "--version"] {
            let output = run(program, &[words], true);
            assert_eq!(output.status.code(), Some(1), "{program} {words}");
        }
    }
}

#[test]
fn a_picture_of_bodies_for_which_there_is_no_room_is_an_error() {
    let words = [
        "--bodies",
        "16",
        "--steps",
        "1",
        "-n",
        "2",
        "--picture",
        "/dev/full",
    ];
    let output = run(barnes_program(), &words, false);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let no_room = said.contains("writing /dev/full: ") && said.contains("No space left");
    assert!(no_room, "{said}");
}

#[test]
fn a_picture_that_cannot_be_written_is_an_error_however_small_it_is() {
    for side in ["1", "8", "300"] {
        let words = [
            "--width", side, "--height", side, "--input", SCENE, "-n", "1",
        ];
        let output = run(
            RAYTRACE,
            &[&words[..], &["--output", "/dev/full"]].concat(),
            false,
        );
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{side}: {said}");
        assert!(
            said.contains("writing /dev/full: ") && said.contains("No space left"),
            "{said}"
        );
    }
}
