//! How nodes are started where a machine is not as it should be: few descriptors, no loopback of
//! IPv4 or none at all, a launcher that is killed. What takes root and `ip` says so, and holds
//! nothing, where there is neither.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio, id};
use std::{env, process};

use dhole::Config;

use crate::script_file;

/// Set for `member`.
const IS_MEMBER: &str = "DHOLE_TEST_IS_MEMBER";
const DHOLE: &str = env!("CARGO_BIN_EXE_dhole");

/// What runs on each node.
#[test]
fn member() {
    if env::var_os(IS_MEMBER).is_none() {
        return;
    }
    match Config::nodes(1).run(|w| Ok(w.barrier()?)) {
        Ok(run) => println!("{} is done", run.node()),
        Err(error) => {
            println!("{error}");
            process::exit(9);
        }
    }
}

/// Runs the program with these words before `dhole run`, and these behind it.
fn run(before: &str, words: &str) -> Output {
    let shell = format!(
        "{before} {DHOLE} run {words} -- {} --exact launch::member --nocapture",
        env::current_exe().unwrap().display()
    );
    Command::new("/bin/bash")
        .args(["-c", &shell])
        .env(IS_MEMBER, "1")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether all of so many nodes have come to their end.
fn all_done(output: &Output, nodes: usize) -> bool {
    let done = text(&output.stdout).matches(" is done").count();
    output.status.success() && done == nodes
}

#[test]
fn the_soft_limit_of_open_files_is_raised_as_far_as_the_hard_one() {
    let output = run("ulimit -Sn 40;", "-n 16 --transport tcp");
    assert!(all_done(&output, 16), "{output:?}");
    // Where that is not enough, it is said what there is to do.
    let output = run("ulimit -n 40;", "-n 16");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("Too many open files"), "{said}");
    assert!(said.contains("each node takes 3 descriptors"), "{said}");
}

#[test]
fn a_shell_may_print_before_the_agent_answers_and_not_end_its_line() {
    let noise = "#!/bin/sh\nprintf noise; printf trouble >&2; shift; exec \"$@\"\n";
    let shell = script_file(noise);
    let hosts = tempfile::NamedTempFile::new().unwrap();
    fs::write(hosts.path(), "red slots=2 address=127.0.0.1\n").unwrap();
    let (hosts, shell) = (hosts.path().display(), shell.display());
    let output = run("", &format!("--hosts {hosts} --rsh {shell} --prefix none"));
    assert!(all_done(&output, 2), "{output:?}");
    assert_eq!(text(&output.stderr), "troubletrouble");
}

/// A network namespace, gone with the value.
struct Namespace(String);

impl Namespace {
    fn new(test: &str) -> Option<Namespace> {
        let name = format!("dhole-{}-{test}", id());
        if !ip(&format!("netns add {name}")) {
            eprintln!("not root, or no network namespaces here: nothing was tested");
            return None;
        }
        Some(Namespace(name))
    }

    fn run(&self, words: &str) -> Output {
        run(&format!("exec ip netns exec {}", self.0), words)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.0));
    }
}

fn ip(words: &str) -> bool {
    let mut ip = Command::new("ip");
    let ip = ip.args(words.split(' ')).stderr(Stdio::null());
    ip.status().is_ok_and(|status| status.success())
}

#[test]
fn a_machine_with_the_loopback_of_ipv6_alone_runs_programs_over_every_transport() {
    let Some(namespace) = Namespace::new("six") else {
        return;
    };
    let name = &namespace.0;
    if !ip(&format!("-n {name} link set lo up"))
        || !ip(&format!("-n {name} addr del 127.0.0.1/8 dev lo"))
    {
        panic!("{name} has a loopback of IPv4");
    }
    for transport in ["shm", "tcp", "udp", "mixed"] {
        let output = namespace.run(&format!("-n 3 --transport {transport}"));
        assert!(all_done(&output, 3), "{transport}: {output:?}");
    }
}

#[test]
fn a_machine_whose_loopback_is_down_is_told_so_at_once() {
    let Some(namespace) = Namespace::new("down") else {
        return;
    };
    let name = &namespace.0;
    // As it is made, and with addresses that it had before.
    for up_before in [false, true] {
        if up_before {
            assert!(ip(&format!("-n {name} link set lo up")));
            assert!(ip(&format!("-n {name} link set lo down")));
        }
        let output = namespace.run("-n 2");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains("`ip link set lo up`"), "{said}");
    }
}

#[test]
fn a_launcher_that_is_killed_while_nodes_start_leaves_no_file_behind() {
    for words in ["run -n 3", "sim -n 3"] {
        let folder = tempfile::tempdir().unwrap();
        let mut dhole = Command::new(DHOLE)
            .args(words.split(' '))
            .args(["--", "/bin/sh", "-c", "echo $$; exec sleep 600"])
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut process = String::new();
        let stdout = dhole.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut process).unwrap();
        dhole.kill().unwrap();
        dhole.wait().unwrap();
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert!(left.is_empty(), "dhole {words}: {left:?}");
        // Of a simulation the program itself is left, which nobody can end any more.
        let process = process.trim().rsplit(' ').next().unwrap_or_default();
        let mut kill = Command::new("kill");
        let _ = kill.args(["-9", process]).stderr(Stdio::null()).status();
    }
}
