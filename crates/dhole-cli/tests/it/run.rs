//! `dhole run` as a user meets it. The programs are shell scripts.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::script_file;

fn dhole(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dhole"));
    command.arg("run").args(words).stdin(Stdio::null());
    command
}

/// Runs a shell script on processes.
fn script(words: &[&str], text: &str) -> Output {
    let mut command = dhole(words);
    command.args(["--", "/bin/sh", "-c", text]);
    command.output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("dhole itself is not killed")
}

fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines: Vec<_> = text.lines().map(String::from).collect();
    lines.sort();
    lines
}

/// Whether a process runs: one that has ended and was not yet asked for does not.
fn runs(process: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(process).join("stat"));
    stat.is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .starts_with(" Z")
    })
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if holds() {
            return;
        }
        // Between two looks at what tells nobody when it changes.
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{what} within a minute");
}

#[test]
fn each_process_is_told_which_node_it_is_and_its_lines_say_so() {
    let said = "echo node $DHOLE_NODE of $DHOLE_NODES; echo oh >&2";
    let output = script(&["-n", "3"], said);
    // The script is no program of dhole's, which is told as well, and is an error.
    assert_eq!(code(&output), 1);
    assert_eq!(
        lines(&output.stdout),
        ["[1] node 1 of 3", "[2] node 2 of 3", "node 0 of 3"]
    );
    let told = lines(&output.stderr);
    assert_eq!(told[..3], ["[0] oh", "[1] oh", "[2] oh"]);
    assert_eq!(told.len(), 4, "{told:?}");

    let output = script(&["-n", "2", "--prefix", "none"], said);
    assert_eq!(lines(&output.stdout), ["node 0 of 2", "node 1 of 2"]);
    let output = script(&["-n", "2", "--prefix", "all"], said);
    assert_eq!(
        lines(&output.stdout),
        ["[0] node 0 of 2", "[1] node 1 of 2"]
    );
}

#[test]
fn each_process_is_told_how_to_wait() {
    let waits = [
        "-n",
        "2",
        "--spin-us",
        "0",
        "--backoff-us",
        "7",
        "--sleep-ms",
        "8",
    ];
    let echo = "echo $DHOLE_SPIN_US $DHOLE_BACKOFF_US $DHOLE_SLEEP_MS";
    let output = script(&waits, echo);
    assert_eq!(lines(&output.stdout), ["0 7 8", "[1] 0 7 8"]);
    let output = script(&["-n", "2", "--sleep-ms", "0"], "echo");
    assert_eq!(code(&output), 2);
}

/// A value of a variable, and the option that says the same.
fn values(variable: &str) -> [&'static str; 2] {
    match variable {
        "DHOLE_SURVIVE" => ["1", "--survive"],
        "DHOLE_PROTOCOL" => ["home", "--protocol=home"],
        "DHOLE_RACES" => ["ignore", "--races=ignore"],
        "DHOLE_BARRIER" => ["central", "--barrier=central"],
        "DHOLE_ONE_SIDED" => ["off", "--one-sided=off"],
        "DHOLE_SECTIONS" => ["off", "--sections=off"],
        "DHOLE_DOMAINS" => ["node", "--domains=node"],
        "DHOLE_MEMORY" => ["views", "--memory=views"],
        "DHOLE_MANAGERS" => ["one", "--managers=one"],
        "DHOLE_CONSISTENCY" => ["release", "--consistency=release"],
        "DHOLE_REPORT" => ["text", "--report=text"],
        "DHOLE_TRACE" => ["a.json", "--trace=a.json"],
        "DHOLE_SPIN_US" => ["7", "--spin-us=7"],
        "DHOLE_BACKOFF_US" => ["7", "--backoff-us=7"],
        "DHOLE_SLEEP_MS" => ["7", "--sleep-ms=7"],
        other => panic!("{other} has an option"),
    }
}

#[test]
fn a_wrong_variable_of_processes_is_one_error_and_an_empty_one_is_none() {
    for setting in dhole::Defaults::OF_PROCESSES {
        let variable = setting.variable;
        let echo = |value| {
            let mut command = dhole(&["-n", "3", "--prefix", "none"]);
            command.args(["--", "/bin/sh", "-c", "echo ran"]);
            command.env(variable, value).output().unwrap()
        };
        assert_eq!(lines(&echo("").stdout), ["ran"; 3], "{variable}");
        let output = echo("wrong");
        let said = lines(&output.stderr);
        assert_eq!((code(&output), said.len()), (2, 1), "{variable}: {said:?}");
        let named = format!("dhole: {variable} is `wrong`: ");
        assert!(said[0].starts_with(&named), "{said:?}");
        assert_eq!(output.stdout, b"", "{variable}");
    }
}

#[test]
fn a_variable_that_dhole_does_not_have_is_one_error_that_names_the_nearest() {
    for (variable, nearest) in [
        ("DHOLE_NODS", "DHOLE_NODES"),
        ("DHOLE_SURVIV", "DHOLE_SURVIVE"),
        ("DHOLE_BOUNDMS", "DHOLE_BOUND_MS"),
    ] {
        for subcommand in ["run", "sim"] {
            let started = |name: &str, value: &str| {
                let mut command = Command::new(env!("CARGO_BIN_EXE_dhole"));
                command.args([subcommand, "-n", "2", "--", "/bin/echo", "ran"]);
                command.env(name, value).output().unwrap()
            };
            let output = started(variable, "3");
            let said = format!(
                "dhole: the environment has {variable}, which is no variable of dhole's: is \
                 {nearest} meant? (names that begin with DHOLE_TEST_ are free)"
            );
            assert_eq!(lines(&output.stderr), [said], "{subcommand}");
            assert_eq!((code(&output), &output.stdout[..]), (2, &b""[..]));
            let (empty, free) = (started(variable, ""), started("DHOLE_TEST_NODS", "3"));
            for output in [empty, free] {
                assert_ne!(output.stdout, b"", "{subcommand}: {output:?}");
            }
        }
    }
}

#[test]
fn a_wrong_variable_is_one_error_also_beside_the_option_and_an_empty_one_is_none() {
    let waits = dhole::Defaults::WAITING
        .iter()
        .map(|setting| setting.variable);
    for variable in dhole::Defaults::VARIABLES.into_iter().chain(waits) {
        let [_, option] = values(variable);
        let echo = |words: &[&str], value| {
            let mut command = dhole(words);
            command.args(["--", "/bin/sh", "-c", "echo ran"]);
            command.env(variable, value).output().unwrap()
        };
        let output = echo(&["-n", "3", "--prefix", "none"], "");
        assert_eq!(lines(&output.stdout), ["ran"; 3], "{variable}: {output:?}");
        // Which protocols there are the program knows, and any path is the name of a file.
        if [dhole::Defaults::PROTOCOL, dhole::Defaults::TRACE].contains(&variable) {
            continue;
        }
        for words in [&["-n", "3"][..], &["-n", "3", option]] {
            let output = echo(words, "wrong");
            let said = lines(&output.stderr);
            let named = format!("dhole: {variable}");
            assert_eq!((code(&output), said.len()), (2, 1), "{variable}: {said:?}");
            assert!(said[0].starts_with(&named), "{said:?}");
            assert!(said[0].contains("wrong"), "{said:?}");
            assert_eq!(output.stdout, b"", "{variable}");
        }
    }
}

#[test]
fn the_secret_goes_through_a_descriptor_and_nowhere_else() {
    // Each process shows the secret that it got, and whether anything else in reach shows it too.
    let text = "eval \"read -r s <&$DHOLE_SECRET_FD\"; echo ${#s}; \
        cat /proc/$$/environ /proc/$PPID/environ /proc/$PPID/cmdline /proc/$$/cmdline \
        | grep -c -a \"$s\"; eval \"cat <&$DHOLE_SECRET_FD\" | wc -c";
    let output = script(&["-n", "2", "--prefix", "none"], text);
    assert_eq!(lines(&output.stdout), ["0", "0", "0", "0", "64", "64"]);
}

#[test]
fn two_runs_have_two_secrets() {
    let secret = || script(&["-n", "1"], "eval \"cat <&$DHOLE_SECRET_FD\"").stdout;
    assert_ne!(secret(), secret());
}

#[test]
fn node_0_reads_what_is_piped_in_and_the_others_nothing() {
    let mut child = dhole(&["-n", "2", "--prefix", "all", "--", "/bin/cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"words").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(lines(&output.stdout), ["[0] words"]);
}

#[test]
fn what_node_0_prints_is_passed_on_byte_by_byte() {
    let file = tempfile::NamedTempFile::new().unwrap();
    // Longer than any part of a line, without an end of a line, and no text.
    let mut all = vec![b'x'; 200_000];
    all.extend((0..=255).cycle().take(100_000));
    fs::write(file.path(), &all).unwrap();
    let path = file.path().to_str().unwrap();
    for words in [&["-n", "2"][..], &["-n", "1", "--prefix", "none"]] {
        let text = format!("[ $DHOLE_NODE != 0 ] || exec cat {path}");
        let output = script(words, &text);
        assert!(
            output.stdout == all,
            "{words:?}: {} bytes",
            output.stdout.len()
        );
    }
    let output = script(&["-n", "1", "--prefix", "none"], "printf oh >&2; exit 3");
    assert_eq!(output.stderr, b"ohdhole: node 0 failed with exit code 3\n");
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = dhole(&["-n", "2", "--", "/bin/bash", "-c"]);
    // A program of dhole's, which itself does not fail.
    let text = format!("trap '' PIPE TERM; {JOINS} [ $DHOLE_NODE != 0 ] || seq 10; exit 0");
    let output = command.arg(text).stdout(full()).output().unwrap();
    assert_eq!(code(&output), 1, "{output:?}");
    let said = "dhole: writing node 0's standard output: No space left on device (os error 28)";
    assert_eq!(lines(&output.stderr), [said]);
    // The errors of nodes, and then the command's own.
    let mut command = dhole(&["-n", "1", "--", "/bin/bash", "-c"]);
    let text = format!("{JOINS} echo oh >&2");
    let output = command.arg(text).stderr(full()).output().unwrap();
    assert_eq!(code(&output), 1, "{output:?}");
    for words in [
        "--help",
        "--version",
        "run --help",
        "man",
        "man run",
        "completions bash",
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dhole"));
        let output = command
            .args(words.split(' '))
            .stdout(full())
            .output()
            .unwrap();
        assert_eq!(code(&output), 1, "{words}: {output:?}");
        let said = "dhole: writing to standard output: No space left on device (os error 28)";
        assert_eq!(lines(&output.stderr), [said], "{words}");
    }
}

#[test]
fn the_command_prints_its_manual_and_completes_its_words() {
    let print = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dhole"));
        let output = command.args(words.split(' ')).output().unwrap();
        assert_eq!(code(&output), 0, "{words}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let page = print("man");
    assert!(page.contains(".TH dhole 1"), "{page}");
    assert!(page.contains("dhole\\-run(1)"), "{page}");
    let page = print("man run");
    assert!(page.contains(".TH dhole-run 1"), "{page}");
    assert!(page.contains("\\-\\-protocol"), "{page}");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = print(&format!("completions {shell}"));
        assert!(script.contains("grace-ms"), "{shell}: {script}");
    }
}

#[test]
fn the_first_failure_is_named_and_its_exit_code_passed_on() {
    let output = script(
        &["-n", "3", "--grace-ms", "0"],
        "[ $DHOLE_NODE != 1 ] || exit 7; sleep 1000",
    );
    assert_eq!(code(&output), 7);
    assert_eq!(
        lines(&output.stderr),
        ["dhole: node 1 failed with exit code 7"]
    );

    let output = script(&["-n", "1"], "exit 200");
    assert_eq!(code(&output), 200);
    let said = "dhole: node 0 failed with exit code 200";
    assert_eq!(lines(&output.stderr), [said]);

    let output = script(
        &["-n", "3", "--grace-ms", "0"],
        "[ $DHOLE_NODE != 2 ] || kill -9 $$; sleep 1000",
    );
    assert_eq!(code(&output), 128 + 9);
    let said = "dhole: node 2 was ended by signal 9 (SIGKILL)";
    assert_eq!(lines(&output.stderr), [said]);
}

#[test]
fn a_failure_while_nodes_are_still_started_ends_them_all() {
    // Node 0 has ended, and all that it said was heard, long before the last one is started.
    let text = "[ $DHOLE_NODE != 0 ] || exit 7; exec sleep 1000";
    let output = script(&["-n", "60", "--grace-ms", "0"], text);
    assert_eq!(code(&output), 7);
    let said = "dhole: node 0 failed with exit code 7";
    assert_eq!(lines(&output.stderr), [said]);
}

#[test]
fn who_fails_because_another_was_killed_is_not_blamed() {
    // Node 1 may be seen to end first, with an error that it has only because node 0 is gone.
    let text = "if [ $DHOLE_NODE = 0 ]; then sleep 0.2; kill -9 $$; fi; exit 1";
    let output = script(&["-n", "2"], text);
    assert_eq!(code(&output), 128 + 9);
    let said = "dhole: node 0 was ended by signal 9 (SIGKILL)";
    assert_eq!(lines(&output.stderr), [said]);
}

#[test]
fn the_others_may_come_to_an_end_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready").display().to_string();
    let text = format!(
        "if [ $DHOLE_NODE = 1 ]; then until [ -e {ready} ]; do sleep 0.05; done; exit 3; fi; \
         trap 'echo asked; exit 0' TERM; : > {ready}; while :; do sleep 0.05; done"
    );
    let output = script(&["-n", "2", "--grace-ms", "3000"], &text);
    assert_eq!(
        (code(&output), lines(&output.stdout)),
        (3, vec!["asked".to_owned()])
    );
}

#[test]
fn a_program_that_is_not_there_is_missed_once() {
    let output = dhole(&["-n", "4", "--", "no-such-program"])
        .output()
        .unwrap();
    assert_eq!(code(&output), 127);
    assert_eq!(
        lines(&output.stderr),
        ["dhole: there is no program `no-such-program`"]
    );
}

#[test]
fn a_program_that_cannot_run_is_told_once() {
    for (program, expected, says) in [
        ("/tmp", 126, "`/tmp` cannot be run: is a directory"),
        (
            "/etc/passwd",
            126,
            "`/etc/passwd` cannot be run: permission denied",
        ),
        ("", 127, "there is no program ``"),
    ] {
        let output = dhole(&["-n", "4", "--", program]).output().unwrap();
        assert_eq!(code(&output), expected, "{output:?}");
        assert_eq!(lines(&output.stderr), [format!("dhole: {says}")]);
    }
}

/// Starts nodes that print their process numbers, with a child each, and ignore what can be
/// ignored.
fn stubborn(words: &[&str]) -> (Child, Vec<String>) {
    let text = "trap '' TERM INT HUP; sleep 1000 & echo $$ $!; wait; wait; sleep 1000";
    let mut child = dhole(words)
        .args(["-n", "2", "--prefix", "none", "--grace-ms", "100"])
        .args(["--", "/bin/sh", "-c", text])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(child.stdout.as_mut().unwrap());
    let said: Vec<String> = stdout.lines().take(2).map(Result::unwrap).collect();
    let processes: Vec<_> = said
        .iter()
        .flat_map(|l| l.split(' '))
        .map(String::from)
        .collect();
    assert_eq!(processes.len(), 4);
    (child, processes)
}

#[test]
fn nothing_is_left_of_a_run_that_a_signal_ends() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let (mut child, processes) = stubborn(&[]);
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(128 + signal.as_raw()));
        for process in processes {
            wait_until("it ends", || !runs(&process));
        }
    }
}

#[test]
fn nodes_end_with_a_command_that_is_killed() {
    let (mut child, processes) = stubborn(&[]);
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel kills the nodes, which are the first of each pair; their own children are not its
    // business.
    for process in processes.iter().step_by(2) {
        wait_until("the node ends", || !runs(process));
    }
    for orphan in processes.iter().skip(1).step_by(2) {
        let orphan = Pid::from_raw(orphan.parse().unwrap()).unwrap();
        kill_process(orphan, Signal::KILL).unwrap();
    }
}

#[test]
fn what_a_node_leaves_behind_ends_with_it() {
    let output = script(&["-n", "2", "--prefix", "none"], "sleep 1000 & echo $!");
    assert_eq!(code(&output), 1, "it is none of dhole's");
    for process in lines(&output.stdout) {
        wait_until("it ends", || !runs(&process));
    }
}

/// Says, as dhole's programs do, that it answers SIGQUIT. Not every shell takes a descriptor of two
/// digits.
const ANSWERS: &str = "trap 'echo what I hold; kill $!; exit 0' QUIT; sleep 1000 & \
                       eval \"printf 'meets $$\\njoined\\n' >&$DHOLE_LAUNCHER_FD\"; \
                       echo ready; wait";

/// Says, as dhole's programs do, that it begins to join and has joined.
const JOINS: &str = "eval \"printf 'meets $$\\njoined\\n' >&$DHOLE_LAUNCHER_FD\";";

/// What is said until all have ended, who are asked until they have: what a node tells its launcher
/// may be heard after what it prints, and nobody is asked of whom nothing was heard.
fn answers(
    said: impl Iterator<Item = String> + Send + 'static,
    mut ask: impl FnMut(),
) -> Vec<String> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || said.for_each(|line| drop(tell.send(line))));
    let mut all = Vec::new();
    loop {
        ask();
        loop {
            match told.recv_timeout(Duration::from_secs(1)) {
                Ok(line) => all.push(line),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return all,
            }
        }
    }
}

#[test]
fn sigquit_ends_nobody_who_does_not_answer_it() {
    let text = "echo ready; read -r line; exit 3";
    let mut child = dhole(&["-n", "1", "--", "/bin/sh", "-c", text])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    kill_process(Pid::from_child(&child), Signal::QUIT).unwrap();
    line.clear();
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "dhole: node 0 has not begun to join the others\n");
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn sigquit_is_passed_on_and_ends_nothing() {
    let mut child = dhole(&[
        "-n",
        "2",
        "--prefix",
        "none",
        "--",
        "/bin/bash",
        "-c",
        ANSWERS,
    ])
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    let pid = Pid::from_child(&child);
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let mut said = stdout.lines().map(Result::unwrap);
    assert_eq!(
        [said.next().unwrap(), said.next().unwrap()],
        ["ready", "ready"]
    );
    let said = answers(said, || kill_process(pid, Signal::QUIT).unwrap());
    assert_eq!(said, ["what I hold", "what I hold"]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_dump_goes_to_the_run_that_is_named_and_to_nothing_else() {
    let mut child = dhole(&[
        "-n",
        "2",
        "--prefix",
        "none",
        "--",
        "/bin/bash",
        "-c",
        ANSWERS,
    ])
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let mut said = stdout.lines().map(Result::unwrap);
    assert_eq!(
        [said.next().unwrap(), said.next().unwrap()],
        ["ready", "ready"]
    );
    let dump = |process: u32| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dhole"));
        command
            .args(["dump", &process.to_string()])
            .output()
            .unwrap()
    };
    // This very test is none.
    let refused = dump(std::process::id());
    assert_eq!(code(&refused), 2);
    assert!(lines(&refused.stderr)[0].contains("is no `dhole run` of yours"));
    let run = child.id();
    let said = answers(said, || assert_eq!(code(&dump(run)), 0));
    assert_eq!(said, ["what I hold", "what I hold"]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A file of hosts.
fn hosts(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn nodes_on_hosts_are_started_by_the_remote_shell() {
    let file = hosts("red slots=2 address=127.0.0.1\nblue address=127.0.0.1\n");
    // A remote shell that greets, and runs the command here; it says which host it was asked for.
    let shell = script_file(
        "#!/bin/sh\necho Welcome to $1\nhost=$1; shift; \
         exec env -i PATH=\"$PATH\" SHELL_HOST=$host \"$@\"\n",
    );
    let words = [
        "--hosts",
        file.path().to_str().unwrap(),
        "--rsh",
        shell.to_str().unwrap(),
    ];
    let said = "echo $DHOLE_NODE $SHELL_HOST; [ $DHOLE_NODE = 2 ] || exit 0; exit 5";
    let output = script(&words, said);
    assert_eq!(lines(&output.stdout), ["0 red", "[1] 1 red", "[2] 2 blue"]);
    assert_eq!(code(&output), 5, "{output:?}");
    assert_eq!(
        lines(&output.stderr),
        ["dhole: node 2 on blue failed with exit code 5"]
    );

    // What the user has settled for all nodes reaches them; the remote shell would drop it.
    let mut command = dhole(&words);
    command.args([
        "--",
        "/bin/sh",
        "-c",
        "echo $DHOLE_BOUND_MS $DHOLE_JOIN_MS $DHOLE_TLS",
    ]);
    command
        .env("DHOLE_BOUND_MS", "777")
        .env("DHOLE_JOIN_MS", "888");
    let output = command.env("DHOLE_TLS", "always").output().unwrap();
    assert_eq!(lines(&output.stdout)[0], "777 888 always", "{output:?}");
    for variable in dhole::Defaults::VARIABLES {
        let value = values(variable)[0];
        let mut command = dhole(&words);
        command.args(["--", "/bin/sh", "-c", &format!("echo ${variable}")]);
        let output = command.env(variable, value).output().unwrap();
        let all = [
            value.to_owned(),
            format!("[1] {value}"),
            format!("[2] {value}"),
        ];
        let mut said = lines(&output.stdout);
        said.sort_by_key(String::len);
        assert_eq!(said, all, "{variable}: {output:?}");
    }

    // A code above 128 is a signal's where an agent passes it on, as far as there are signals.
    for (script, said) in [
        ("kill -9 $$", "was ended by signal 9 (SIGKILL)"),
        ("exit 200", "failed with exit code 200"),
    ] {
        let script = format!("[ $DHOLE_NODE = 2 ] || exit 0; {script}");
        let output = self::script(&words, &script);
        assert_eq!(
            lines(&output.stderr),
            [format!("dhole: node 2 on blue {said}")]
        );
    }

    let (mut child, processes) = stubborn(&words);
    child.kill().unwrap();
    child.wait().unwrap();
    for process in processes {
        wait_until("the agent ends what it started", || !runs(&process));
    }
}

#[test]
fn a_signal_ends_the_wait_for_the_first_agent() {
    let file = hosts("red slots=2\n");
    let path = file.path().to_str().unwrap();
    // A remote shell that says nothing, as one that looks for its host.
    let shell = script_file("#!/bin/sh\necho looking >&2; exec sleep 1000\n");
    let mut child = dhole(&[
        "--hosts",
        path,
        "--rsh",
        shell.to_str().unwrap(),
        "--",
        "true",
    ])
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "[0] looking\n");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let code = child.wait().unwrap().code();
    line.clear();
    stderr.read_line(&mut line).unwrap();
    assert_eq!((code, &line[..]), (Some(128 + 2), ""));
}

#[test]
fn hosts_that_do_not_suffice_or_make_no_sense_are_told() {
    let file = hosts("red\nblue slots=x\n");
    let path = file.path().to_str().unwrap();
    let output = script(&["--hosts", path], "true");
    assert_eq!(code(&output), 2);
    assert!(
        lines(&output.stderr)[0].contains(":2: `slots=x`"),
        "{output:?}"
    );
    let file = hosts("red slots=2\n");
    let path = file.path().to_str().unwrap();
    let output = script(&["--hosts", path, "-n", "3"], "true");
    assert_eq!(code(&output), 2);
    assert!(lines(&output.stderr)[0].contains("2 slots"), "{output:?}");
    let output = script(&["--hosts", path, "--rsh", "false"], "true");
    assert_eq!(code(&output), 125);
    assert!(
        lines(&output.stderr)[0].contains("starting node 0 on red"),
        "{output:?}"
    );
}
