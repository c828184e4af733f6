//! What a program has from the system: signals, threads, limits.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use crate::{built, checked, lines, place, run, run_in, shared, source, text};

/// The program, built without dhole.
pub fn stock(name: &str) -> PathBuf {
    let stock = place().join(format!("{name}-stock"));
    let mut compile = Command::new("cc");
    compile.args(["-pthread", "-O1", &source(&format!("{name}.c")), "-o"]);
    checked(compile.arg(&stock).output().unwrap());
    stock
}

#[test]
fn signals_are_taken_by_threads_of_the_program() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = built(&BUILT, "alarms", &["-pthread"]);
    let stock = stock("alarms");
    for case in ["handler", "waited"] {
        let expected = checked(Command::new(&stock).arg(case).output().unwrap());
        let alone = checked(Command::new(program).arg(case).output().unwrap());
        assert_eq!(text(&alone.stdout), text(&expected.stdout));
        for processes in 1..=2 {
            let output = checked(run(program, processes, &[case]));
            assert_eq!(text(&output.stdout), text(&expected.stdout), "{processes}");
        }
    }
}

#[test]
fn a_signal_of_a_process_is_taken_by_the_thread_of_another_node_that_takes_it() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = built(&BUILT, "exchange", &["-pthread"]);
    let expected = checked(Command::new(stock("exchange")).output().unwrap());
    assert!(!text(&expected.stdout).contains("wrong"));
    for (processes, domains) in [(1, "node"), (2, "node"), (2, "host"), (3, "host")] {
        let output = run_in(domains, program, processes, &[]);
        let said = text(&output.stderr);
        assert_eq!(
            lines(&output),
            lines(&expected),
            "{processes} {domains}: {said}"
        );
        // What ends a process ends the run, also where another node's thread has it open.
        let output = run_in(domains, program, processes, &["dies"]);
        assert_eq!(output.status.code(), Some(128 + 12), "SIGUSR2");
    }
}

#[test]
fn handlers_interrupt_functions_of_dhole_and_run_while_they_wait() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = built(&BUILT, "interrupts", &["-pthread"]);
    let stock = stock("interrupts");
    let waits = checked(Command::new(&stock).output().unwrap());
    for (processes, domains) in [(1, "node"), (2, "node"), (2, "host")] {
        let output = checked(run_in(domains, program, processes, &[]));
        assert_eq!(
            text(&output.stdout),
            text(&waits.stdout),
            "{processes} {domains}"
        );
        let output = checked(run_in(domains, program, processes, &["two"]));
        assert_eq!(text(&output.stdout), "200 answers\n");
        for _ in 0..7 {
            // Alarms every millisecond.
            let output = run_in(domains, program, processes, &["many"]);
            let said = text(&output.stderr);
            let printed = text(&output.stdout);
            assert_eq!(printed, "sum right, rings right\n", "{domains}: {said}");
        }
    }
}

/// A command of a user who has no processes and may have so many, with threads counted.
fn limited(most: usize, words: &[&str]) -> Output {
    // Limits of processes do not hold for root.
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    });
    let mut command = Command::new("bash");
    let already = if is_root { 0 } else { tasks_of_this_user() };
    let limit = most + already;
    command.args(["-c", &format!("ulimit -u {limit} && exec \"$@\""), "bash"]);
    if is_root {
        use std::os::unix::process::CommandExt;
        // Nobody has this number, and each test has its own.
        command.uid(0x4000_0000 + std::process::id() * 16 + most as u32);
    }
    let command = command.args(words).current_dir("/").stdin(Stdio::null());
    command.output().unwrap()
}

fn tasks_of_this_user() -> usize {
    use std::os::unix::fs::MetadataExt;
    let own = std::fs::metadata("/proc/self").unwrap().uid();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let of_user = processes.filter(|it| it.metadata().is_ok_and(|it| it.uid() == own));
    let tasks = of_user.filter_map(|it| std::fs::read_dir(it.path().join("task")).ok());
    tasks.map(Iterator::count).sum()
}

/// The command and a program, where another user can run them.
fn for_others(program: &Path) -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let copied = |from: &Path, name: &str| {
        let to = folder.path().join(name);
        std::fs::copy(from, &to).unwrap();
        to.to_str().unwrap().to_owned()
    };
    let dhole = copied(Path::new(env!("CARGO_BIN_EXE_dhole")), "dhole");
    let program = copied(program, "program");
    (folder, dhole, program)
}

#[test]
fn a_thread_that_the_system_refuses_is_no_thread() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = built(&BUILT, "refused", &["-pthread"]);
    let (_folder, _, stock) = for_others(&stock("refused"));
    let expected = checked(limited(20, &[&stock]));
    let words = "some threads, then Resource temporarily unavailable; joined\n";
    assert_eq!(text(&expected.stdout), words);
    let (_folder, dhole, program) = for_others(program);
    for (processes, most) in [("1", 40), ("2", 60)] {
        for domains in ["node", "host"] {
            let words = ["run", "-n", processes, "--domains", domains, "--", &program];
            let output = limited(most, &[&[&*dhole], &words[..]].concat());
            let said = text(&output.stderr);
            assert_eq!(lines(&output), lines(&expected), "{processes}: {said}");
            assert!(output.status.success(), "{said}");
        }
    }
}

#[test]
fn a_launcher_that_gets_no_thread_says_so() {
    let (_folder, dhole, _) = for_others(Path::new("/bin/true"));
    for most in 1..10 {
        let output = limited(most, &[&dhole, "run", "-n", "2", "--", "/bin/true"]);
        let said = text(&output.stderr);
        assert!(!said.contains("panicked"), "{most}: {said}");
        if most < 6 {
            assert_eq!(output.status.code(), Some(125), "{most}: {said}");
            assert!(said.contains("Resource temporarily unavailable"), "{said}");
        }
    }
}

#[test]
fn threads_of_all_nodes_find_what_main_has_set_in_its_process() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = built(&BUILT, "state", &["-pthread"]);
    let expected = checked(Command::new(stock("state")).output().unwrap());
    assert!(text(&expected.stdout).contains("set gone 03:00 XYZ mask 027"));
    for (processes, domains) in [(1, "node"), (2, "node"), (3, "host")] {
        let output = run_in(domains, program, processes, &[]);
        let said = text(&output.stderr);
        assert_eq!(
            lines(&output),
            lines(&expected),
            "{processes} {domains}: {said}"
        );
    }
}

/// A program of `shared.c` whose command has such a limit.
fn with_limit(limit: &str, domains: &str, words: &[&str]) -> Output {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("ulimit {limit} && exec \"$@\""), "bash"]);
    command.args([
        env!("CARGO_BIN_EXE_dhole"),
        "run",
        "-n",
        "2",
        "--domains",
        domains,
    ]);
    command
        .args(["--prefix", "none", "--"])
        .arg(shared())
        .args(words);
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_limit_of_files_takes_the_domain_and_not_the_program() {
    // In units of 1,024 bytes: less than the memory, and more than a port.
    let output = with_limit("-f 1000000", "host", &["globals", "4"]);
    let said = text(&output.stderr);
    let sums = "counter 200 with_value 240 sum 6.24875e+06 list 200 300";
    assert_eq!(lines(&output), ["calls 207", sums], "{said}");
    assert!(output.status.success(), "{said}");
    // Less than a port.
    let output = with_limit("-f 10", "host", &["globals", "4"]);
    let said = text(&output.stderr);
    assert!(!said.contains("SIGXFSZ"), "{said}");
    let is_run = output.status.success();
    assert!(is_run || said.contains("ulimit -f"), "{said}");
}

#[test]
fn a_limit_of_addresses_is_named_with_how_many_were_asked_for() {
    for domains in ["node", "host"] {
        let output = with_limit("-v 4000000", domains, &["globals", "4"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let words = ["raw memory: ", " bytes", "(`ulimit -v` says 4000000 KiB)"];
        assert!(words.iter().all(|it| said.contains(it)), "{said}");
    }
}
