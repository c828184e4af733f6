//! Memory and files that a program maps: the same on all nodes.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::system::stock;
use crate::{built, checked, command, lines, place, run_in, text};

fn mapped() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    built(&BUILT, "mapped", &["-pthread"])
}

/// A text with many words, of a size that is no number of pages.
fn a_text() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let mut text = String::new();
        for number in 0_u32..120_000 {
            let of = number.wrapping_mul(2_654_435_761) >> 12;
            let letters = |it: u32| char::from(b'a' + (it % 26) as u8);
            let word: String = (0..1 + of % 3).map(|at| letters(of >> (3 * at))).collect();
            let _infallible = write!(text, "{word}{}", if of % 7 == 0 { ".\n" } else { " " });
        }
        let path = place().join("words.txt");
        std::fs::write(&path, text).unwrap();
        path
    });
    made.clone()
}

/// What it prints without dhole.
fn expected(case: &str) -> Output {
    static STOCK: OnceLock<PathBuf> = OnceLock::new();
    let stock = STOCK.get_or_init(|| stock("mapped"));
    checked(
        Command::new(stock)
            .arg(case)
            .arg(a_text())
            .output()
            .unwrap(),
    )
}

fn prints(case: &str) {
    let (path, expected) = (a_text(), expected(case));
    let words = [case, path.to_str().unwrap()];
    for (processes, domains) in [(1, "host"), (2, "node"), (2, "host"), (4, "node"), (4, "2")] {
        let output = run_in(domains, mapped(), processes, &words);
        let said = text(&output.stderr);
        assert_eq!(
            lines(&output),
            lines(&expected),
            "{case} {domains} {processes}: {said}"
        );
        checked(output);
    }
}

#[test]
fn memory_that_a_program_maps_is_shared() {
    prints("sum");
}

#[test]
fn a_file_that_is_mapped_is_divided_among_threads_of_all_nodes() {
    prints("words");
    prints("sharedwords");
}

#[test]
fn calls_about_mapped_memory_answer_as_without_dhole() {
    prints("calls");
    let path = a_text();
    for (variable, value) in [
        ("DHOLE_FAULTS", "mprotect"),
        ("DHOLE_CONSISTENCY", "release"),
    ] {
        let mut command = command("node", mapped(), 2, &["calls", path.to_str().unwrap()]);
        let output = checked(command.env(variable, value).output().unwrap());
        assert_eq!(lines(&output), lines(&expected("calls")), "{variable}");
    }
}

#[test]
fn a_file_that_its_mapping_would_write_is_refused_by_name() {
    let path = a_text();
    let output = checked(run_in(
        "node",
        mapped(),
        2,
        &["written", path.to_str().unwrap()],
    ));
    assert_eq!(text(&output.stdout), "written -1 Operation not supported\n");
    let said = text(&output.stderr);
    let why = "mmap: a file that is written by its mapping (MAP_SHARED with PROT_WRITE)";
    assert!(said.contains(why), "{said}");
}

#[test]
fn what_was_mapped_is_not_freed() {
    let output = run_in("node", mapped(), 2, &["free"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + 6), "{said}");
    assert!(said.contains("it was mapped by mmap"), "{said}");
}

/// An address that another node has mapped, by a library say, is an error on every node that has
/// nothing there.
#[test]
fn private_memory_of_another_node_is_never_read_as_zeros() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = built(&BUILT, "private", &["-pthread"]);
    for round in 0..8 {
        let domains = ["node", "host"][round % 2];
        let output = run_in(domains, program, 2, &[]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(128 + 11), "{said}");
        let address = text(&output.stdout);
        let words = format!(
            "an access to {}, where this process has nothing",
            address.trim()
        );
        assert!(said.contains(&words), "{said}");
    }
}
