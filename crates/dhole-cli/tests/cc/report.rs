//! What a report says of a program in C: its waits, by functions and lines.

use std::path::Path;
use std::sync::OnceLock;

use crate::{built, checked, command, text};

/// What the report of a run on two nodes says, in this form.
fn report(program: &Path, domains: &str, form: &str) -> String {
    let mut command = command(domains, program, 2, &[]);
    let output = checked(command.env("DHOLE_REPORT", form).output().unwrap());
    assert_eq!(text(&output.stdout), "1000200\n");
    text(&output.stderr)
}

#[test]
fn a_report_names_lines_that_wait_for_locks_conditions_semaphores_barriers_and_pages() {
    static BUILT: OnceLock<std::path::PathBuf> = OnceLock::new();
    let program = built(&BUILT, "report", &["-pthread", "-g"]);
    let report = report(program, "node", "json");
    for place in [
        "locks, report.c:16 (0x",
        "waits_for_turn, report.c:23 (0x",
        "touches, report.c:29 (0x",
        "works, report.c:36 (0x",
        "works, report.c:39 (0x",
    ] {
        assert!(report.contains(place), "{place}: {report}");
    }
    for waits in [
        "a lock of threads",
        "a condition or a semaphore of threads",
        "a barrier of threads",
    ] {
        assert!(report.contains(waits), "{waits}: {report}");
    }
}

#[test]
fn a_report_names_functions_where_there_are_no_lines() {
    static BUILT: OnceLock<std::path::PathBuf> = OnceLock::new();
    let program = built(&BUILT, "report", &["-pthread", "--shared-stacks"]);
    let report = report(program, "host", "text");
    let barrier = "for a barrier of threads at works (0x";
    assert!(report.contains(barrier), "{report}");
    // Threads of the program wait in the place of the workers, which do not compute then.
    let waited = report.lines().find(|line| line.starts_with("waited, "));
    assert!(waited.is_some_and(|it| it.contains("barrier ")), "{report}");
}
