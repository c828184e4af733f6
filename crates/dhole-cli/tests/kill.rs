//! The kill matrix (`docs/trust.md`) on real processes: what becomes of the others when one node dies, stops,
//! closes its connections or runs out of memory, at each of the places where it hurts, over each port.
//!
//! The program is this very test, [`member`], on processes that `dhole run` starts.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs, process, thread};

use dhole_model::NodeId;
use dhole_net::{Loss, Membership, Port, SendError};
use rustix::process::{Pid, Resource, Rlimit, Signal, getpid, kill_process, setrlimit};

const NODES: usize = 3;
/// Who dies.
const VICTIM: NodeId = NodeId(1);
/// The exit code of a node that was told of a loss.
const TOLD: i32 = 4;
/// The exit code of a node that could not join.
const ALONE: i32 = 3;
/// Longer than anything takes that comes to an end.
const LONG: Duration = Duration::from_secs(60);

const HOW: &str = "DHOLE_TEST_HOW";
const WHEN: &str = "DHOLE_TEST_WHEN";

/// One node of the program.
struct Member {
    port: Box<dyn Port>,
    heard: Vec<(NodeId, u8)>,
}

const ARRIVED: u8 = 1;
const PASS: u8 = 2;
const WANTS_LOCK: u8 = 3;
const HAS_LOCK: u8 = 4;
const GIVES_LOCK: u8 = 5;
const FETCH: u8 = 6;
const VALUE: u8 = 7;
/// And the number of the node that is lost.
const LOST: u8 = 100;

impl Member {
    fn me(&self) -> NodeId {
        self.port.me()
    }

    fn say(&mut self, to: NodeId, word: u8) {
        loop {
            match self.port.send(to, &[&[word]]) {
                Ok(()) => return,
                Err(SendError::Busy { .. }) => self.port.park(Duration::from_millis(1)),
                Err(SendError::Lost { .. }) => self.end_if_lost(),
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// Waits until this word has come from so many nodes.
    fn hear(&mut self, word: u8, count: usize) -> NodeId {
        loop {
            let heard = &mut self.heard;
            self.port
                .poll(&mut |from, frame| heard.push((from, frame[0])));
            let mut of_it = self.heard.iter().filter(|(_, w)| *w == word);
            if of_it.clone().count() >= count {
                let from = of_it.next().map_or(self.me(), |(from, _)| *from);
                self.heard.retain(|(_, w)| *w != word);
                return from;
            }
            self.end_if_lost();
            self.port.park(Duration::from_millis(100));
        }
    }

    /// A node that was told of a loss ends, and says to the others why: so none of them takes it for the cause.
    fn end_if_lost(&mut self) {
        let (me, heard) = (self.me(), &mut self.heard);
        self.port
            .poll(&mut |from, frame| heard.push((from, frame[0])));
        let mut lost = None;
        self.port.lost(&mut |peer, loss| {
            // It has heard the last word of node 0 sooner than this node.
            if loss == Loss::Left {
                return;
            }
            let first: &mut Option<_> = &mut lost;
            first.get_or_insert((peer, loss.to_string()));
        });
        let mut told = self.heard.iter().filter(|(_, word)| *word >= LOST);
        if let Some((from, word)) = told.next() {
            let peer = NodeId::at(usize::from(*word - LOST));
            lost = Some((peer, format!("as {from} says")));
        }
        let Some((peer, how)) = lost else {
            return;
        };
        println!("{me} lost {peer}: {how}");
        for other in (0..NODES).map(NodeId::at).filter(|n| *n != me) {
            // Who is gone need not be told.
            let _ = self.port.send(other, &[&[LOST + peer.0 as u8]]);
        }
        self.port.close(Duration::from_secs(1));
        process::exit(TOLD);
    }

    fn barrier(&mut self) {
        let zero = NodeId(0);
        if self.me() == zero {
            self.hear(ARRIVED, NODES - 1);
            (1..NODES).for_each(|node| self.say(NodeId::at(node), PASS));
        } else {
            self.say(zero, ARRIVED);
            self.hear(PASS, 1);
        }
    }
}

/// What happens to the victim.
fn happens(port: &mut Option<Member>) {
    match env::var(HOW).unwrap().as_str() {
        "killed" => kill_process(getpid(), Signal::KILL).unwrap(),
        "stopped" => {
            println!("stops {}", process::id());
            kill_process(getpid(), Signal::STOP).unwrap();
            return;
        }
        // Its connections are closed without a goodbye, and it lives on.
        "closed" => drop(port.take()),
        "out of memory" => {
            let most = Rlimit {
                current: Some(1 << 20),
                maximum: Some(1 << 20),
            };
            setrlimit(Resource::As, most).unwrap();
            let bytes = vec![1u8; 1 << 30];
            println!("{}", bytes[bytes.len() / 2]);
        }
        other => panic!("{other}"),
    }
    thread::sleep(LONG * 10);
}

#[test]
fn member() {
    let (Ok(when), Some(membership)) = (env::var(WHEN), Membership::from_env().unwrap()) else {
        return;
    };
    let me = membership.node();
    println!("runs {}", process::id());
    if me.0 == 0 {
        println!("meets at {}", env::var("DHOLE_MEETING").unwrap());
    }
    let mut none = None;
    let strikes = |now: &str| me == VICTIM && when == now;
    if strikes("at start-up") {
        happens(&mut none);
    }
    let port = match membership.join() {
        Ok(port) => port,
        Err(error) => {
            println!("{me} did not join: {error}");
            process::exit(ALONE);
        }
    };
    let mut member = Member {
        port,
        heard: Vec::new(),
    };
    member.barrier();
    let mut member = Some(member);
    if strikes("in a barrier") {
        happens(&mut member);
    }
    let mut it = member.take().unwrap();
    it.barrier();

    // Node 0 hands out a lock, first to the victim.
    match me {
        NodeId(0) => {
            assert_eq!(it.hear(WANTS_LOCK, 1), VICTIM);
            it.say(VICTIM, HAS_LOCK);
            it.hear(GIVES_LOCK, 1);
        }
        VICTIM => {
            it.say(NodeId(0), WANTS_LOCK);
            it.hear(HAS_LOCK, 1);
            let mut holder = Some(it);
            if strikes("with a lock held") {
                happens(&mut holder);
            }
            it = holder.take().unwrap();
            it.say(NodeId(0), GIVES_LOCK);
        }
        _ => {}
    }

    // All others fetch from the victim.
    if me == VICTIM {
        it.hear(FETCH, NODES - 1);
        let mut owner = Some(it);
        if strikes("during a fetch") {
            happens(&mut owner);
        }
        it = owner.take().unwrap();
        it.say(NodeId(0), VALUE);
        it.say(NodeId(2), VALUE);
    } else {
        it.say(VICTIM, FETCH);
        it.hear(VALUE, 1);
    }
    it.barrier();

    let mut last = Some(it);
    if strikes("at exit") {
        happens(&mut last);
    }
    last.take().unwrap().port.close(Duration::from_secs(5));
    println!("{me} is done");
}

/// What is to come of it.
#[derive(Debug)]
struct Outcome {
    /// The exit code of `dhole run`.
    code: i32,
    /// What the others say; the victim is never named by itself.
    says: fn(usize) -> String,
    /// What `dhole run` says.
    blames: &'static str,
}

/// Runs the program, and looks at what comes of it, and whether anything is left.
fn cell(transport: &str, how: &str, when: &str, outcome: &Outcome) {
    let what = format!("{how} {when} over {transport}");
    let mut child = Command::new(env!("CARGO_BIN_EXE_dhole"))
        .args([
            "run",
            "-n",
            &NODES.to_string(),
            "--transport",
            transport,
            "--prefix",
            "none",
        ])
        .args(["--grace-ms", "2000", "--"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "member", "--nocapture", "--test-threads=1"])
        .env(HOW, how)
        .env(WHEN, when)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let errors = thread::spawn(move || stderr.lines().map_while(Result::ok).collect::<Vec<_>>());
    let (mut said, mut processes, mut meeting) = (Vec::new(), Vec::new(), None);
    for line in stdout.lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            // The test harness begins the line.
            [.., "runs", process] => processes.push(process.to_owned()),
            [.., "meets", "at", address] => meeting = Some(address.to_owned()),
            [.., "stops", process] => go_on(process),
            _ => said.push(line),
        }
    }
    let code = child.wait().unwrap().code();
    let errors = errors.join().unwrap();
    let all = || format!("{what}: {said:#?} {errors:#?}");
    assert_eq!(code, Some(outcome.code), "{}", all());
    for node in (0..NODES).filter(|n| NodeId::at(*n) != VICTIM) {
        let says = (outcome.says)(node);
        assert!(
            said.iter().any(|line| line.contains(&says)),
            "{says}? {}",
            all()
        );
    }
    let blames = |line: &String| line.contains(outcome.blames);
    assert!(
        errors.iter().any(blames) || outcome.blames.is_empty(),
        "{}",
        all()
    );

    assert_eq!(processes.len(), NODES, "{}", all());
    for process in processes {
        let stat = fs::read_to_string(format!("/proc/{process}/stat"));
        let gone = stat.is_err() || stat.is_ok_and(|s| s.contains(") Z"));
        assert!(gone, "{what}: process {process} is left");
    }
    let meeting = meeting.unwrap();
    let refused = std::net::TcpStream::connect(&meeting);
    assert!(refused.is_err(), "{what}: {meeting} is left");
    let memory = fs::read_dir("/dev/shm")
        .unwrap()
        .map(|e| e.unwrap().file_name());
    let of_ours = |name: &std::ffi::OsString| name.to_string_lossy().contains("dhole");
    assert_eq!(memory.filter(of_ours).count(), 0, "{what}");
}

/// Lets a process go on that has stopped itself.
fn go_on(process: &str) {
    let state = || fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    while !state().contains(") T") {
        thread::sleep(Duration::from_millis(5));
    }
    kill_process(
        Pid::from_raw(process.parse().unwrap()).unwrap(),
        Signal::CONT,
    )
    .unwrap();
}

const WHENS: [&str; 5] = [
    "at start-up",
    "in a barrier",
    "with a lock held",
    "during a fetch",
    "at exit",
];

fn done(node: usize) -> String {
    format!("node {node} is done")
}

fn lost(node: usize) -> String {
    format!("node {node} lost node 1: ")
}

/// The row of what ends the victim with `code`; `blames` is what `dhole run` says of it.
fn ends(transport: &str, how: &str, code: i32, blames: &'static str) {
    for when in WHENS {
        let says: fn(usize) -> String = match when {
            // Those who wait for the victim at the meeting point are ended by `dhole run`.
            "at start-up" => |_| String::new(),
            "at exit" => done,
            _ => lost,
        };
        cell(transport, how, when, &Outcome { code, says, blames });
    }
}

fn killed(transport: &str) {
    ends(
        transport,
        "killed",
        128 + 9,
        "node 1 was ended by signal 9 (SIGKILL)",
    );
}

fn out_of_memory(transport: &str) {
    ends(
        transport,
        "out of memory",
        128 + 6,
        "node 1 was ended by signal 6 (SIGABRT)",
    );
}

/// A node that is stopped and goes on is waited for: nothing is lost.
fn stopped(transport: &str) {
    for when in WHENS {
        let blames = "";
        let (code, says) = (0, done as fn(usize) -> String);
        cell(transport, "stopped", when, &Outcome { code, says, blames });
    }
}

/// The others hear of it at once; the victim itself, which lives on, is ended by `dhole run`.
fn closed(transport: &str) {
    for when in ["in a barrier", "with a lock held", "during a fetch"] {
        let (code, says) = (TOLD, lost as fn(usize) -> String);
        let blames = "failed with exit code 4";
        cell(transport, "closed", when, &Outcome { code, says, blames });
    }
}

#[test]
fn over_tcp() {
    killed("tcp");
    out_of_memory("tcp");
    stopped("tcp");
    closed("tcp");
}

#[test]
fn over_shared_memory() {
    killed("shm");
    out_of_memory("shm");
    stopped("shm");
    closed("shm");
}
