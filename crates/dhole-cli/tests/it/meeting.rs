//! What `dhole run` makes of nodes that never meet, do not fit together, or lose each other. The
//! program is `member`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{env, process};

use dhole::Config;

use crate::script_file;

/// Which program `member` is, on one of the nodes of a `dhole run`.
const PROGRAM: &str = "DHOLE_TEST_PROGRAM";
/// A node that stops is named, and the command then ends, long before.
const NAMED_WITHIN: Duration = Duration::from_secs(60);

/// What runs on each node.
#[test]
fn member() {
    let Ok(program) = env::var(PROGRAM) else {
        return;
    };
    let me = env::var("DHOLE_NODE").unwrap_or_default();
    let run = Config::nodes(1).run(|w| {
        w.barrier()?;
        if ["stops", "stops while others compute"].contains(&&program[..]) && me == "1" {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::STOP).unwrap();
        }
        if program == "stops while others compute" {
            // Until the command has told of the loss.
            let goes_on = env::var("DHOLE_TEST_GOES_ON").expect("a path");
            while !std::path::Path::new(&goes_on).exists() {
                std::hint::spin_loop();
            }
        }
        if ["panics", "panics and goes on"].contains(&&program[..]) && me == "1" {
            panic!("no luck");
        }
        if program == "gathers" {
            // More than one message may carry, where both values are.
            w.gather(vec![0_u8; 33 << 20])?;
        }
        if program == "leaves" && me == "1" {
            process::exit(0);
        }
        let process = w.once(|w| Ok(w.alloc(0_u32)))?;
        if me == "1" {
            *process.get_mut(w) = process::id();
        }
        w.barrier()?;
        Ok(process.read(w))
    });
    if program == "panics and goes on" {
        assert!(run.is_err());
        let second = Config::nodes(1).run(|w| {
            if me == "2" {
                return Err(dhole::Error::program("out of luck"));
            }
            Ok(w.barrier()?)
        });
        println!("node {me}: {}", second.expect_err("node 2 fails"));
        process::exit(9);
    }
    if program == "panics between runs" && me == "1" {
        panic!("no luck");
    }
    if program == "panics between runs" {
        let second = Config::nodes(1).run(|w| Ok(w.barrier()?));
        println!("node {me}: {}", second.expect_err("node 1 is gone"));
        process::exit(9);
    }
    if let Err(error) = run {
        println!("node {me}: {error}");
        process::exit(9);
    }
    if let (Ok(run), "fails later", "0") = (run, &program[..], &me[..]) {
        // Until node 1 is gone, and what its end leads to has come here.
        let other = format!("/proc/{}/stat", run.value);
        let there = || std::fs::read_to_string(&other).is_ok_and(|s| !s.contains(") Z"));
        while there() {
            std::thread::yield_now();
        }
        process::exit(9);
    }
    println!("node {me} is done");
}

/// Runs a shell script on processes, in which `$MEMBER` is the program.
fn command(words: &[&str], script: &str, variables: &[(&str, &str)]) -> Command {
    let member = format!(
        "{} --exact meeting::member --nocapture --test-threads=1",
        env::current_exe().unwrap().display()
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_dhole"));
    command
        .arg("run")
        .args(words)
        .args(["--", "/bin/sh", "-c", script])
        .env(PROGRAM, "sound")
        .env("MEMBER", member)
        .envs(variables.iter().copied())
        .stdin(Stdio::null());
    command
}

fn run(words: &[&str], script: &str, variables: &[(&str, &str)]) -> Output {
    command(words, script, variables).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The last line of `dhole run`, and its exit code.
fn verdict(output: &Output) -> (String, i32) {
    let said = text(&output.stderr);
    let last = said.lines().last().unwrap_or_default().to_owned();
    (last, output.status.code().unwrap())
}

const ENDED_EARLY: &str = "dhole: node 1 ended, without an error, before it had joined the others";

#[test]
fn a_node_that_ends_without_joining_ends_the_wait_of_the_others_and_is_named() {
    let script = "[ $DHOLE_NODE != 1 ] || exit 0; exec $MEMBER";
    let output = run(&["-n", "3"], script, &[]);
    let said = text(&output.stdout);
    for node in [0, 2] {
        let heard = format!("node {node} waited for node 1, which ended before it had joined");
        assert!(said.contains(&heard), "{heard}? {output:?}");
    }
    assert_eq!(verdict(&output), (ENDED_EARLY.to_owned(), 1), "{output:?}");
}

/// The words for nodes on a host `red`, whose remote shell runs the command here; and its files.
fn through_agents() -> (impl Sized, [String; 4]) {
    let shell = script_file("#!/bin/sh\nshift; exec \"$@\"\n");
    let hosts = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(hosts.path(), "red slots=2 address=127.0.0.1\n").unwrap();
    let of = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let words = [
        "--hosts".into(),
        of(hosts.path()),
        "--rsh".into(),
        of(&shell),
    ];
    ((shell, hosts), words)
}

fn run_through_agents(script: &str, variables: &[(&str, &str)]) -> Output {
    let (_files, words) = through_agents();
    run(&words.each_ref().map(String::as_str), script, variables)
}

#[test]
fn an_agent_passes_on_that_its_node_failed_by_itself() {
    let last = "dhole: node 1 on red failed with exit code 9: it panicked: no luck".to_owned();
    for _ in 0..3 {
        let output = run_through_agents("exec $MEMBER", &[(PROGRAM, "panics")]);
        assert_eq!(verdict(&output), (last.clone(), 9), "{output:?}");
    }
}

#[test]
fn an_agent_passes_on_who_ended_without_joining() {
    let script = "[ $DHOLE_NODE != 1 ] || exit 0; exec $MEMBER";
    let output = run_through_agents(script, &[]);
    let heard = "node 0 waited for node 1, which ended before it had joined";
    assert!(text(&output.stdout).contains(heard), "{output:?}");
    let named = ENDED_EARLY.replace("node 1", "node 1 on red");
    assert_eq!(verdict(&output), (named, 1), "{output:?}");
    // What agents pass on is for this command alone.
    assert!(!text(&output.stderr).contains("dhole-agent"), "{output:?}");
}

#[test]
fn a_program_that_is_none_of_dholes_is_an_error() {
    let output = run(&["-n", "2"], "true", &[]);
    let said = "dhole: none of the processes joined the others: \
                `/bin/sh` ended without calling dhole::run";
    assert_eq!(verdict(&output), (said.to_owned(), 1));
    let output = run(&["-n", "2", "--survive"], "true", &[]);
    assert_eq!(verdict(&output), (said.to_owned(), 1));
    let output = run(&["-n", "2"], "exec $MEMBER", &[]);
    assert_eq!(verdict(&output), (String::new(), 0), "{output:?}");
}

#[test]
fn the_transport_is_that_of_the_environment_unless_an_option_names_another() {
    let script = "echo over $DHOLE_TRANSPORT; exec $MEMBER";
    for (said, words, taken) in [
        ("", &["-n", "1"][..], "shm"),
        ("tcp", &["-n", "1"], "tcp"),
        ("tcp", &["-n", "1", "--transport", "udp"], "udp"),
    ] {
        let output = run(words, script, &[("DHOLE_TRANSPORT", said)]);
        assert_eq!(verdict(&output), (String::new(), 0), "{output:?}");
        let over = format!("over {taken}\n");
        assert!(text(&output.stdout).contains(&over), "{output:?}");
    }
    let output = run(&["-n", "2"], script, &[("DHOLE_TRANSPORT", "pigeon")]);
    let refused = "dhole: DHOLE_TRANSPORT is `pigeon`: one of tcp, shm, mixed, udp is expected";
    assert_eq!(verdict(&output), (refused.to_owned(), 2), "{output:?}");
}

#[test]
fn the_node_that_panics_is_named_and_none_of_those_that_fail_in_consequence() {
    let last = "dhole: node 1 failed with exit code 9: it panicked: no luck".to_owned();
    // What follows may be seen first: not every time, so this is tried often.
    for (transport, times) in [("shm", 8), ("tcp", 2), ("udp", 1), ("mixed", 1)] {
        for _ in 0..times {
            let words = ["-n", "3", "--transport", transport];
            let output = run(&words, "exec $MEMBER", &[(PROGRAM, "panics")]);
            assert_eq!(
                verdict(&output),
                (last.clone(), 9),
                "{transport}: {output:?}"
            );
        }
    }
}

#[test]
fn the_node_whose_collective_fails_is_named_with_its_words() {
    for _ in 0..3 {
        let output = run(&["-n", "2"], "exec $MEMBER", &[(PROGRAM, "gathers")]);
        let (last, code) = verdict(&output);
        let named = last.starts_with("dhole: node 0 failed with exit code 9: gather on node 0");
        assert!(named && code == 9, "{last}");
    }
}

#[test]
fn a_failure_that_a_program_has_taken_is_not_blamed_for_a_later_one() {
    let last = "dhole: node 2 failed with exit code 9: out of luck".to_owned();
    let variables = [(PROGRAM, "panics and goes on")];
    let output = run(&["-n", "3"], "exec $MEMBER", &variables);
    assert_eq!(verdict(&output), (last, 9), "{output:?}");
}

#[test]
fn a_node_that_panics_between_two_runs_is_named_too() {
    // Of the test harness.
    let last = "dhole: node 1 failed with exit code 101".to_owned();
    for transport in ["shm", "tcp"] {
        let variables = [(PROGRAM, "panics between runs")];
        let output = run(
            &["-n", "3", "--transport", transport],
            "exec $MEMBER",
            &variables,
        );
        assert_eq!(verdict(&output), (last.clone(), 101), "{output:?}");
    }
}

#[test]
fn a_node_that_cannot_begin_a_run_is_named_and_not_who_hears_of_it() {
    // With one arena: threads would reserve more of what is limited, each when it first allocates.
    let script = "[ $DHOLE_NODE != 1 ] || ulimit -v 150000; MALLOC_ARENA_MAX=1 exec $MEMBER";
    for _ in 0..3 {
        let output = run(&["-n", "3"], script, &[]);
        let (last, code) = verdict(&output);
        let named = last.starts_with("dhole: node 1 failed with exit code 9: ");
        assert!(named && code == 9, "{output:?}");
    }
}

#[test]
fn programs_follow_each_other_in_one_script() {
    let output = run(
        &["-n", "3", "--prefix", "all"],
        "$MEMBER && exec $MEMBER",
        &[],
    );
    assert_eq!(verdict(&output), (String::new(), 0), "{output:?}");
    for node in 0..3 {
        let done = format!("node {node} is done");
        let said = text(&output.stdout);
        assert_eq!(said.matches(&done).count(), 2, "{output:?}");
    }
}

#[test]
fn who_waits_with_a_second_program_for_a_script_that_is_over_hears_so() {
    let script = "$MEMBER && [ $DHOLE_NODE != 1 ] || exit 0; exec $MEMBER";
    let output = run(&["-n", "3"], script, &[]);
    let heard = "node 0 waited for node 1, which ended before it had joined";
    assert!(text(&output.stdout).contains(heard), "{output:?}");
    assert_eq!(verdict(&output), (ENDED_EARLY.to_owned(), 1), "{output:?}");
}

#[test]
fn a_program_whose_descriptors_were_closed_on_the_way_says_what_to_do() {
    let script = "eval \"exec $DHOLE_SECRET_FD<&-\"; exec $MEMBER";
    let output = run(&["-n", "1"], script, &[]);
    let said = text(&output.stdout);
    assert!(
        said.contains("must leave the descriptor open"),
        "{output:?}"
    );
    // A pipe, as another launcher may use it, is read once.
    let script = "exec 3</dev/null; export DHOLE_SECRET_FD=3; exec $MEMBER";
    let said = text(&run(&["-n", "1"], script, &[]).stdout);
    assert!(
        said.contains("DHOLE_SECRET_FILE must name a file"),
        "{said}"
    );
}

#[test]
fn nodes_whose_arguments_differ_are_told_on_both_sides() {
    let script = "exec $MEMBER --skip rows=$DHOLE_NODE";
    let output = run(&["-n", "2", "--prefix", "all"], script, &[]);
    assert_ne!(verdict(&output).1, 0, "{output:?}");
    let said = text(&output.stdout);
    for (node, other) in [(0, 1), (1, 0)] {
        let mut lines = said.lines();
        let mine = lines.find(|line| {
            line.contains(&format!("[{node}]")) && line.contains("its program arguments")
        });
        let mine = mine.unwrap_or_else(|| panic!("node {node}: {output:?}"));
        let theirs = mine.find(&format!("rows={other}"));
        assert!(
            theirs.is_some() && theirs < mine.find(&format!("rows={node}")),
            "{mine}"
        );
    }
}

#[test]
fn a_node_that_is_stopped_is_named_and_not_who_missed_it() {
    for transport in ["shm", "tcp", "udp"] {
        let variables = [(PROGRAM, "stops"), ("DHOLE_BOUND_MS", "1000")];
        let words = ["-n", "3", "--transport", transport, "--grace-ms", "1000"];
        let output = run(&words, "exec $MEMBER", &variables);
        let (last, code) = verdict(&output);
        assert_eq!(code, 9, "{output:?}");
        assert!(
            last.starts_with("dhole: node 1 was lost to node "),
            "{output:?}"
        );
        let why = last.split_once(": nothing was heard of it for 1s: its process ");
        let (_, why) = why.unwrap_or_else(|| panic!("{output:?}"));
        assert!(why.ends_with(" is stopped (signal STOP)"), "{output:?}");
    }
}

/// The process that the command says is stopped, in these words, which may be continued so.
fn stopped_in(told: &str, node: &str) -> String {
    let named = told.strip_prefix(&format!("dhole: {node} (process "));
    let process = named.and_then(|rest| rest.split_once(')'));
    let (process, rest) = process.unwrap_or_else(|| panic!("{told}"));
    let expected = format!(" is stopped (signal STOP); continue it by `kill -CONT {process}`");
    assert_eq!(rest, expected);
    process.to_owned()
}

/// Runs a command of which a node stops itself, and continues that as the command says. Returns its
/// exit code.
fn continue_what_stops(command: &mut Command, node: &str) -> Option<i32> {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let process = child.id().to_string();
    let (ended, end) = mpsc::channel::<()>();
    // Where the stopped node is not named, `dhole run` ends it by this.
    let limit = std::thread::spawn(move || {
        if end.recv_timeout(NAMED_WITHIN) == Err(RecvTimeoutError::Timeout) {
            signal("-TERM", &process);
        }
    });
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    let told = told.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("dhole: ")));
    signal("-CONT", &stopped_in(&told.unwrap().unwrap(), node));
    let code = child.wait().unwrap().code();
    drop(ended);
    limit.join().unwrap();
    code
}

fn signal(name: &str, process: &str) {
    let sent = Command::new("kill").args([name, process]).status();
    assert!(sent.unwrap().success());
}

/// The shell is the process that the command starts, and the program another one.
#[test]
fn a_node_that_is_stopped_in_a_run_is_named_at_once_and_may_go_on() {
    let variables = [(PROGRAM, "stops"), ("DHOLE_BOUND_MS", "60000")];
    for transport in ["shm", "tcp", "udp"] {
        let words = ["-n", "3", "--transport", transport];
        let mut command = command(&words, "$MEMBER; exit $?", &variables);
        assert_eq!(continue_what_stops(&mut command, "node 1"), Some(0));
    }
    let (hosts, words) = through_agents();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = command(&words, "exec $MEMBER", &variables);
    assert_eq!(continue_what_stops(&mut command, "node 1 on red"), Some(0));
    drop(hosts);
}

/// Node 2 comes when the node that is stopped waits for it.
#[test]
fn a_node_that_is_stopped_while_it_joins_is_named_and_not_who_waits_for_it() {
    let all = ["shm", "tcp"].map(|transport| [(transport, 0), (transport, 1)]);
    std::thread::scope(|scope| {
        for (transport, stopped) in all.into_iter().flatten() {
            scope.spawn(move || stops_while_it_joins(transport, stopped));
        }
    });
}

fn stops_while_it_joins(transport: &str, stopped: u16) {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("stopped");
    let variables = [
        ("DHOLE_JOIN_MS", "6000"),
        ("STOPPED", &stopped.to_string()),
        ("THERE", there.to_str().unwrap()),
    ];
    // A process of which a thread waits in `poll` has begun to join.
    let script = "if [ $DHOLE_NODE = $STOPPED ]; then \
                        (until grep -qs poll /proc/$$/task/*/wchan; do :; done; \
                         kill -STOP $$; : > $THERE) & \
                      elif [ $DHOLE_NODE = 2 ]; then \
                        until [ -e $THERE ]; do :; done; \
                      fi; exec $MEMBER";
    let words = ["-n", "3", "--transport", transport, "--grace-ms", "1000"];
    let output = run(&words, script, &variables);
    let (last, code) = verdict(&output);
    let named = last.starts_with(&format!("dhole: node {stopped} (process "));
    let why = "was stopped (signal STOP) before it had joined the others, and did not go on";
    assert!(named && last.ends_with(why) && code != 0, "{output:?}");
    // Each of the others names it, and none of those that wait too.
    let said = text(&output.stdout);
    for node in (0..3).filter(|node| *node != stopped) {
        let of = format!("node {node}: joining the cluster: ");
        let mut lines = said.lines().filter_map(|it| it.split_once(&of));
        let (_, error) = lines.next().unwrap_or_else(|| panic!("{output:?}"));
        let waited = error.starts_with(&format!("node {node} waited "))
            && error.contains(&format!(" for node {stopped}: its process "));
        let told = error.starts_with(&format!("node {stopped} could not join: its process "));
        let why = error.ends_with(" is stopped (signal STOP)");
        assert!((waited || told) && why, "{output:?}");
    }
}

#[test]
fn a_node_that_is_stopped_before_it_joins_is_named_at_once() {
    let variables = [("DHOLE_JOIN_MS", "60000")];
    let script = "[ $DHOLE_NODE != 1 ] || kill -STOP $$; exec $MEMBER";
    let mut command = command(&["-n", "2"], script, &variables);
    assert_eq!(continue_what_stops(&mut command, "node 1"), Some(0));
}

#[test]
fn a_node_that_is_stopped_is_named_while_the_others_compute() {
    let folder = tempfile::tempdir().unwrap();
    let goes_on = folder.path().join("told");
    let words = ["-n", "2", "--grace-ms", "1000"];
    let variables = [
        (PROGRAM, "stops while others compute"),
        ("DHOLE_BOUND_MS", "500"),
        ("DHOLE_TEST_GOES_ON", goes_on.to_str().unwrap()),
    ];
    let mut command = command(&words, "exec $MEMBER", &variables);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let told = BufReader::new(child.stderr.take().unwrap()).lines();
    let told = told.map(Result::unwrap);
    let mut told = told.filter(|line| line.starts_with("dhole: "));
    let process = stopped_in(&told.next().unwrap(), "node 1");
    let expected = format!(
        "dhole: node 1 was lost to node 0: nothing was heard of it for 500ms: its process \
         {process} is stopped (signal STOP). The run ends when the other nodes wait next"
    );
    assert_eq!(told.next().unwrap(), expected);
    std::fs::write(goes_on, "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn a_node_that_has_ended_is_not_blamed_for_what_others_do_later() {
    for transport in ["tcp", "shm", "udp", "mixed"] {
        let words = ["-n", "2", "--transport", transport];
        let output = run(&words, "exec $MEMBER", &[(PROGRAM, "fails later")]);
        let last = "dhole: node 0 failed with exit code 9".to_owned();
        assert_eq!(verdict(&output), (last, 9), "{transport}: {output:?}");
        assert!(text(&output.stdout).contains("node 1 is done"));
    }
}

#[test]
fn a_node_that_ends_in_the_middle_of_a_run_is_named_though_it_fails_in_nothing() {
    for transport in ["tcp", "shm", "udp", "mixed"] {
        let words = ["-n", "3", "--transport", transport];
        let output = run(&words, "exec $MEMBER", &[(PROGRAM, "leaves")]);
        let (last, code) = verdict(&output);
        assert_eq!(code, 9, "{output:?}");
        let named = last.starts_with("dhole: node 1 was lost to node ");
        assert!(named && last.ends_with(": it left early"), "{output:?}");
    }
}

#[test]
fn variables_of_a_node_that_do_not_say_which_it_is_are_an_error() {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "meeting::member", "--nocapture"])
        .env(PROGRAM, "sound")
        .env("DHOLE_NODES", "2")
        .env("DHOLE_MEETING", "127.0.0.1:7")
        .output()
        .unwrap();
    let said = "DHOLE_NODES is set, but DHOLE_NODE is not";
    assert!(text(&output.stdout).contains(said), "{output:?}");
    assert_eq!(output.status.code(), Some(9));
}

/// A program over threads, and one that `dhole run` starts by a script that changes variables.
#[test]
fn a_program_refuses_a_variable_that_dhole_does_not_have() {
    let said = "the environment has DHOLE_RACE, which is no variable of dhole's: is DHOLE_RACES";
    let alone = Command::new(env::current_exe().unwrap())
        .args(["--exact", "meeting::member", "--nocapture"])
        .env(PROGRAM, "sound")
        .env("DHOLE_RACE", "fail")
        .output()
        .unwrap();
    let run = run(&["-n", "2"], "DHOLE_RACE=fail exec $MEMBER", &[]);
    for output in [alone, run] {
        assert!(text(&output.stdout).contains(said), "{output:?}");
        assert_eq!(output.status.code(), Some(9));
    }
}

/// The program, under a limit of files in units of 512 bytes.
fn limited(units: u32, words: &[&str]) -> Output {
    let started = command(words, "exec $MEMBER", &[]);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -f $0; exec \"$@\"", &units.to_string()]);
    command.arg(started.get_program()).args(started.get_args());
    for (name, value) in started.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.output().unwrap()
}

#[test]
fn a_limit_of_files_is_an_error_in_words_and_ends_nothing_by_a_signal() {
    for transport in ["shm", "tcp"] {
        let (last, code) = verdict(&limited(0, &["-n", "2", "--transport", transport]));
        assert_eq!(code, 125, "{last}");
        let named = last.starts_with("dhole: starting node 0, handing over the secret: ");
        assert!(named && last.contains("`ulimit -f`"), "{last}");
        for units in [2, 2000] {
            let output = limited(units, &["-n", "2", "--transport", transport]);
            let code = output.status.code();
            if transport == "tcp" {
                assert_eq!(code, Some(0), "{output:?}");
                continue;
            }
            let (said, advice) = (text(&output.stdout), "`--transport tcp`");
            assert!(
                said.contains("`ulimit -f`") && said.contains(advice),
                "{output:?}"
            );
            assert_eq!(code, Some(9), "{output:?}");
        }
    }
    // The command's own output.
    let words = "ulimit -f 2; exec \"$0\" run -n 1 -- seq 1000 > $OUT";
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", words, env!("CARGO_BIN_EXE_dhole")]);
    let output = command
        .env("OUT", folder.path().join("out"))
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert!(
        said.contains("writing node 0's standard output: "),
        "{output:?}"
    );
    assert_eq!(output.status.code(), Some(1));
    // What a simulated program says of itself.
    let mut command = Command::new("/bin/sh");
    let words = "ulimit -f 0; exec \"$0\" sim -n 2 -- /bin/true";
    command.args(["-c", words, env!("CARGO_BIN_EXE_dhole")]);
    let (last, code) = verdict(&command.output().unwrap());
    assert!(last.contains("`ulimit -f`") && code == 125, "{last}");
}

#[test]
fn what_nobody_reads_any_more_ends_no_run() {
    // The last node writes when the reader is gone, and then ends as it likes.
    let script = "seq 100000; [ $DHOLE_NODE = 0 ] || exit 0; exit 7";
    let mut child = Command::new(env!("CARGO_BIN_EXE_dhole"))
        .args(["run", "-n", "2", "--", "/bin/sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 2];
    let mut stdout = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut stdout, &mut first).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    let last = "dhole: node 0 failed with exit code 7".to_owned();
    assert_eq!(verdict(&output), (last, 7));
}
