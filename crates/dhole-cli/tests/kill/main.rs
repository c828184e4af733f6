//! The kill matrix (`docs/trust.md`) on real processes: what becomes of the others when one node
//! dies, stops, closes its connections or runs out of memory, at each of the places where it hurts,
//! over each port.
//!
//! The programs are this very test, `ports::member` and `programs::member`, on processes that
//! `dhole run` starts.

mod ports;
mod programs;
mod sections;
mod strike;
mod survivors;
mod watchdog;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use rustix::process::{Pid, Signal, kill_process};

/// Nodes of a program. Node 1 is the victim.
const NODES: usize = 3;
/// The exit code of a node that was told of a loss.
const TOLD: i32 = 4;
/// That of a node that could not join.
const ALONE: i32 = 3;
/// How long nodes wait for one that says nothing, and for each other when they join.
const BOUNDS: [(&str, &str); 2] = [("DHOLE_BOUND_MS", "2000"), ("DHOLE_JOIN_MS", "6000")];

/// A program and a port.
#[derive(Clone, Copy, Debug)]
struct Matrix {
    /// The test that is the program.
    program: &'static str,
    transport: &'static str,
}

/// What is to come of it.
struct Outcome {
    /// The exit code of `dhole run`.
    code: i32,
    /// What each of the others says.
    says: fn(usize) -> String,
    /// What `dhole run` says.
    blames: &'static str,
}

impl Matrix {
    /// Runs the program, and looks at what comes of it, and whether anything is left.
    fn cell(self, how: &str, when: &str, outcome: &Outcome) {
        let what = format!("{how} {when}: {self:?}");
        let mut child = Command::new(env!("CARGO_BIN_EXE_dhole"))
            .args(["run", "-n", &NODES.to_string(), "--prefix", "none"])
            .args(["--transport", self.transport])
            .args(["--grace-ms", self.grace_ms(), "--"])
            .arg(env::current_exe().unwrap())
            .args(["--exact", self.program, "--nocapture", "--test-threads=1"])
            .env(strike::HOW, how)
            .env(strike::WHEN, when)
            .envs(BOUNDS.iter().filter(|_| self.is_silence(how)).copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let _watchdog = watchdog::watch(child.id(), &what);
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let errors = thread::spawn(move || stderr.lines().map_while(Result::ok).collect());
        let (mut said, mut processes, mut meeting) = (Vec::new(), Vec::new(), None);
        let (mut stays, mut done) = (None, 0);
        for line in stdout.lines().map_while(Result::ok) {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                // The test harness begins the line.
                [.., "runs", process] => processes.push(process.to_owned()),
                [.., "meets", "at", address] => meeting = Some(address.to_owned()),
                [.., "stops", process] => go_on(process),
                [.., "stays", process] => stays = Some(process.to_owned()),
                _ => {
                    done += usize::from(line.contains("is done"));
                    said.push(line);
                }
            }
            // It is waited for as long as nobody ends it.
            if let Some(process) = stays.take_if(|_| done == NODES - 1) {
                signal(&process, Signal::KILL);
            }
        }
        let code = child.wait().unwrap().code();
        let errors: Vec<String> = errors.join().unwrap();
        let all = || format!("{what}: {said:#?} {errors:#?}");
        assert_eq!(code, Some(outcome.code), "{}", all());
        for node in (0..NODES).filter(|node| *node != 1) {
            let says = (outcome.says)(node);
            let says = |line: &String| line.contains(&says);
            assert!(said.iter().any(says), "node {node}? {}", all());
        }
        let blames = |line: &String| line.contains(outcome.blames);
        let nobody = outcome.blames.is_empty();
        assert!(errors.iter().any(blames) || nobody, "{}", all());
        assert_eq!(processes.len(), NODES, "{}", all());
        assert_nothing_is_left(&what, &processes, &meeting.unwrap());
    }

    /// Whether the others learn of it by hearing nothing: where there is no connection to break.
    fn is_silence(self, how: &str) -> bool {
        how == "stopped for good" || self.transport == "udp" && how != "stopped"
    }

    /// The others are to end by themselves: they need longer where they learn of it by silence.
    fn grace_ms(self) -> &'static str {
        match self.transport {
            "udp" => "8000",
            _ => "2000",
        }
    }

    /// The row of what ends the victim with `code`; `blames` is what `dhole run` says of it.
    fn ends(self, how: &str, code: i32, blames: &'static str) {
        for when in WHENS {
            let says = match when {
                // Those who wait for the victim at the meeting point may be ended by `dhole run`.
                "at start-up" => anything,
                "at exit" => done,
                _ => lost,
            };
            self.cell(how, when, &Outcome { code, says, blames });
        }
    }

    fn killed(self) {
        let blames = "node 1 was ended by signal 9 (SIGKILL)";
        self.ends("killed", 128 + 9, blames);
    }

    fn out_of_memory(self) {
        let blames = "node 1 was ended by signal 6 (SIGABRT)";
        self.ends("out of memory", 128 + 6, blames);
    }

    /// A node that is stopped and goes on is waited for: nothing is lost.
    fn stopped(self) {
        for when in WHENS {
            let outcome = Outcome {
                code: 0,
                says: done,
                blames: "",
            };
            self.cell("stopped", when, &outcome);
        }
    }

    /// The others do not wait for ever for one that does not go on; `dhole run` ends it.
    fn stopped_for_good(self) {
        let alone = Outcome {
            code: ALONE,
            says: missed,
            blames: "was stopped (signal STOP) before it had joined the others, and did not go on",
        };
        self.cell("stopped for good", "at start-up", &alone);
        self.told("stopped for good");
        self.waited_for("stopped for good");
    }

    /// The others are done; who does not end is waited for until somebody ends it.
    fn waited_for(self, how: &str) {
        let outcome = Outcome {
            code: 128 + 9,
            says: done,
            blames: "node 1 was ended by signal 9 (SIGKILL)",
        };
        self.cell(how, "at exit", &outcome);
    }

    /// The others hear of it; the victim itself, which lives on, is ended by `dhole run`.
    fn told(self, how: &str) {
        for when in ["in a barrier", "with a lock held", "during a fetch"] {
            let outcome = Outcome {
                code: TOLD,
                says: lost,
                blames: "node 1 was lost to node ",
            };
            self.cell(how, when, &outcome);
        }
    }
}

fn anything(_: usize) -> String {
    String::new()
}

fn done(node: usize) -> String {
    format!("node {node} is done")
}

fn lost(node: usize) -> String {
    format!("node {node} lost node 1")
}

fn missed(node: usize) -> String {
    format!("node {node} did not join: ")
}

fn assert_nothing_is_left(what: &str, processes: &[String], meeting: &str) {
    for process in processes {
        let stat = fs::read_to_string(format!("/proc/{process}/stat"));
        let gone = stat.is_err() || stat.is_ok_and(|s| s.contains(") Z"));
        assert!(gone, "{what}: process {process} is left");
    }
    let refused = std::net::TcpStream::connect(meeting);
    assert!(refused.is_err(), "{what}: {meeting} is left");
    // Memory that is shared has no name: it goes with the last process. Nothing may have one.
    for entry in fs::read_dir("/dev/shm").unwrap() {
        let name = entry.unwrap().file_name();
        assert!(
            !name.to_string_lossy().contains("dhole"),
            "{what}: {name:?}"
        );
    }
}

/// Lets a process go on that has stopped itself.
fn go_on(process: &str) {
    let state = || fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The kernel tells nobody but its parent that a process has stopped: so it is looked at again
    // and again, for a minute at most.
    let stopped = (0..12_000).any(|_| {
        let stopped = state().contains(") T");
        if !stopped {
            thread::sleep(Duration::from_millis(5));
        }
        stopped
    });
    assert!(stopped, "process {process} has not stopped itself");
    signal(process, Signal::CONT);
}

fn signal(process: &str, signal: Signal) {
    let process = Pid::from_raw(process.parse().unwrap()).unwrap();
    kill_process(process, signal).unwrap();
}

/// Where it happens.
const WHENS: [&str; 5] = [
    "at start-up",
    "in a barrier",
    "with a lock held",
    "during a fetch",
    "at exit",
];

fn over_a_bare_port(transport: &'static str) {
    let closed = |matrix: Matrix| matrix.told("closed");
    side_by_side("ports::member", transport, &[ALL_ROWS, &[closed]].concat());
}

fn over_a_program(transport: &'static str) {
    side_by_side("programs::member", transport, ALL_ROWS);
}

/// The rows that are quick: of the ports that are made of others, for every day.
fn in_short(program: &'static str, transport: &'static str) {
    side_by_side(program, transport, &[Matrix::killed, Matrix::stopped]);
}

/// One way to end the victim, at each place.
type Row = fn(Matrix);

const ALL_ROWS: &[Row] = &[
    Matrix::killed,
    Matrix::out_of_memory,
    Matrix::stopped,
    Matrix::stopped_for_good,
];

/// Runs the rows at the same time: a cell computes little, and waits for limits of time.
fn side_by_side(program: &'static str, transport: &'static str, rows: &[Row]) {
    let matrix = Matrix { program, transport };
    thread::scope(|scope| {
        for row in rows {
            scope.spawn(move || row(matrix));
        }
    });
}

#[test]
fn a_bare_port_over_udp_in_short() {
    in_short("ports::member", "udp");
}

#[test]
fn a_bare_port_over_mixed_in_short() {
    in_short("ports::member", "mixed");
}

#[test]
fn a_program_over_mixed_in_short() {
    in_short("programs::member", "mixed");
}

#[test]
#[ignore = "a minute: the rest of the matrix, cargo test -p dhole-cli --test kill -- --ignored"]
fn a_bare_port_over_udp() {
    over_a_bare_port("udp");
}

#[test]
#[ignore = "half a minute: the rest; cargo test -p dhole-cli --test kill -- --ignored"]
fn a_bare_port_over_mixed() {
    over_a_bare_port("mixed");
}

#[test]
#[ignore = "half a minute: the rest; cargo test -p dhole-cli --test kill -- --ignored"]
fn a_program_over_mixed() {
    over_a_program("mixed");
}

/// The whole matrix, of bare ports beside that of programs.
fn over(transport: &'static str) {
    thread::scope(|scope| {
        scope.spawn(|| over_a_bare_port(transport));
        over_a_program(transport);
    });
}

#[test]
fn everything_over_tcp() {
    over("tcp");
}

#[test]
fn everything_over_shared_memory() {
    over("shm");
}

#[test]
fn a_program_over_udp() {
    over_a_program("udp");
}
