//! Where the memory of a C program lies, if a process has something there already.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use crate::{built, checked, command, lines, text};

fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    built(&BUILT, "place", &["-pthread"])
}

fn run(domains: &str, taken: &str) -> Output {
    let mut run = command(domains, program(), 2, &[]);
    run.env("TAKEN", taken).output().expect("the command runs")
}

#[test]
fn all_nodes_agree_on_an_address_that_is_free_on_each() {
    for domains in ["node", "host"] {
        assert_eq!(lines(&checked(run(domains, ""))), ["20 2"], "{domains}");
        let second = checked(run(domains, "200000000000"));
        assert_eq!(lines(&second), ["29 2"], "{domains}");
    }
    let third = checked(run("node", "207000000000,290000001000"));
    assert_eq!(lines(&third), ["11 2"]);
}

#[test]
fn where_none_is_free_the_error_says_what_lies_there_and_on_which_node() {
    let refused = run("node", "200000000000,290000000000,110000000000");
    let said = text(&refused.stderr);
    assert!(!refused.status.success(), "{said}");
    let lies = "at 0x290000000000: 0x290000000000 to 0x290000001000 is memory without a name";
    for word in ["raw memory", "it has no place on node 1", lies] {
        assert!(said.contains(word), "{word}: {said}");
    }
}
