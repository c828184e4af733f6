//! Starting a program's processes, and what comes of them.

use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};

/// The variable that names what a started process is to do.
pub const PROGRAM: &str = "DHOLE_TEST_PROGRAM";

/// No program here takes a hundredth of it.
const LONGEST: Duration = Duration::from_secs(120);

/// What one process came to.
pub struct Ended {
    /// The exit code, if it was not killed.
    pub code: Option<i32>,
    /// What it said, a line each.
    pub said: Vec<String>,
    /// All that it wrote, for a test that fails.
    pub all: String,
}

/// Runs a program on `nodes` processes, each with the variables that `also` says, and returns when
/// all have ended.
pub fn run_with(
    nodes: usize,
    program: &str,
    also: impl Fn(usize) -> Vec<(String, String)>,
) -> Vec<Ended> {
    run_within(LONGEST, nodes, program, also)
}

/// As [`run_with`]. The test fails where the processes have not ended after so long.
pub fn run_within(
    longest: Duration,
    nodes: usize,
    program: &str,
    also: impl Fn(usize) -> Vec<(String, String)>,
) -> Vec<Ended> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let meeting = listener.local_addr().expect("it has one").to_string();
    let mut secret = tempfile::NamedTempFile::new().expect("a place for the secret");
    let word: String = (0..32)
        .map(|i| char::from(b'a' + (i * 7 % 26) as u8))
        .collect();
    secret.write_all(word.as_bytes()).expect("it is written");
    // Only node 0 is told of it, but only between these lines does any child get it.
    fcntl_setfd(&listener, FdFlags::empty()).expect("a flag of a descriptor");
    let (sender, ends) = mpsc::channel();
    let mut children = Vec::new();
    for node in 0..nodes {
        let mut command = Command::new(std::env::current_exe().expect("this file"));
        command
            .args(["--exact", "as_one_node", "--nocapture", "--test-threads=1"])
            .env(PROGRAM, program)
            .env("DHOLE_NODE", node.to_string())
            .env("DHOLE_NODES", nodes.to_string())
            .env("DHOLE_MEETING", &meeting)
            .env("DHOLE_TRANSPORT", "tcp")
            .env("DHOLE_SECRET_FILE", secret.path())
            .envs(also(node))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if node == 0 {
            use std::os::fd::AsRawFd;
            command.env("DHOLE_MEETING_FD", listener.as_raw_fd().to_string());
        }
        let child = command.spawn().expect("this file starts");
        children.push(child.id());
        let sender = sender.clone();
        std::thread::spawn(move || sender.send((node, child.wait_with_output())));
    }
    drop(listener);
    let mut all: Vec<Option<Ended>> = (0..nodes).map(|_| None).collect();
    for _ in 0..nodes {
        let Ok((node, output)) = ends.recv_timeout(longest) else {
            for child in children {
                let pid = rustix::process::Pid::from_raw(child as i32).expect("a process");
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            let left = all.iter().filter(|ended| ended.is_none()).count();
            panic!("{program}: {left} processes have not ended after {longest:?}");
        };
        all[node] = Some(ended(output.expect("it was waited for")));
    }
    all.into_iter().flatten().collect()
}

fn ended(output: Output) -> Ended {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // The harness of the tests writes to the same place, in lines of its own.
    let said = text.lines().filter_map(|line| line.split_once("=> "));
    Ended {
        code: output.status.code(),
        said: said.map(|(_, said)| said.to_owned()).collect(),
        all: text.clone() + &String::from_utf8_lossy(&output.stderr),
    }
}

/// As [`run_with`], without more variables.
pub fn run(nodes: usize, program: &str) -> Vec<Ended> {
    run_with(nodes, program, |_| Vec::new())
}

/// What node 0 said of a program that must succeed everywhere.
pub fn succeeds(nodes: usize, program: &str) -> Vec<String> {
    let ended = run(nodes, program);
    for (node, ended) in ended.iter().enumerate() {
        assert_eq!(
            ended.code,
            Some(0),
            "{program} on node {node}: {}",
            ended.all
        );
    }
    ended.into_iter().next().expect("node 0").said
}
