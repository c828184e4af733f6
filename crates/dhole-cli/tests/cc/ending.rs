//! How programs end, and what becomes of mistakes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::{built, checked, command, lines, run_in, text};

/// The program, with the stacks that the system gives and with shared ones.
fn programs() -> [&'static Path; 2] {
    static BUILT: [OnceLock<PathBuf>; 2] = [const { OnceLock::new() }; 2];
    let options: [&[&str]; 2] = [&["-g", "-pthread"], &["-g", "-pthread", "--shared-stacks"]];
    [0, 1].map(|kind| built(&BUILT[kind], "ending", options[kind]))
}

/// Both, where nodes have memory of their own, and where it is one.
fn both_domains() -> impl Iterator<Item = (&'static Path, &'static str)> {
    let domains = ["node", "host"].into_iter();
    domains.flat_map(|domains| programs().map(|program| (program, domains)))
}

/// A case ends with this exit code, these lines on standard output, and these words on standard
/// error.
#[track_caller]
fn ends(case: &str, code: i32, expected: &[&str], words: &[&str]) {
    for program in programs() {
        let output = run_in("node", program, 2, &[case]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{case}: {said}");
        assert_eq!(lines(&output), expected, "{case}: {said}");
        for word in words {
            assert!(said.contains(word), "{case}: {word}: {said}");
        }
    }
}

#[test]
fn exit_of_any_thread_ends_the_run_with_its_code() {
    ends("exit0", 0, &["at exit 1", "leaving"], &[]);
    for program in programs() {
        let output = run_in("node", program, 2, &["exit5"]);
        assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("leaving\n"));
    }
}

#[test]
fn the_command_says_which_nodes_program_exited_with_which_code() {
    // By a call on the other node, by `return` beside threads, in a function that hears of a
    // mistake there, and behind a child of `fork` that has exited with another code.
    let cases = [
        ("exit6", 1, 6),
        ("pool", 0, 4),
        ("leaves", 0, 9),
        ("child3", 0, 5),
    ];
    for (case, node, code) in cases {
        for (program, domains) in both_domains() {
            let output = run_in(domains, program, 2, &[case]);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{case}: {said}");
            let last = said.lines().last().unwrap_or_default();
            let words = format!("dhole: the program on node {node} exited with {code}");
            assert_eq!(last, words, "{case} with {domains}: {said}");
        }
    }
}

#[test]
fn a_program_that_returns_ends_threads_that_never_end() {
    ends("pool", 4, &["main ends"], &[]);
}

/// `exit` beside threads that compute on every node, of the thread that runs `main` and of another.
#[test]
fn exit_ends_threads_that_compute_on_all_nodes() {
    for case in ["computes", "computes there"] {
        for (program, domains) in both_domains() {
            let run = command(domains, program, 2, &[case]);
            // After a minute its exit code is another.
            let mut limited = Command::new("timeout");
            limited.args(["-s", "KILL", "60"]).arg(run.get_program());
            let ended = limited.args(run.get_args()).output().unwrap();
            let said = text(&ended.stderr);
            let of = format!("{case} with {domains}: {said}");
            assert_eq!(ended.status.code(), Some(3), "{of}");
            let printed = text(&ended.stdout);
            let runs = printed
                .lines()
                .filter_map(|line| line.strip_prefix("runs "));
            let processes: BTreeSet<&str> = runs.clone().collect();
            assert_eq!((runs.count(), processes.len()), (4, 2), "{of}: {printed}");
            for process in processes {
                let there = Path::new("/proc").join(process).exists();
                assert!(!there, "process {process} is left: {of}");
            }
        }
    }
}

#[test]
fn a_variable_that_dhole_does_not_have_is_an_error_of_a_program_in_c() {
    let mut command = Command::new(programs()[0]);
    let output = command
        .args(["exit0"])
        .env("DHOLE_DOMAIN", "node")
        .output()
        .unwrap();
    let said = text(&output.stderr);
    let words =
        "the environment has DHOLE_DOMAIN, which is no variable of dhole's: is DHOLE_DOMAINS";
    assert!(said.contains(words), "{said}");
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(1), &b""[..])
    );
}

#[test]
fn a_program_ends_though_a_process_does_not() {
    // Without a limit the process of node 0 would end by its alarm.
    ends("stuck", 7, &[], &[]);
}

#[test]
fn a_lock_of_a_thread_that_dhole_has_not_begun_is_a_mistake() {
    let words = ["told: locking 0x", "this thread is none that a node runs"];
    ends("nonode", 128 + 6, &[], &words);
}

#[test]
fn locals_of_all_shares_of_create_are_shared_and_callbacks_get_them() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = built(&BUILT, "create", &["-pthread", "--shared-stacks"]);
    let expected = [
        "4 shares: own 4 others 4 creator 4",
        "callbacks 4 private 4",
        "once 1",
    ];
    for (processes, domains) in [(1, "node"), (2, "node"), (4, "node"), (2, "host"), (4, "2")] {
        for taken in ["", "200000000000,290000000000"] {
            let mut command = command(domains, program, processes, &[]);
            let output = checked(command.env("TAKEN", taken).output().unwrap());
            let mut printed = text(&output.stdout)
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>();
            printed.retain(|line| !line.is_empty());
            assert_eq!(printed, expected, "{processes} {domains} {taken}");
        }
    }
}

#[test]
fn pthread_exit_of_main_waits_for_all_threads() {
    ends("pexit", 0, &["late 1"], &[]);
}

#[test]
fn a_deadlock_is_told_with_functions_files_and_lines() {
    let lock = [
        "a deadlock: ",
        " at ab, ending.c:",
        " at ba, ending.c:",
        "error: locking 0x",
        // Node 0 is told of the deadlock, or that node 1, which found it, is lost.
        "told: ",
    ];
    ends("deadlock", 128 + 6, &[], &lock);
}

#[test]
fn signals_of_faults_stay_open_and_dhole_s() {
    ends("mask", 0, &["4000", "masked 0 0", "masked 0 0"], &[]);
    let refused = "0 1 -1 handling signal 7: faults of shared memory come by it";
    ends("signal", 0, &[refused, "1"], &[]);
}

#[test]
fn a_child_of_fork_allocates_exits_executes_and_returns() {
    let expected = ["child 7", "exec 0", "from exec", "late 1", "return 6"];
    ends("fork", 0, &expected, &[]);
}

#[test]
fn locks_do_nothing_in_a_child_of_fork() {
    for (program, domains) in both_domains() {
        let output = checked(run_in(domains, program, 2, &["locksinchild"]));
        assert_eq!(lines(&output), ["child 3 parent 0"], "{domains}");
    }
}

#[test]
fn a_thread_locks_a_recursive_mutex_again_also_by_trying() {
    for (program, domains) in both_domains() {
        let output = checked(run_in(domains, program, 2, &["recursive"]));
        assert_eq!(lines(&output), ["tried 0 0 0 1"], "{domains}");
    }
}

#[test]
fn exit_within_the_function_that_hears_of_a_mistake_ends_the_run() {
    let words = ["told: locking 0x", "this thread has locked it already"];
    ends("leaves", 9, &["before"], &words);
}

#[test]
fn an_alternate_stack_in_shared_memory_becomes_a_private_one() {
    let [private, shared] = programs();
    for domains in ["node", "host"] {
        let output = checked(run_in(domains, private, 2, &["alternate"]));
        assert_eq!(lines(&output), ["private 1 of 1"; 2], "{domains}");
        let output = checked(run_in(domains, shared, 2, &["alternate"]));
        let refused = "giving an alternate stack: faults of shared stacks are handled on dhole's";
        assert_eq!(lines(&output), [refused; 2], "{domains}");
    }
}

#[test]
fn what_is_freed_wrongly_is_named_with_the_line_of_the_program() {
    let freed = [
        "told: freeing 0x20",
        " at main, ending.c:",
        "were freed before, on node 0 at main",
    ];
    ends("twice", 128 + 6, &[], &freed);
    ends(
        "const",
        128 + 6,
        &[],
        &["is a constant or a function of the program"],
    );
    ends("global", 128 + 6, &[], &["no block begins there"]);
    let [private, shared] = programs();
    for (program, words) in [
        (private, "is on the stack of this thread"),
        (shared, "no block begins"),
    ] {
        let output = run_in("node", program, 2, &["stack"]);
        assert!(
            text(&output.stderr).contains(words),
            "{}",
            text(&output.stderr)
        );
    }
    ends(
        "unlock",
        128 + 6,
        &[],
        &["this thread has locked it already", "ending.c:"],
    );
}

#[test]
fn crashes_and_endless_recursions_end_all_processes() {
    // Nothing goes on as if a thread had returned whose node is lost.
    let words = ["node 1 was ended by signal 11", "told: joining a thread: "];
    ends("crash", 128 + 11, &[], &words);
    let used_up = "KiB are used up, by a recursion without an end";
    ends("recurse", 128 + 11, &[], &[&words[..], &[used_up]].concat());
    let words = ["node 0 was ended by signal 11", used_up];
    ends("recursemain", 128 + 11, &[], &words);
    ends("abort", 128 + 6, &[], &["node 1 was ended by signal 6"]);
    let none = ["(nil) Cannot allocate memory", "Cannot allocate memory"];
    ends("huge", 0, &none, &[]);
    // The address is that of the program's pointer.
    let nothing = [
        "error: writing memory at 0x20",
        "on node 0: nothing is allocated there",
        "told: ",
    ];
    ends("wild", 70, &[], &nothing);
}

#[test]
fn own_names_allocate_fetch_and_count() {
    let expected = ["stride 4096 chunk 1 apart 128 fetch 0 stats 0"];
    ends("dh", 0, &expected, &["node 0: 0 read faults in 0 us"]);
}

#[test]
fn programs_that_hand_out_addresses_of_locals_print_what_they_print_without_dhole() {
    static BUILT: [OnceLock<PathBuf>; 3] = [const { OnceLock::new() }; 3];
    for (place, name) in ["pipeline", "words", "stencil"].into_iter().enumerate() {
        let program = built(&BUILT[place], name, &["-pthread", "--shared-stacks", "-lm"]);
        crate::is_as_without_dhole(program, name);
    }
}

#[test]
fn stacks_are_shared_where_faults_are_caught_by_mprotect_too() {
    let [_, shared] = programs();
    for case in ["mask", "fork"] {
        let mut command = command("node", shared, 2, &[case]);
        checked(command.env("DHOLE_FAULTS", "mprotect").output().unwrap());
    }
}
