//! `DHOLE_MEMORY=isolate`: what is written past the end of a block, or touched after it was freed.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::{built, checked, command, lines, text};

fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    built(&BUILT, "isolate", &["-g", "-pthread"])
}

/// What a case says on so many nodes that fails, with the exit code of a run that has failed.
#[track_caller]
fn said(case: &str, nodes: usize) -> String {
    let mut run = command("node", program(), nodes, &[case]);
    let output = run.env("DHOLE_MEMORY", "isolate").output();
    let output = output.expect("the command runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(70), "{case} on {nodes}: {said}");
    said
}

/// A case fails, with these words.
#[track_caller]
fn fails(case: &str, words: &[&str]) {
    let said = said(case, 2);
    for word in words {
        assert!(said.contains(word), "{case}: {word}: {said}");
    }
}

/// A case fails, and the last line names the node that has written, and what.
#[track_caller]
fn overflows(case: &str, nodes: usize, node: usize, [past, site]: [&str; 2]) {
    let said = said(case, nodes);
    assert!(said.contains(site), "{case}: {site}: {said}");
    let last = said.lines().last().unwrap_or_default();
    let named = format!(
        "dhole: node {node} failed with exit code 70: checking raw memory on node {node}: the \
         program has written {past} bytes past the end of an allocation, at 0x2"
    );
    assert!(last.starts_with(&named), "{case} on {nodes}: {said}");
}

#[test]
fn bytes_written_past_a_block_are_found_where_it_is_sent_freed_or_left() {
    let small = ["3", ": 100 bytes, allocated at main, isolate.c:"];
    overflows("overflow", 2, 1, small);
    let large = ["1", ": 12288 bytes, allocated at main, isolate.c:"];
    for nodes in [1, 2] {
        overflows("own", nodes, 0, small);
        overflows("end", nodes, 0, small);
        overflows("large", nodes, 0, large);
    }
    fails("own", &["freeing 0x2", "on node 0"]);
}

#[test]
fn they_are_told_alike_whichever_node_hears_of_them_first() {
    // Node 0 waits for the end of a thread and reads, node 1 reads, node 2 has written.
    for _ in 0..6 {
        let site = ": 100 bytes, allocated at main, isolate.c:";
        overflows("all", 3, 2, ["3", site]);
    }
}

#[test]
fn a_touch_of_a_freed_block_names_who_freed_it_and_where() {
    let allocated = "allocated at main, isolate.c:81";
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
        said.contains(
            "memory_layout `isolate` (DHOLE_MEMORY, --memory) contradicts domains `host`"
        ),
        "{said}"
    );
}
