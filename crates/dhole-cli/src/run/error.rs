use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// Why `dhole run` did not run the program.
#[derive(Debug, Error)]
pub enum RunError {
    /// The file of hosts cannot be read.
    #[error("the hosts in {}: {cause}", file.display())]
    Hosts {
        /// Which file.
        file: PathBuf,
        /// The system's own words.
        cause: io::Error,
    },
    /// A line of it makes no sense.
    #[error("{}:{line}: {what}", file.display())]
    HostsLine {
        /// Which file.
        file: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// The file names no host.
    #[error(
        "the file of hosts names none: `host slots=2 address=10.0.0.1`, one a line, is expected"
    )]
    NoHosts,
    /// No cluster has so many nodes.
    #[error(
        "the hosts have {slots} slots, and a cluster has at most {most} nodes: -n says how many",
        most = dhole::MAX_NODES
    )]
    TooManySlots {
        /// Slots of all hosts.
        slots: usize,
    },
    /// More processes are asked for than the hosts have slots.
    #[error("{nodes} processes are asked for, but the hosts have {slots} slots")]
    Slots {
        /// Processes.
        nodes: usize,
        /// Slots of all hosts.
        slots: usize,
    },
    /// The words of `--rsh` or `--remote-dhole` cannot be used.
    #[error("{option}: {what}")]
    Remote {
        /// Which.
        option: &'static str,
        /// What is wrong.
        what: String,
    },
    /// There is no such program.
    #[error("there is no program `{program}`")]
    NoSuchProgram {
        /// As it was given.
        program: String,
    },
    /// There is something of that name, but it cannot be run.
    #[error("`{program}` cannot be run: {cause}")]
    NotExecutable {
        /// As it was given.
        program: String,
        /// The system's own words.
        cause: io::Error,
    },
    /// The system refuses what starting a node takes.
    #[error("starting node {node}, {doing}: {cause}{}", advice(cause))]
    Start {
        /// Which node.
        node: u16,
        /// What was being done.
        doing: &'static str,
        /// The system's own words.
        cause: io::Error,
    },
    /// The nodes of this machine cannot meet.
    #[error(
        "nodes of one machine meet at 127.0.0.1 or at ::1, and neither can be reached: {cause}; is \
         the interface `lo` up? (`ip link set lo up`)"
    )]
    NoLoopback {
        /// The system's own words.
        cause: io::Error,
    },
    /// The other machine did not say that it has an agent.
    #[error("starting node {node} on {host}: no answer of `dhole agent` within {waited:?}")]
    NoAgent {
        /// Which node.
        node: u16,
        /// Where.
        host: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The command on the other machine said something else, or ended.
    #[error("starting node {node} on {host}: `{rsh}` ended or said nothing of `dhole agent`")]
    NotAnAgent {
        /// Which node.
        node: u16,
        /// Where.
        host: String,
        /// What was to start it.
        rsh: String,
    },
    /// No such process is a `dhole run`.
    #[error("process {process} is no `dhole run` of yours")]
    NoRun {
        /// The process.
        process: i32,
    },
    /// There is nothing to be asked.
    #[error("no `dhole run` of yours runs on this machine")]
    NothingRuns,
    /// It is not clear which is meant.
    #[error("several run: which of them, {runs:?}?")]
    SeveralRun {
        /// Their processes.
        runs: Vec<i32>,
    },
    /// The process that started this one is gone already.
    #[error("the `dhole run` that started this process is gone")]
    Orphan,
    /// What came on the agent's standard input is no order.
    #[error("`dhole agent` is started by `dhole run`, and takes orders from nobody else: {what}")]
    NoOrder {
        /// What is wrong with it.
        what: String,
    },
    /// The system refuses something.
    #[error("{doing}: {cause}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// The system's own words.
        cause: io::Error,
    },
}

/// What helps whose nodes have too many descriptors.
fn advice(cause: &io::Error) -> String {
    match cause.raw_os_error() {
        Some(code) if code == rustix::io::Errno::MFILE.raw_os_error() => format!(
            "; each node takes {} descriptors of this command: `ulimit -Hn` says how many it may \
             have, and the administrator can raise that",
            super::supervise::DESCRIPTORS_A_NODE
        ),
        _ => String::new(),
    }
}

impl RunError {
    /// The command's exit code: as shells use them, where they do.
    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::Hosts { .. }
            | RunError::HostsLine { .. }
            | RunError::NoHosts
            | RunError::TooManySlots { .. }
            | RunError::Slots { .. }
            | RunError::Remote { .. }
            | RunError::NoRun { .. }
            | RunError::NothingRuns
            | RunError::SeveralRun { .. } => 2,
            RunError::NoSuchProgram { .. } => 127,
            RunError::NotExecutable { .. } => 126,
            _ => 125,
        }
    }
}
