//! Starts the nodes, passes on what they print and the signals that come, and sees them end.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use super::agent::{self, Envelope};
use super::error::RunError;
use super::gathering::{Gathering, Lost};
use super::hosts::{Host, Place};
use super::line::Word;
use super::nodes::{Event, Link, Process};
use super::order::Order;
use super::output::pass_on;
use super::secret::{Secret, random_hex};
use crate::arguments::{Prefix, Run};
use crate::child::End;

/// How long the first agent may take to answer: a remote shell may have to find its host first.
const AGENT_WITHIN: Duration = Duration::from_secs(30);
/// How long the rest of what ended nodes have printed may take to come.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(1);

/// The exit code where a node ended without an error before it had joined the others.
const NEVER_JOINED: u8 = 1;

/// Runs the program at these places and returns the exit code of the first node that failed.
pub fn run(wanted: &Run, places: &[Place]) -> Result<u8, RunError> {
    let (tell, events) = mpsc::channel();
    forward_signals(&tell).map_err(|cause| RunError::System {
        doing: "asking for signals",
        cause,
    })?;
    let mut cluster = Cluster {
        wanted,
        places,
        processes: Vec::new(),
        streams: 0,
        ended: BTreeSet::new(),
        failures: Vec::new(),
        gathering: Gathering::default(),
        answered: BTreeSet::new(),
        signalled: None,
        tell,
        events,
    };
    let started = cluster.start();
    if started.is_err() {
        cluster.kill_all();
    }
    let code = cluster.see_to_the_end(started.is_err());
    started.map(|()| code)
}

fn forward_signals(tell: &Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT])?;
    let tell = tell.clone();
    thread::spawn(move || {
        for signal in signals.forever() {
            if tell.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// The nodes of a run.
struct Cluster<'a> {
    wanted: &'a Run,
    places: &'a [Place],
    processes: Vec<Process>,
    /// Streams of nodes that are still passed on.
    streams: usize,
    ended: BTreeSet<u16>,
    /// Who failed by itself, in the order in which it was seen.
    failures: Vec<(u16, End)>,
    gathering: Gathering,
    /// Nodes whose agents have answered.
    answered: BTreeSet<u16>,
    /// The signal that ends the run.
    signalled: Option<i32>,
    tell: Sender<Event>,
    events: Receiver<Event>,
}

impl Cluster<'_> {
    fn start(&mut self) -> Result<(), RunError> {
        let (secret, run) = random_hex()
            .and_then(|run| Ok((Secret::new()?, run)))
            .map_err(|cause| RunError::System {
                doing: "making a secret",
                cause,
            })?;
        let folder = env::current_dir().map_err(|cause| RunError::System {
            doing: "finding the folder this command runs in",
            cause,
        })?;
        let mut order = Order {
            node: 0,
            nodes: self.places.len() as u16,
            transport: self.wanted.transport().to_owned(),
            run: run[..16].to_owned(),
            meeting: String::new(),
            host: None,
            folder,
            program: self
                .wanted
                .program
                .iter()
                .map(|w| w.as_bytes().to_vec())
                .collect(),
            environment: settings(),
        };
        order.environment.extend(self.wanted.variables());
        for node in 0..order.nodes {
            while let Ok(event) = self.events.try_recv() {
                self.take(event);
            }
            if self.signalled.is_some() {
                return Ok(());
            }
            order.node = node;
            match &self.places[usize::from(node)] {
                None => self.start_here(&mut order, &secret)?,
                Some(host) => self.start_there(&mut order, &secret, host)?,
            }
        }
        Ok(())
    }

    fn start_here(&mut self, order: &mut Order, secret: &Secret) -> Result<(), RunError> {
        let mut listener = None;
        if order.node == 0 {
            find(&self.wanted.program[0])?;
            let bound =
                TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|l| Ok((l.local_addr()?, l)));
            let (address, bound) = bound.map_err(|cause| RunError::Start {
                node: 0,
                doing: "listening for the others",
                cause,
            })?;
            order.meeting = address.to_string();
            listener = Some(bound);
        }
        // What is typed is the shell's business; a file or pipe is node 0's to read.
        let reads = order.node == 0 && !io::stdin().is_terminal();
        let (mut child, line) = order.start(secret, listener, |command| {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            if reads {
                command.stdin(Stdio::inherit());
            }
        })?;
        let stdout = child.stdout.take().expect("it was to be piped");
        self.pass_on(order.node, &mut child, stdout);
        let process = Process::watch(order.node, child, Link::Line(line), self.tell.clone());
        self.processes.push(process);
        Ok(())
    }

    /// Starts an agent on another machine, which starts the node there.
    fn start_there(
        &mut self,
        order: &mut Order,
        secret: &Secret,
        host: &Host,
    ) -> Result<(), RunError> {
        let node = order.node;
        order.host = host.address.clone();
        let mut command = self.remote_command(host)?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let failed = |doing| move |cause| RunError::Start { node, doing, cause };
        let mut child = command
            .spawn()
            .map_err(failed("starting the remote shell"))?;
        let mut orders = child.stdin.take().expect("it was to be piped");
        let stdout = child.stdout.take().expect("it was to be piped");
        let tell = self.tell.clone();
        let answers = AgentAnswers {
            node,
            stdout: Some(stdout),
            rest: None,
            tell,
        };
        let said = self.pass_on(node, &mut child, answers);
        let envelope = Envelope {
            order: order.clone(),
            secret: secret.as_hex().to_owned(),
        };
        let sent = orders.write_all(envelope.to_line().as_bytes());
        let link = Link::Agent { orders, said };
        self.processes
            .push(Process::watch(node, child, link, self.tell.clone()));
        let not_an_agent = || RunError::NotAnAgent {
            node,
            host: host.name.clone(),
            rsh: self.wanted.rsh.clone(),
        };
        sent.map_err(|_| not_an_agent())?;
        if node == 0 {
            let Some(port) = self.await_agent(node, host)? else {
                return Ok(());
            };
            let name = host.address.as_deref().unwrap_or(&host.name);
            order.meeting = match name.contains(':') {
                true => format!("[{name}]:{port}"),
                false => format!("{name}:{port}"),
            };
        }
        Ok(())
    }

    fn remote_command(&self, host: &Host) -> Result<Command, RunError> {
        let mut words = self.wanted.rsh.split_whitespace();
        let first = words.next().ok_or(RunError::Remote {
            option: "--rsh",
            what: "a command is expected".to_owned(),
        })?;
        let dhole = match &self.wanted.remote_dhole {
            Some(path) => path.clone(),
            None => env::current_exe()
                .map(|path| path.to_string_lossy().into_owned())
                .map_err(|cause| RunError::System {
                    doing: "finding this command's own executable",
                    cause,
                })?,
        };
        // One remote shell parses its words once more, another does not: only words that are the
        // same either way are given to any.
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._+-~".contains(c);
        if dhole.is_empty() || !dhole.chars().all(plain) {
            return Err(RunError::Remote {
                option: "--remote-dhole",
                what: format!("`{dhole}` has characters that a remote shell may change"),
            });
        }
        let mut command = Command::new(first);
        command.args(words).arg(&host.name).args([&dhole, "agent"]);
        Ok(command)
    }

    /// Waits until the agent of node 0 has said where it listens, or a signal ends the run.
    fn await_agent(&mut self, node: u16, host: &Host) -> Result<Option<u16>, RunError> {
        let until = Instant::now() + AGENT_WITHIN;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Event::Agent { node: of, port }) if of == node => {
                    self.answered.insert(node);
                    return Ok(Some(port));
                }
                Ok(Event::Ended { node: of, .. }) if of == node => {
                    self.ended.insert(node);
                    return Err(RunError::NotAnAgent {
                        node,
                        host: host.name.clone(),
                        rsh: self.wanted.rsh.clone(),
                    });
                }
                Ok(event) => {
                    self.take(event);
                    if self.signalled.is_some() {
                        // It takes no orders yet, and neither does the remote shell.
                        self.kill_all();
                        return Ok(None);
                    }
                }
                Err(_) => {
                    return Err(RunError::NoAgent {
                        node,
                        host: host.name.clone(),
                        waited: AGENT_WITHIN,
                    });
                }
            }
        }
    }

    /// Passes on what the node prints: `stdout`, and its standard error, in which an agent says how
    /// far its node has come. What is returned ends with it.
    fn pass_on(
        &mut self,
        node: u16,
        child: &mut Child,
        mut stdout: impl Read + Send + 'static,
    ) -> Receiver<()> {
        let mark = format!("[{node}] ");
        let (out, err) = match self.wanted.prefix {
            Prefix::Others if node == 0 => (String::new(), mark),
            Prefix::All | Prefix::Others => (mark.clone(), mark),
            Prefix::None => (String::new(), String::new()),
        };
        let told = move |tell: Sender<Event>, passed: io::Result<()>| {
            if let Err(cause) = passed {
                eprintln!("dhole: passing on what node {node} prints: {cause}");
                let _ = tell.send(Event::Unread);
            }
            let _ = tell.send(Event::Silent);
        };
        let tell = self.tell.clone();
        thread::spawn(move || {
            let passed = pass_on(&mut stdout, &mut io::stdout(), out, &mut |_| false);
            told(tell, passed);
        });
        let mut stderr = child.stderr.take().expect("it was to be piped");
        let tell = self.tell.clone();
        let (says, said) = mpsc::channel();
        let of_an_agent = self.places[usize::from(node)].is_some();
        thread::spawn(move || {
            let heard = tell.clone();
            let mut hears = |line: &[u8]| {
                let word = Word::passed_on(line).filter(|_| of_an_agent);
                word.is_some_and(|word| heard.send(Event::Said { node, word }).is_ok())
            };
            let passed = pass_on(&mut stderr, &mut io::stderr(), err, &mut hears);
            drop(says);
            told(tell, passed);
        });
        self.streams += 2;
        said
    }

    fn kill_all(&self) {
        self.processes.iter().for_each(Process::kill);
    }

    fn signal_all(&self, signal: Signal) {
        self.processes.iter().for_each(|p| p.signal(signal));
    }

    /// Sees all nodes end that were started, and returns this command's exit code.
    fn see_to_the_end(&mut self, killed: bool) -> u8 {
        let bound = env::var("DHOLE_BOUND_MS").ok();
        let bound = bound.and_then(|bound| bound.parse().ok());
        let grace = Duration::from_millis(self.wanted.grace_ms(bound));
        let mut ending = killed.then(Ending::killed);
        while self.ended.len() < self.processes.len() {
            // Before anything is waited for: all of it may have happened while nodes were started.
            let failed = !self.failures.is_empty() && !self.wanted.survive;
            let fails = failed || self.gathering.stood_up().is_some();
            if self.signalled.is_some() || fails {
                ending.get_or_insert_with(Ending::begins);
            }
            let wakes = ending.as_ref().and_then(|e| e.next(grace));
            match self.next(wakes) {
                Some(event) => self.take(event),
                None => match ending.as_mut().map(|e| e.advance(grace)) {
                    Some(Step::Ask) => self.signal_all(Signal::TERM),
                    Some(Step::Kill) => self.kill_all(),
                    None => {}
                },
            }
        }
        let until = Instant::now() + LAST_LINES_WITHIN;
        while self.streams > 0 {
            match self.next(Some(until)) {
                Some(event) => self.take(event),
                None => break,
            }
        }
        match killed {
            true => 0,
            false => self.report(ending.is_some_and(|e| e.asked)),
        }
    }

    fn next(&self, until: Option<Instant>) -> Option<Event> {
        let Some(until) = until else {
            return self.events.recv().ok();
        };
        let left = until.saturating_duration_since(Instant::now());
        self.events.recv_timeout(left).ok()
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Ended { node, end } => {
                self.ended.insert(node);
                if self.gathering.ended(node, end.is_success()) {
                    self.processes.iter().for_each(|p| p.tell_ended(node));
                }
                if !end.is_success() {
                    self.failures.push((node, end));
                }
            }
            Event::Said { node, word } => {
                let process = self.processes.get(usize::from(node));
                if let (Some(running), Word::Meets { process }) = (process, &word) {
                    running.answers(*process);
                }
                self.gathering.said(node, word);
            }
            Event::Agent { node, .. } => drop(self.answered.insert(node)),
            Event::Elsewhere(_) => {}
            Event::Silent => self.streams -= 1,
            Event::Unread => self.begin_to_end(SIGPIPE),
            Event::Signal(SIGQUIT) => self.ask_all(),
            Event::Signal(signal) => self.begin_to_end(signal),
        }
    }

    /// Asks all nodes what they do. One that has not begun to join cannot say it.
    fn ask_all(&self) {
        for (node, process) in (0..).zip(&self.processes) {
            process.ask();
            if !self.gathering.has_met(node) && !self.ended.contains(&node) {
                eprintln!(
                    "dhole: {} has not begun to join the others",
                    self.name(node)
                );
            }
        }
    }

    /// Passes a signal on; the second one ends all nodes at once.
    fn begin_to_end(&mut self, signal: i32) {
        match (self.signalled, signal) {
            (Some(SIGPIPE), SIGPIPE) => {}
            (Some(_), _) => self.kill_all(),
            (None, SIGHUP) => self.signal_all(Signal::HUP),
            (None, SIGINT) => self.signal_all(Signal::INT),
            (None, _) => self.signal_all(Signal::TERM),
        }
        self.signalled.get_or_insert(signal);
    }

    /// Says who failed, and returns the exit code. A node that a signal ended, that was lost, or
    /// that never came pulls others down, which end with errors of their own and may do so before
    /// its own end is seen.
    fn report(&self, asked: bool) -> u8 {
        if let Some(signal) = self.signalled {
            return 128u8.wrapping_add(signal as u8);
        }
        // A node ends well only if its run did, and that goes on only for those who may.
        if self.wanted.survive && self.failures.len() < self.ended.len() {
            for (node, end) in &self.failures {
                eprintln!("dhole: {} {}", self.name(*node), self.describe(*node, end));
            }
            return 0;
        }
        let by_signal = |(node, end): &&(u16, End)| self.signal(*node, end).is_some();
        let by_itself = match asked {
            true => None,
            false => self.failures.iter().find(by_signal),
        };
        let first = self.failures.first();
        if let Some((node, end)) = by_itself {
            eprintln!("dhole: {} {}", self.name(*node), self.describe(*node, end));
            return end.code;
        }
        if let Some(node) = self.gathering.stood_up() {
            let name = self.name(node);
            eprintln!("dhole: {name} ended, without an error, before it had joined the others");
            return NEVER_JOINED;
        }
        let Some((node, end)) = first else {
            if self.gathering.is_empty() {
                let program = self.wanted.program[0].to_string_lossy();
                eprintln!(
                    "dhole: none of the processes joined the others: \
                     `{program}` ended without calling dhole::run"
                );
            }
            return 0;
        };
        match self.lost_first(asked) {
            Some((_, Some((node, end)))) => {
                eprintln!("dhole: {} {}", self.name(*node), self.describe(*node, end));
                return end.code;
            }
            Some((Lost { node, by, how }, None)) => {
                let (name, by) = (self.name(*node), self.name(*by));
                eprintln!("dhole: {name} was lost to {by}: {how}");
            }
            None => {
                let nodes = self.places.len() as u16;
                match self.gathering.never_came(nodes, *node) {
                    Some(missing) => {
                        let name = self.name(missing);
                        eprintln!("dhole: {name} did not come to join the others in time");
                    }
                    None => eprintln!("dhole: {} {}", self.name(*node), self.describe(*node, end)),
                }
            }
        }
        end.code
    }

    /// The node that was lost first, and how it failed if it did so by itself: what went before the
    /// errors of those that lost it.
    fn lost_first(&self, asked: bool) -> Option<(&Lost, Option<&(u16, End)>)> {
        let lost = self.gathering.lost()?;
        let mut failures = self.failures.iter().filter(|_| !asked);
        let own = failures.find(|(node, _)| *node == lost.node);
        let first = self.failures.first().map(|(node, _)| *node);
        let known = usize::from(lost.node) < self.places.len();
        (known && first != Some(lost.node)).then_some((lost, own))
    }

    /// The signal that ended a node. An agent passes it on as shells do; what is beyond such codes
    /// is the program's own, or the remote shell's.
    fn signal(&self, node: u16, end: &End) -> Option<i32> {
        let remote = self.places[usize::from(node)].is_some();
        let code = i32::from(end.code);
        let passed_on = remote && (129..=192).contains(&code);
        end.signal.or(passed_on.then_some(code - 128))
    }

    /// How a node ended, in words.
    fn describe(&self, node: u16, end: &End) -> String {
        let remote = self.places[usize::from(node)].is_some();
        if remote && !self.answered.contains(&node) {
            let (rsh, code) = (&self.wanted.rsh, end.code);
            return format!("was not started: `{rsh}` ended with exit code {code}");
        }
        match self.signal(node, end) {
            Some(signal) => match signal_hook::low_level::signal_name(signal) {
                Some(name) => format!("was ended by signal {signal} ({name})"),
                None => format!("was ended by signal {signal}"),
            },
            None => format!("failed with exit code {}", end.code),
        }
    }

    /// What a node is called.
    fn name(&self, node: u16) -> String {
        match &self.places[usize::from(node)] {
            Some(host) => format!("node {node} on {}", host.name),
            None => format!("node {node}"),
        }
    }
}

/// What is done to nodes that do not come to an end by themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// They are asked to, with SIGTERM.
    Ask,
    /// They are killed.
    Kill,
}

/// The end of a run, from the first failure on.
struct Ending {
    since: Instant,
    asked: bool,
    killed: bool,
}

impl Ending {
    fn begins() -> Ending {
        Ending {
            since: Instant::now(),
            asked: false,
            killed: false,
        }
    }

    fn killed() -> Ending {
        Ending {
            asked: true,
            killed: true,
            ..Ending::begins()
        }
    }

    /// When the next step is due: nodes are asked when three quarters of their time are over.
    fn next(&self, grace: Duration) -> Option<Instant> {
        match (self.asked, self.killed) {
            (false, _) => Some(self.since + grace * 3 / 4),
            (true, false) => Some(self.since + grace),
            (true, true) => None,
        }
    }

    fn advance(&mut self, grace: Duration) -> Step {
        match self.asked || grace.is_zero() {
            false => {
                self.asked = true;
                Step::Ask
            }
            true => {
                (self.asked, self.killed) = (true, true);
                Step::Kill
            }
        }
    }
}

/// What an agent prints: its answer first, then what its node prints.
struct AgentAnswers<R> {
    node: u16,
    stdout: Option<R>,
    rest: Option<BufReader<R>>,
    tell: Sender<Event>,
}

impl<R: Read> AgentAnswers<R> {
    /// Reads to the agent's answer. A shell may greet before it.
    fn begin(&mut self, stdout: R) -> io::Result<BufReader<R>> {
        const MOST_BYTES: u64 = 64 << 10;
        let mut from = BufReader::new(stdout);
        let mut greeting = (&mut from).take(MOST_BYTES);
        let mut line = Vec::new();
        while greeting.read_until(b'\n', &mut line)? > 0 {
            if let Some(port) = agent::answered(&line) {
                let node = self.node;
                let _ = self.tell.send(Event::Agent { node, port });
                break;
            }
            line.clear();
        }
        Ok(from)
    }
}

impl<R: Read> Read for AgentAnswers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(stdout) = self.stdout.take() {
            self.rest = Some(self.begin(stdout)?);
        }
        self.rest.as_mut().map_or(Ok(0), |rest| rest.read(buffer))
    }
}

/// What the user has settled for all nodes; it is not the secret, and is no node's own.
fn settings() -> BTreeMap<String, String> {
    let names = [
        "DHOLE_BOUND_MS",
        "DHOLE_JOIN_MS",
        "DHOLE_LEARNT_RUNS",
        "DHOLE_MESSAGE_MIB",
        "DHOLE_TLS",
        "DHOLE_SPIN_US",
        "DHOLE_YIELDS",
        "DHOLE_PARK_MS",
    ];
    let set = names.map(|name| Some((name.to_owned(), env::var(name).ok()?)));
    set.into_iter().flatten().collect()
}

/// Looks for the program once, so that it is not missed by every node.
fn find(program: &OsStr) -> Result<(), RunError> {
    let missing = || RunError::NoSuchProgram {
        program: program.to_string_lossy().into_owned(),
    };
    let found = match program.as_bytes().contains(&b'/') {
        true => Path::new(program).exists(),
        false => env::var_os("PATH").is_some_and(|path| {
            env::split_paths(&path).any(|folder| folder.join(program).exists())
        }),
    };
    found.then_some(()).ok_or_else(missing)
}
