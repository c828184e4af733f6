//! `DHOLE_MEMORY=isolate`: what is written past the end of a block, or touched after it was freed.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::{built, checked, command, lines, text};

fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    built(&BUILT, "isolate", &["-g", "-pthread"])
}

/// A case fails, with these words.
#[track_caller]
fn fails(case: &str, words: &[&str]) {
    for nodes in [1, 2]
        .into_iter()
        .filter(|nodes| *nodes == 2 || case == "own")
    {
        let mut run = command("node", program(), nodes, &[case]);
        let output = run.env("DHOLE_MEMORY", "isolate").output();
        let output = output.expect("the command runs");
        let said = text(&output.stderr);
        assert!(!output.status.success(), "{case}: {said}");
        for word in words {
            assert!(said.contains(word), "{case}: {word}: {said}");
        }
    }
}

#[test]
fn bytes_written_past_a_block_are_found_where_it_is_sent_freed_or_left() {
    let past = "has written 3 bytes past the end of an allocation, at 0x2";
    let site = ": 100 bytes, allocated at main, isolate.c:57";
    fails("overflow", &["on node 1", past, site]);
    fails("own", &["freeing 0x2", "on node 0", past, site]);
    fails("end", &["on node 0", past, site]);
    let large = ": 12288 bytes, allocated at main, isolate.c:69";
    fails("large", &["has written 1 bytes past", large]);
}

#[test]
fn a_touch_of_a_freed_block_names_who_freed_it_and_where() {
    let allocated = "allocated at main, isolate.c:57";
    let freed = "freed by node 1 at frees, isolate.c:19";
    fails(
        "freed",
        &["reading memory at 0x2", "on node 0", allocated, freed],
    );
}

#[test]
fn so_does_a_second_free() {
    let freed = "freed by node 0 at frees, isolate.c:19";
    fails(
        "twice",
        &["memory at 0x2", "nothing is allocated there", freed],
    );
}

#[test]
fn a_right_program_runs_and_domains_are_refused() {
    let run = |domains| {
        let mut run = command(domains, program(), 2, &["right"]);
        run.env("DHOLE_MEMORY", "isolate")
            .output()
            .expect("it runs")
    };
    let output = checked(run("node"));
    assert_eq!(lines(&output), ["5100 12288"]);
    let said = text(&run("host").stderr);
    assert!(
        said.contains("`isolate` needs a memory for each node"),
        "{said}"
    );
}
