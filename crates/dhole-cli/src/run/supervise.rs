//! Starts the nodes, passes on their output and the signals to them, and waits for their ends.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use dhole::Defaults;
use dhole_space::runtime_thread;
use rustix::fs::{Access, access};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use super::agent::{Answers, Envelope};
use super::error::RunError;
use super::gathering::{Gathering, InVain};
use super::heard::Heard;
use super::hosts::{Host, Place};
use super::line::Word;
use super::nodes::{Event, Link, Process};
use super::order::Order;
use super::output::{LinePrefix, Noting, Source, pass_on};
use super::secret::{Secret, random_hex};
use super::stop::Stop;
use crate::arguments::{Prefix, Run};
use crate::child::End;
use crate::say::complain;

/// The time for the first agent's answer: a remote shell may have to find its host first.
const AGENT_WITHIN: Duration = Duration::from_secs(30);
/// The time for this machine to connect to itself.
const REACHED_WITHIN: Duration = Duration::from_secs(2);
/// The time that other nodes have to end after one was lost, before users are told of it.
const LOSS_TOLD_AFTER: Duration = Duration::from_secs(1);
/// The time for the last output of nodes that have ended.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(1);

/// This command's descriptors for a node: its two streams and the line to it.
pub const DESCRIPTORS_A_NODE: u64 = 3;
/// The descriptors for everything else.
const OTHER_DESCRIPTORS: u64 = 64;

/// Runs the program at these places, and returns the exit code of the first node that failed.
pub fn run(wanted: &Run, places: &[Place]) -> Result<u8, RunError> {
    raise_open_files(places.len());
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
        ended: Vec::new(),
        gathering: Gathering::default(),
        answered: BTreeSet::new(),
        printed: BTreeMap::new(),
        stopped: BTreeMap::new(),
        silent: BTreeSet::new(),
        signalled: None,
        loss: LossNotice::None,
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

/// Raises the soft limit of open files to the hard one, if it is too low for the nodes. They
/// inherit it. If the system refuses, an error names the node for which there is no room.
fn raise_open_files(nodes: usize) {
    let wanted = OTHER_DESCRIPTORS + DESCRIPTORS_A_NODE * nodes as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|soft| soft < wanted) {
        let current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
    }
}

/// The listener at which the nodes of this machine join.
fn listen_here() -> Result<TcpListener, RunError> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let bound = bound.or_else(|cause| {
        TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).map_err(|_no_ipv6_either| cause)
    });
    // An address is there also while its interface is down, and then nothing comes through.
    let reached = bound.and_then(|listener| {
        drop(TcpStream::connect_timeout(
            &listener.local_addr()?,
            REACHED_WITHIN,
        )?);
        listener.accept()?;
        Ok(listener)
    });
    reached.map_err(|cause| RunError::NoLoopback { cause })
}

fn forward_signals(tell: &Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT])?;
    let tell = tell.clone();
    let forward = move || {
        for signal in signals.forever() {
            if tell.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    };
    runtime_thread::spawn("dhole-signals", forward).map(drop)
}

/// This command has no thread for a node.
fn no_thread(node: u16) -> impl FnOnce(io::Error) -> RunError {
    move |cause| RunError::Start {
        node,
        doing: "starting a thread of this command for it",
        cause,
    }
}

/// Ends a process that was started just now, and for which this command has no thread.
fn end_unwatched(node: u16, mut child: Child, cause: io::Error) -> RunError {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
    no_thread(node)(cause)
}

/// The nodes of a run.
pub struct Cluster<'a> {
    pub wanted: &'a Run,
    pub places: &'a [Place],
    processes: Vec<Process>,
    /// The number of streams of nodes that have not ended.
    streams: usize,
    /// The end of each node, in the order in which this command saw them.
    pub ended: Vec<(u16, End)>,
    pub gathering: Gathering,
    /// Nodes whose agents have answered.
    pub answered: BTreeSet<u16>,
    /// Nodes that have written to their standard output, and when their last bytes were there, in
    /// nanoseconds of the monotonic clock.
    pub printed: BTreeMap<u16, u64>,
    /// Nodes that were stopped by a signal, and have not gone on.
    pub stopped: BTreeMap<u16, Stop>,
    /// Nodes that had to be killed, for they did not end when they were asked to.
    pub silent: BTreeSet<u16>,
    /// The signal that ends the run.
    pub signalled: Option<i32>,
    loss: LossNotice,
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
            transport: self.wanted.transport(),
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
        let settings = self.wanted.settings.variables();
        let settings = settings.map(|(name, value)| (name.to_owned(), value));
        order.environment.extend(settings);
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
            let bound = listen_here()?;
            let address = bound.local_addr();
            let address = address.map_err(|cause| RunError::NoLoopback { cause })?;
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
        let node = order.node;
        if let Err(cause) = self.pass_on(node, &mut child, stdout) {
            return Err(end_unwatched(node, child, cause));
        }
        let process = Process::watch(node, child, Link::Line(line), self.tell.clone());
        self.processes.push(process.map_err(no_thread(node))?);
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
        let started = command.spawn().map_err(|cause| {
            let shell = command.get_program().display();
            io::Error::new(cause.kind(), format!("{shell}: {cause}"))
        });
        let mut child = started.map_err(failed("starting the remote shell"))?;
        let mut orders = child.stdin.take().expect("it was to be piped");
        let stdout = child.stdout.take().expect("it was to be piped");
        let tell = self.tell.clone();
        let answers = Answers::new(stdout, move |port| {
            let _ = tell.send(Event::Agent { node, port });
        });
        let said = match self.pass_on(node, &mut child, answers) {
            Ok(said) => said,
            Err(cause) => return Err(end_unwatched(node, child, cause)),
        };
        let envelope = Envelope {
            order: order.clone(),
            secret: secret.as_hex().to_owned(),
        };
        let sent = orders.write_all(envelope.to_line().as_bytes());
        let link = Link::Agent { orders, said };
        let process = Process::watch(node, child, link, self.tell.clone());
        self.processes.push(process.map_err(no_thread(node))?);
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

    /// Waits until the agent of node 0 has reported where it listens, or a signal ends the run.
    fn await_agent(&mut self, node: u16, host: &Host) -> Result<Option<u16>, RunError> {
        let until = Instant::now() + AGENT_WITHIN;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Event::Agent { node: of, port }) if of == node => {
                    self.answered.insert(node);
                    return Ok(Some(port));
                }
                Ok(Event::Ended { node: of, end }) if of == node => {
                    self.ended.push((node, end));
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

    /// Passes on the node's output: `stdout`, and its standard error, which holds an agent's
    /// reports too. The returned receiver ends with it. The system may refuse a thread.
    fn pass_on(
        &mut self,
        node: u16,
        child: &mut Child,
        mut stdout: impl Source + Send + 'static,
    ) -> io::Result<Receiver<()>> {
        let mark = format!("[{node}] ");
        let (out, err) = match self.wanted.prefix {
            Prefix::Others if node == 0 => (String::new(), mark),
            Prefix::All | Prefix::Others => (mark.clone(), mark),
            Prefix::None => (String::new(), String::new()),
        };
        let line_prefix = |mark, but_for_objects| LinePrefix {
            mark,
            but_for_objects,
        };
        // The first node that is left writes the report of the run to standard error.
        let reports =
            (node == 0 || self.wanted.settings.survive()) && self.wanted.settings.reports_json();
        let (out, err) = (line_prefix(out, false), line_prefix(err, reports));
        let told = move |tell: Sender<Event>, stream: &str, passed: io::Result<()>| {
            if let Err(cause) = passed {
                complain(format_args!(
                    "writing node {node}'s standard {stream}: {cause}"
                ));
                let _ = tell.send(Event::Unwritten);
            }
            let _ = tell.send(Event::Silent);
        };
        let tell = self.tell.clone();
        runtime_thread::spawn("dhole-output", move || {
            let mut stdout = Noting {
                source: &mut stdout,
                last_ns: None,
            };
            let passed = pass_on(&mut stdout, &mut io::stdout(), &out);
            if let Some(last_ns) = stdout.last_ns {
                let _ = tell.send(Event::Printed { node, last_ns });
            }
            told(tell, "output", passed);
        })?;
        self.streams += 1;
        let mut stderr = child.stderr.take().expect("it was to be piped");
        let tell = self.tell.clone();
        let (says, said) = mpsc::channel();
        let of_an_agent = self.places[usize::from(node)].is_some();
        runtime_thread::spawn("dhole-errors", move || {
            let heard = tell.clone();
            let hears = |word| drop(heard.send(Event::Said { node, word }));
            let passed = match of_an_agent {
                true => pass_on(&mut Heard::new(stderr, hears), &mut io::stderr(), &err),
                false => pass_on(&mut stderr, &mut io::stderr(), &err),
            };
            drop(says);
            told(tell, "error", passed);
        })?;
        self.streams += 1;
        Ok(said)
    }

    fn kill_all(&self) {
        self.processes.iter().for_each(Process::kill);
    }

    fn signal_all(&self, signal: Signal) {
        self.processes.iter().for_each(|p| p.signal(signal));
    }

    /// Waits for the end of all nodes that were started, and returns this command's exit code.
    fn see_to_the_end(&mut self, killed: bool) -> u8 {
        let bound = env::var("DHOLE_BOUND_MS").ok();
        let bound = bound.and_then(|bound| bound.parse().ok());
        let grace = Duration::from_millis(self.wanted.grace_ms(bound));
        let mut ending = killed.then(Ending::killed);
        while self.ended.len() < self.processes.len() {
            // Before anything is waited for: all of it may have happened while nodes were started.
            let failed = self
                .failures()
                .any(|(node, _)| !self.goes_on_without(*node));
            let fails = failed || self.gathering.stood_up().is_some();
            if self.signalled.is_some() || fails {
                ending.get_or_insert_with(Ending::begins);
            }
            // A node that is stopped does not end by itself.
            let grace = match self.all_left_are_stopped() {
                true => Duration::ZERO,
                false => grace,
            };
            let wakes = match &ending {
                Some(ending) => ending.next(grace),
                None => self.loss.due(),
            };
            match self.next(wakes) {
                Some(event) => self.take(event),
                None => match ending.as_mut().map(|e| e.advance(grace)) {
                    Some(Step::Ask) => self.signal_all(Signal::TERM),
                    Some(Step::Kill) => {
                        let all = 0..self.processes.len() as u16;
                        let has_ended = |node: &u16| self.ended.iter().any(|(it, _)| it == node);
                        self.silent.extend(all.filter(|node| !has_ended(node)));
                        self.kill_all();
                    }
                    None => self.tell_of_loss(),
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
                let waits = self.gathering.ended(node, end.is_success());
                match self.gathering.has_joined(node) {
                    true => self.tell_in_vain(&waits),
                    // Whoever begins to join later waits for it too.
                    false => self.tell_all(&ended(node)),
                }
                self.ended.push((node, end));
            }
            Event::Said { node, word } => {
                let process = self.processes.get(usize::from(node));
                match (process, &word) {
                    (Some(running), Word::Meets { process }) => {
                        running.answers(*process);
                        let stopped = self.stopped.iter();
                        stopped.for_each(|(node, stop)| running.tell(&stopped_notice(*node, stop)));
                    }
                    (_, Word::Stopped(stop)) => self.note_stop(node, *stop),
                    // One that is killed goes on for a moment.
                    (_, Word::Resumed) if !self.silent.contains(&node) => {
                        self.stopped.remove(&node);
                        self.tell_all(&format!("resumed {node}"));
                    }
                    _ => {}
                }
                let waits = self.gathering.said(node, word);
                self.tell_in_vain(&waits);
                if self.loss == LossNotice::None && self.gathering.lost().is_some() {
                    self.loss = LossNotice::Due(Instant::now() + LOSS_TOLD_AFTER);
                }
            }
            Event::Agent { node, .. } => drop(self.answered.insert(node)),
            Event::Elsewhere(_) => {}
            Event::Printed { node, last_ns } => drop(self.printed.insert(node, last_ns)),
            Event::Silent => self.streams -= 1,
            Event::Unwritten | Event::Alone => self.begin_to_end(SIGPIPE),
            Event::Signal(SIGQUIT) => self.ask_all(),
            Event::Signal(signal) => self.begin_to_end(signal),
        }
    }

    /// Names a node that is stopped. The others wait for it, or soon will.
    fn note_stop(&mut self, node: u16, stop: Stop) {
        let (name, process, by) = (self.name(node), stop.process, stop.by());
        complain(format_args!(
            "{name} (process {process}) is stopped{by}; continue it by `kill -CONT {process}`"
        ));
        self.stopped.insert(node, stop);
        self.tell_all(&stopped_notice(node, &stop));
    }

    /// Whether nodes are left, and none of them goes on by itself.
    fn all_left_are_stopped(&self) -> bool {
        let is_stopped = |node: &u16| self.stopped.contains_key(node);
        let has_ended = |node: &u16| self.ended.iter().any(|(it, _)| it == node);
        let mut left = (0..self.processes.len() as u16).filter(|node| !has_ended(node));
        !self.stopped.is_empty() && left.all(|node| is_stopped(&node))
    }

    fn tell_all(&self, notice: &str) {
        self.processes.iter().for_each(|it| it.tell(notice));
    }

    /// Names a node that was lost while all others go on: they may compute for long before they
    /// wait for it, and end.
    fn tell_of_loss(&mut self) {
        self.loss = LossNotice::Told;
        let lost = self.gathering.lost();
        if let Some(lost) = lost.filter(|lost| !self.goes_on_without(lost.node)) {
            let words = self.in_words(lost);
            complain(format_args!(
                "{words}. The run ends when the other nodes wait next"
            ));
        }
    }

    /// Tells nodes of the nodes for which they wait in vain.
    fn tell_in_vain(&self, waits: &[InVain]) {
        for InVain { waits, ended: node } in waits {
            if let Some(process) = self.processes.get(usize::from(*waits)) {
                process.tell(&ended(*node));
            }
        }
    }

    /// The failures of nodes, in the order in which this command saw them.
    pub fn failures(&self) -> impl Iterator<Item = &(u16, End)> {
        self.ended.iter().filter(|(_, end)| !end.is_success())
    }

    /// Whether the run goes on if this node fails: the command line says so, or the node's program
    /// (`Config::survive`).
    pub fn goes_on_without(&self, node: u16) -> bool {
        self.wanted.settings.survive() || self.gathering.survives(node)
    }

    /// Makes all nodes report what they do. A node that has not begun to join cannot.
    fn ask_all(&self) {
        for (node, process) in (0..).zip(&self.processes) {
            process.ask();
            let has_ended = self.ended.iter().any(|(ended, _)| *ended == node);
            if !self.gathering.has_met(node) && !has_ended {
                let name = self.name(node);
                complain(format_args!("{name} has not begun to join the others"));
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
}

/// What a node is told of another that has ended, and will never join.
fn ended(node: u16) -> String {
    format!("ended {node}")
}

/// What a node is told of another that is stopped.
fn stopped_notice(node: u16, stop: &Stop) -> String {
    format!("stopped {node} {stop}")
}

/// Whether users know of a node that was lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LossNotice {
    /// None was.
    None,
    /// They are told then, if no node has ended because of it.
    Due(Instant),
    Told,
}

impl LossNotice {
    fn due(self) -> Option<Instant> {
        match self {
            LossNotice::Due(at) => Some(at),
            LossNotice::None | LossNotice::Told => None,
        }
    }
}

/// The means to end nodes that do not end by themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Sends them SIGTERM.
    Ask,
    /// Kills them.
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

    /// The time of the next step: nodes are asked when three quarters of their time are over.
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

/// The settings of the user for all nodes: neither the secret, nor any that differ between nodes.
fn settings() -> BTreeMap<String, String> {
    let all = Defaults::all().map(|setting| setting.variable);
    let set = all.map(|name| Some((name.to_owned(), env::var(name).ok()?)));
    set.flatten().collect()
}

/// Looks for the program once. So one error reports that it is missing or cannot run, and not one
/// of each node.
fn find(program: &OsStr) -> Result<(), RunError> {
    let name = || program.to_string_lossy().into_owned();
    let mut found = match program.as_bytes().contains(&b'/') {
        true => vec![PathBuf::from(program)],
        false => {
            let folders = env::var_os("PATH").unwrap_or_default();
            let folders = env::split_paths(&folders);
            folders.map(|folder| folder.join(program)).collect()
        }
    };
    found.retain(|path| path.exists() && !program.is_empty());
    let runs = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    match found.first() {
        None => Err(RunError::NoSuchProgram { program: name() }),
        Some(_) if found.iter().any(runs) => Ok(()),
        Some(path) => {
            let kind = match path.is_dir() {
                true => io::ErrorKind::IsADirectory,
                false => io::ErrorKind::PermissionDenied,
            };
            let (program, cause) = (name(), kind.into());
            Err(RunError::NotExecutable { program, cause })
        }
    }
}
