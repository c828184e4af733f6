//! What a report says of a program in C: its waits, by functions and lines.

use std::path::Path;
use std::sync::OnceLock;

use crate::{built, checked, command, text};

/// What the report of a run on two nodes says.
fn report(program: &Path, domains: &str) -> String {
    let mut command = command(domains, program, 2, &[]);
    let output = checked(command.env("DHOLE_REPORT", "text").output().unwrap());
    assert_eq!(text(&output.stdout), "1000200\n");
    text(&output.stderr)
}

/// A wait, where it is: what stands behind it in the line.
fn place<'a>(report: &'a str, waits: &str) -> &'a str {
    let (_, behind) = report.split_once(waits).unwrap_or_else(|| panic!("{waits}: {report}"));
    behind.lines().next().unwrap_or_default()
}

#[test]
fn a_report_names_lines_that_wait_for_locks_conditions_semaphores_barriers_and_pages() {
    static BUILT: OnceLock<std::path::PathBuf> = OnceLock::new();
    let program = built(&BUILT, "report", &["-pthread", "-g"]);
    let report = report(program, "node");
    for (waits, at) in [
        ("for a condition of threads at ", "waits_for_turn, report.c:23 (0x"),
        ("for a barrier of threads at ", "works, report.c:39 (0x"),
        ("for a semaphore of threads at ", "works, report.c:36 (0x"),
    ] {
        let found = place(&report, waits);
        assert!(found.starts_with(at), "{waits}{found}");
    }
    let pages = place(&report, " of pages at ");
    assert!(pages.contains(", report.c:") && pages.contains(" (0x"), "{pages}");
    // Threads of the program wait in the place of the workers: they do not compute then.
    assert!(report.contains("lock ") && report.contains("barrier "), "{report}");
}

#[test]
fn a_report_names_functions_where_there_are_no_lines() {
    static BUILT: OnceLock<std::path::PathBuf> = OnceLock::new();
    let program = built(&BUILT, "report", &["-pthread", "--shared-stacks"]);
    let report = report(program, "host");
    let barrier = place(&report, "for a barrier of threads at ");
    assert!(barrier.starts_with("works (0x"), "{barrier}");
}
