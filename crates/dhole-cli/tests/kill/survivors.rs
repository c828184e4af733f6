//! A run that goes on when nodes die: all write a replicated object, one of them is killed or
//! stopped in the middle, and the others finish with every write that anybody was told is done.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::{env, process, thread};

use dhole::tasks::{Schedule, Tasks, for_each};
use dhole::{Config, NodeId, ObjectError, Refusal, Result, RunError, Worker, on, replicated};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::{BOUNDS, NODES, TOLD, assert_nothing_is_left, strike, watchdog};

/// How many lines each node writes, if the environment does not say.
const LINES: u32 = 400;
/// In the environment: how many lines each node writes.
const WRITES: &str = "DHOLE_TEST_WRITES";
/// The test that is the program.
const PROGRAM: &str = "survivors::member";
const RUNS: &str = "DHOLE_TEST_SURVIVES";
/// In the environment: the node that ends badly when its run is over.
const ENDS_BADLY: &str = "DHOLE_TEST_ENDS_BADLY";
/// In the environment: the node that kills itself in the middle.
const DIES: &str = "DHOLE_TEST_DIES";
/// In the environment: the program says that its run survives, and the command line does not.
const BY_PROGRAM: &str = "DHOLE_TEST_BY_PROGRAM";
/// In the environment: when its run is over, node 0 alone prints what came of it.
const NODE_0_PRINTS: &str = "DHOLE_TEST_NODE_0_PRINTS";

/// In the environment: the nodes run tasks, so many in all, in place of writing.
const TASKS: &str = "DHOLE_TEST_TASKS";
/// In the environment: the nodes divide so many numbers, in place of writing.
const NUMBERS: &str = "DHOLE_TEST_NUMBERS";

/// In the environment: the nodes write to a service on this node, whose operations take a worker.
const SERVES: &str = "DHOLE_TEST_SERVES";

type Lines = Vec<(u16, u32)>;

#[derive(Serialize, Deserialize, Default)]
struct Log(Lines);

#[dhole::object]
impl Log {
    pub fn add(&mut self, node: u16, line: u32) {
        self.0.push((node, line));
    }

    pub fn lines(&self) -> Lines {
        self.0.clone()
    }
}

/// A log that one node keeps, in a form that never becomes bytes.
struct Service {
    lines: Mutex<Lines>,
}

#[dhole::object(resident)]
impl Service {
    #[new]
    pub fn open() -> Self {
        let lines = Mutex::default();
        Service { lines }
    }

    pub fn add(&mut self, w: &mut Worker<'_>, node: u16, line: u32) -> Result<()> {
        w.pause()?; // in mid-call others have their turn
        self.lines.get_mut().unwrap().push((node, line));
        Ok(())
    }

    pub fn lines(&self) -> Lines {
        self.lines.lock().unwrap().clone()
    }
}

/// Writes to a service. Returns its lines, or none if it was lost.
fn calls_a_service(w: &mut Worker<'_>, at: u16, lines: u32) -> Result<Lines> {
    let service = w.once(|w| Ok(Service::open_in(w, on(NodeId(at)))?))?;
    let me = w.node().0;
    for line in 0..lines {
        match service.add(w, me, line) {
            Ok(()) => println!("wrote {me} {line}"),
            Err(ObjectError::Refused {
                cause: Refusal::Lost(node) | Refusal::Unanswered(node),
                ..
            }) => {
                println!("refused {me} {node}");
                return Ok(Lines::new());
            }
            Err(error) => return Err(error.into()),
        }
    }
    w.barrier()?;
    Ok(service.lines(w)?)
}

/// Runs tasks, each of which divides its number among two others. Returns how many counted.
fn runs_tasks(w: &mut Worker<'_>, all: u32) -> Result<Lines> {
    let tasks = w.once(|w| {
        let tasks = Tasks::<u32>::new(w)?;
        tasks.push(w, all)?;
        Ok(tasks)
    })?;
    let (me, mut mine) = (w.node().0, 0);
    let counted = tasks.reduce(
        w,
        |_, number, more| {
            let rest = number - 1;
            for part in [rest / 2, rest - rest / 2] {
                if part > 0 {
                    more.push(part)?;
                }
            }
            spins();
            println!("wrote {me} {mine}");
            mine += 1;
            Ok(1)
        },
        |one, other| one + other,
    )?;
    Ok(vec![(0, counted.unwrap_or(0))])
}

/// As long as a short task is.
fn spins() {
    let spun = (0..20_000_u64).fold(1, |so_far, next| black_box(so_far ^ next));
    black_box(spun);
}

/// The numbers that were called with.
#[derive(Serialize, Deserialize, Default)]
struct Called(BTreeSet<u64>);

#[dhole::object]
impl Called {
    pub fn with(&mut self, number: u64) {
        self.0.insert(number);
    }

    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }
}

/// Divides so many numbers among the nodes. Returns with how many of them a node was called.
fn calls_with(w: &mut Worker<'_>, all: u64) -> Result<Lines> {
    let called = w.once(|w| Ok(w.new_object(replicated(), Called::default())?))?;
    let (me, mut mine) = (w.node().0, 0);
    for_each(w, 0..all, Schedule::Dynamic(4), |w, number| {
        spins();
        called.with(w, number)?;
        println!("wrote {me} {mine}");
        mine += 1;
        Ok(())
    })?;
    Ok(vec![(0, called.count(w)?)])
}

fn program(w: &mut Worker<'_>) -> Result<Lines> {
    if let Ok(all) = env::var(TASKS) {
        return runs_tasks(w, all.parse().unwrap());
    }
    if let Ok(all) = env::var(NUMBERS) {
        return calls_with(w, all.parse().unwrap());
    }
    let me = w.node().0;
    let lines = env::var(WRITES).map_or(LINES, |lines| lines.parse().unwrap());
    if let Ok(at) = env::var(SERVES) {
        return calls_a_service(w, at.parse().unwrap(), lines);
    }
    let log = w.once(|w| Ok(w.new_object(replicated(), Log::default())?))?;
    let dies = env::var(DIES).is_ok_and(|node| node == me.to_string());
    for line in 0..lines {
        if dies && line == lines / 2 {
            kill_process(rustix::process::getpid(), Signal::KILL).unwrap();
        }
        log.add(w, me, line)?;
        println!("wrote {me} {line}");
    }
    w.barrier()?;
    Ok(log.lines(w)?)
}

#[test]
fn member() {
    if env::var(RUNS).is_err() {
        return;
    }
    let me = env::var("DHOLE_NODE").unwrap();
    println!();
    strike::introduce();
    println!("pid {me} {}", process::id());
    let config = Config::nodes(NODES);
    let config = match env::var(BY_PROGRAM) {
        Ok(_) => config.survive(true),
        Err(_) => config,
    };
    match config.run(program) {
        Ok(_) if env::var(ENDS_BADLY).is_ok_and(|node| node == me) => process::abort(),
        Ok(_) if env::var(NODE_0_PRINTS).is_ok() && me != "0" => process::exit(0),
        Ok(run) => {
            let words = run
                .value
                .iter()
                .map(|(node, line)| format!("{node}:{line}"));
            let words: Vec<String> = words.collect();
            let lost = run.report.lost.iter().map(|lost| lost.node.to_string());
            let lost: Vec<String> = lost.collect();
            println!("without {me} {}", lost.join(","));
            println!("log {me} {}", words.join(" "));
        }
        Err(RunError::Failed { error, .. }) => {
            println!("failed {me} {error}");
            process::exit(TOLD);
        }
        Err(error) => panic!("node {me}: {error}"),
    }
}

/// What a run said.
#[derive(Default, Debug)]
struct Said {
    /// How many lines each node was to write.
    lines: u32,
    /// Which lines which node was told are written: how many.
    wrote: BTreeMap<u16, u32>,
    processes: BTreeMap<u16, i32>,
    /// What each node that finished found written.
    logs: BTreeMap<u16, Lines>,
    without: BTreeMap<u16, String>,
    failed: BTreeMap<u16, String>,
    /// Whose loss each node was told of by a call.
    refused: BTreeMap<u16, String>,
    meeting: String,
    errors: Vec<String>,
    code: Option<i32>,
}

impl Said {
    fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["wrote", node, line] => {
                self.wrote
                    .insert(number(node) as u16, number(line) as u32 + 1);
            }
            ["pid", node, process] => {
                self.processes.insert(number(node) as u16, number(process));
            }
            ["meets", "at", address] => address.clone_into(&mut self.meeting),
            ["without", node, ref lost @ ..] => {
                self.without.insert(number(node) as u16, lost.join(" "));
            }
            ["log", node, ref lines @ ..] => {
                let line = |word: &&str| {
                    let (node, line) = word.split_once(':').unwrap();
                    (number(node) as u16, number(line) as u32)
                };
                let lines = lines.iter().filter(|word| !word.is_empty());
                let lines = lines.map(line).collect();
                self.logs.insert(number(node) as u16, lines);
            }
            ["refused", node, ref lost @ ..] => {
                self.refused.insert(number(node) as u16, lost.join(" "));
            }
            ["failed", node, ..] => {
                self.failed.insert(number(node) as u16, line.to_owned());
            }
            _ => {}
        }
    }

    /// Signals a node, unless it has ended.
    fn signal(&self, node: u16, signal: Signal) {
        let process = Pid::from_raw(self.processes[&node]).unwrap();
        match kill_process(process, signal) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => panic!("{signal:?} to node {node}: {error}"),
        }
    }
}

fn number(word: &str) -> i32 {
    word.parse().unwrap()
}

/// Runs the program; `strikes` is asked after each line what is to happen.
/// The nodes write so many lines, and have these variables in their environment.
fn run(transport: &str, lines: u32, has: &[(&str, &str)], mut strikes: impl FnMut(&Said)) -> Said {
    let by_program = has.iter().any(|(name, _)| *name == BY_PROGRAM);
    let survive = if by_program { None } else { Some("--survive") };
    let mut child = Command::new(env!("CARGO_BIN_EXE_dhole"))
        .args(["run", "-n", &NODES.to_string()])
        .args(survive)
        .args(["--prefix", "none", "--transport", transport, "--"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", PROGRAM, "--nocapture", "--test-threads=1"])
        .env(RUNS, "1")
        .env(WRITES, lines.to_string())
        .envs(BOUNDS)
        .envs(has.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let what = format!("a run that survives, over {transport}");
    let _watchdog = watchdog::watch(child.id(), &what);
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let errors = thread::spawn(move || stderr.lines().map_while(Result::ok).collect());
    let mut said = Said {
        lines,
        ..Said::default()
    };
    for line in stdout.lines().map_while(std::result::Result::ok) {
        said.take(&line);
        strikes(&said);
    }
    said.code = child.wait().unwrap().code();
    said.errors = errors.join().unwrap();
    let processes: Vec<String> = said.processes.values().map(i32::to_string).collect();
    assert_eq!(processes.len(), NODES, "{said:#?}");
    assert_nothing_is_left(transport, &processes, &said.meeting);
    said
}

/// That those who are left have finished, with all that anybody was told is written.
fn check(said: &Said, victim: u16) {
    let left: Vec<u16> = (0..NODES as u16).filter(|node| *node != victim).collect();
    let finished: Vec<u16> = said.logs.keys().copied().collect();
    assert_eq!((said.code, &finished), (Some(0), &left), "{said:#?}");
    let all: Vec<&Lines> = said.logs.values().collect();
    assert!(all.windows(2).all(|two| two[0] == two[1]), "{said:#?}");
    for node in 0..NODES as u16 {
        let of_node = all[0].iter().filter(|(by, _)| *by == node);
        let of_node: Vec<u32> = of_node.map(|(_, line)| *line).collect();
        let there = of_node.len() as u32;
        assert!(of_node.iter().copied().eq(0..there), "{said:#?}");
        let told = said.wrote.get(&node).copied().unwrap_or(0);
        assert!(there >= told, "node {node} was told of {told}: {said:#?}");
        assert!(there == said.lines || node == victim, "{said:#?}");
    }
    let without = format!("node {victim}");
    assert!(
        said.without.values().all(|lost| *lost == without),
        "{said:#?}"
    );
}

/// What a run says that is struck before the node's run is over. A machine that does much else
/// reads lines late, and the whole run may be over by then. Such a run is done again with twice as
/// many lines.
fn in_time(victim: u16, mut run: impl FnMut(u32) -> Said) -> Said {
    const DOUBLINGS: u32 = 8;
    let over = format!("the run of node {victim} was over");
    let is_late = |said: &Said| {
        said.logs.contains_key(&victim) || said.errors.iter().any(|line| line.contains(&over))
    };
    let mut said = (0..=DOUBLINGS).map(|doublings| run(LINES << doublings));
    let struck = said.find(|said| !is_late(said));
    struck.unwrap_or_else(|| panic!("node {victim} was too fast in {DOUBLINGS} runs"))
}

/// Kills a node when it has written so many lines.
fn killed(transport: &str, victim: u16, lines: u32) {
    killed_with(transport, &[], victim, lines);
}

/// The same with these in the environment.
fn killed_with(transport: &str, has: &[(&str, &str)], victim: u16, lines: u32) {
    let said = in_time(victim, |all| {
        killed_once(transport, all, has, victim, lines)
    });
    check(&said, victim);
    let blames = format!("dhole: node {victim} was ended by signal 9 (SIGKILL)");
    assert!(said.errors.contains(&blames), "{said:#?}");
}

/// One run of so many lines of which a node is killed when it has written some of them.
fn killed_once(transport: &str, all: u32, has: &[(&str, &str)], victim: u16, lines: u32) -> Said {
    let mut alive = true;
    run(transport, all, has, |said| {
        if alive && said.wrote.get(&victim).is_some_and(|wrote| *wrote >= lines) {
            alive = false;
            said.signal(victim, Signal::KILL);
        }
    })
}

/// Kills a node when it has run so many tasks, or been called with so many numbers. Those that are
/// left count each once.
fn killed_amid(transport: &str, kind: &str, victim: u16, ran: u32) {
    let mut all = 0;
    let said = in_time(victim, |lines| {
        all = NODES as u32 * lines;
        let has = [(kind, &*all.to_string())];
        killed_once(transport, lines, &has, victim, ran)
    });
    let left: Vec<u16> = (0..NODES as u16).filter(|node| *node != victim).collect();
    assert!(said.logs.keys().eq(&left), "{said:#?}");
    let counted: Vec<u32> = said.logs.values().map(|log| log[0].1).collect();
    assert_eq!(
        (said.code, counted),
        (Some(0), vec![all; NODES - 1]),
        "{said:#?}"
    );
    let ran: u32 = said.wrote.values().sum();
    println!("{transport}: node {victim} was killed; {kind}: {ran} were run of {all}");
}

/// Kills a client of a service in the middle of its calls. The service takes those of the others.
fn killed_client(transport: &str) {
    killed_with(transport, &[(SERVES, "0")], 1, 20);
}

/// Kills the node of a service. Each caller is told so by its call, and goes on.
fn killed_service(transport: &str) {
    let said = in_time(1, |all| {
        killed_once(transport, all, &[(SERVES, "1")], 1, 20)
    });
    let left = [0, 2];
    assert!(said.logs.keys().eq(&left), "{said:#?}");
    assert!(said.refused.keys().eq(&left), "{said:#?}");
    let told = |lost: &String| lost == "node 1";
    assert!(said.refused.values().all(told), "{said:#?}");
    assert_eq!(said.code, Some(0), "{said:#?}");
}

/// Stops a node for longer than the others wait, and lets it go on when they are done.
fn stopped(transport: &str, victim: u16) {
    let said = in_time(victim, |lines| {
        let (mut stopped, mut goes_on) = (false, false);
        run(transport, lines, &[], |said| {
            if !stopped && said.wrote.get(&victim).is_some_and(|wrote| *wrote >= 20) {
                stopped = true;
                said.signal(victim, Signal::STOP);
            }
            if !goes_on && said.logs.len() == NODES - 1 {
                goes_on = true;
                said.signal(victim, Signal::CONT);
            }
        })
    });
    check(&said, victim);
    let words = said.failed.get(&victim);
    assert!(
        words.is_some_and(|words| words.contains("out of the run")),
        "{said:#?}"
    );
}

/// Nobody does for a node what it had to do when its run was over.
#[test]
fn and_one_that_is_ended_after_the_run_is_an_error() {
    let said = run("shm", LINES, &[(ENDS_BADLY, "0")], |_| ());
    assert_eq!(said.code, Some(134), "{said:#?}");
    assert_eq!(said.logs.len(), NODES - 1, "{said:#?}");
    let words = "dhole: the run of node 0 was over: what it had to print may be missing";
    assert!(said.errors.iter().any(|line| line == words), "{said:#?}");
}

/// A program that prints on node 0 alone prints nothing where that is lost: no success.
#[test]
fn and_one_whose_result_nobody_prints_is_an_error() {
    let only_node_0 = "[ $DHOLE_NODE = 0 ] || exec \"$0\" \"$@\" >/dev/null; exec \"$0\" \"$@\"";
    for (victim, code) in [("0", 137), ("1", 0)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dhole"));
        command
            .args(["run", "-n", &NODES.to_string(), "--survive", "--"])
            .args(["/bin/sh", "-c", only_node_0])
            .arg(env::current_exe().unwrap())
            .args(["--exact", PROGRAM, "--nocapture", "--test-threads=1"])
            .env(RUNS, "1")
            .env(DIES, victim)
            .envs(BOUNDS)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let _watchdog = watchdog::watch(child.id(), "a run whose result nobody prints");
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{errors}");
        let blames = format!("dhole: node {victim} was ended by signal 9 (SIGKILL)");
        assert!(errors.contains(&blames), "{errors}");
        let words = "dhole: node 0 was lost, and node 1, which prints the results in its place, \
                     has printed nothing";
        assert_eq!(errors.contains(words), victim == "0", "{errors}");
    }
}

/// What the others print while the run is on is no result.
#[test]
fn and_one_whose_nodes_print_before_it_is_over_and_not_after_is_an_error() {
    for (victim, lines, code) in [(0, 1, 137), (0, 150, 137), (0, LINES - 1, 137), (1, 150, 0)] {
        let prints = [(NODE_0_PRINTS, "")];
        let said = in_time(victim, |all| {
            killed_once("shm", all, &prints, victim, lines)
        });
        let printed = said.wrote.get(&1).is_some_and(|wrote| *wrote > 0);
        assert!(printed, "{said:#?}");
        assert_eq!(said.code, Some(code), "{victim} at {lines}: {said:#?}");
        let words = "dhole: node 0 was lost, and node 1, which prints the results in its place, \
                     has printed nothing since the run was over";
        let is_said = said.errors.iter().any(|line| line.starts_with(words));
        assert_eq!(is_said, victim == 0, "{said:#?}");
    }
}

#[test]
fn of_a_killed_client_of_a_service() {
    for transport in ["shm", "tcp"] {
        killed_client(transport);
    }
}

#[test]
fn of_a_killed_service() {
    for transport in ["shm", "tcp"] {
        killed_service(transport);
    }
}

#[test]
fn of_a_killed_sequencer_over_shared_memory() {
    for lines in [1, 40, 150] {
        killed("shm", 0, lines);
    }
}

#[test]
fn of_a_killed_sequencer_over_tcp() {
    for lines in [1, 40, 150] {
        killed("tcp", 0, lines);
    }
}

#[test]
fn of_a_killed_sequencer_over_udp() {
    killed("udp", 0, 40);
}

#[test]
fn of_a_killed_member_where_the_program_says_so() {
    killed_with("shm", &[(BY_PROGRAM, "1")], 1, 60);
    killed_with("tcp", &[(BY_PROGRAM, "1")], 0, 60);
}

#[test]
fn of_a_killed_member() {
    killed("shm", 1, 60);
    killed("tcp", 2, 60);
}

#[test]
fn of_a_member_that_is_killed_while_it_runs_tasks() {
    killed_amid("shm", TASKS, 1, 30);
    killed_amid("tcp", TASKS, 2, 1);
}

#[test]
fn of_a_sequencer_that_is_killed_while_it_runs_tasks() {
    killed_amid("shm", TASKS, 0, 30);
    killed_amid("tcp", TASKS, 0, 60);
}

#[test]
fn of_a_member_that_is_killed_while_numbers_are_divided() {
    killed_amid("shm", NUMBERS, 1, 30);
    killed_amid("tcp", NUMBERS, 2, 1);
}

#[test]
fn of_a_sequencer_that_is_killed_while_numbers_are_divided() {
    killed_amid("shm", NUMBERS, 0, 30);
    killed_amid("tcp", NUMBERS, 0, 60);
}

#[test]
fn of_a_stopped_sequencer_which_finds_itself_out() {
    stopped("shm", 0);
    stopped("tcp", 0);
}
