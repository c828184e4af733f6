use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// The error of `dhole run`.
#[derive(Debug, Error)]
pub enum RunError {
    /// The file of hosts cannot be read.
    #[error("the hosts in {}: {cause}", file.display())]
    Hosts {
        /// The file.
        file: PathBuf,
        /// The system's own words.
        cause: io::Error,
    },
    /// A line of it is invalid.
    #[error("{}:{line}: {what}", file.display())]
    HostsLine {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The error.
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
        /// The option.
        option: &'static str,
        /// The error.
        what: String,
    },
    /// A variable of the environment that is for all nodes has a value that cannot be.
    #[error(transparent)]
    Variable(#[from] dhole::ConfigError),
    /// There is no such program.
    #[error("there is no program `{program}`")]
    NoSuchProgram {
        /// As it was given.
        program: String,
    },
    /// There is a file of that name, but it cannot run.
    #[error("`{program}` cannot be run: {cause}")]
    NotExecutable {
        /// As it was given.
        program: String,
        /// The system's own words.
        cause: io::Error,
    },
    /// The system refuses something that starting a node needs.
    #[error("starting node {node}, {doing}: {cause}{}", advice(cause))]
    Start {
        /// Which node.
        node: u16,
        /// What was being done.
        doing: &'static str,
        /// The system's own words.
        cause: io::Error,
    },
    /// The nodes of this machine cannot connect to each other.
    #[error(
        "nodes of one machine meet at 127.0.0.1 or at ::1, and neither can be reached: {cause}; is \
         the interface `lo` up? (`ip link set lo up`)"
    )]
    NoLoopback {
        /// The system's own words.
        cause: io::Error,
    },
    /// The other machine did not answer as an agent.
    #[error("starting node {node} on {host}: no answer of `dhole agent` within {waited:?}")]
    NoAgent {
        /// Which node.
        node: u16,
        /// Where.
        host: String,
        /// The time for which the command waited.
        waited: Duration,
    },
    /// The command on the other machine printed something else, or ended.
    #[error("starting node {node} on {host}: `{rsh}` ended or said nothing of `dhole agent`")]
    NotAnAgent {
        /// Which node.
        node: u16,
        /// Where.
        host: String,
        /// The remote shell.
        rsh: String,
    },
    /// No such process is a `dhole run`.
    #[error("process {process} is no `dhole run` of yours")]
    NoRun {
        /// The process.
        process: i32,
    },
    /// No `dhole run` of this user runs.
    #[error("no `dhole run` of yours runs on this machine")]
    NothingRuns,
    /// Several run, and none is named.
    #[error("several run: which of them, {runs:?}?")]
    SeveralRun {
        /// Their processes.
        runs: Vec<i32>,
    },
    /// The process that started this one is gone already.
    #[error("the `dhole run` that started this process is gone")]
    Orphan,
    /// The agent's standard input holds no order.
    #[error("`dhole agent` is started by `dhole run`, and takes orders from nobody else: {what}")]
    NoOrder {
        /// The error in it.
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

/// Advice for a user whose limit of open files, of threads, or of bytes of a file is too low.
pub fn advice(cause: &io::Error) -> String {
    match cause.raw_os_error() {
        Some(code) if code == rustix::io::Errno::MFILE.raw_os_error() => format!(
            "; each node takes {} descriptors of this command: `ulimit -Hn` says how many it may \
             have, and the administrator can raise that",
            super::supervise::DESCRIPTORS_A_NODE
        ),
        Some(code) if code == rustix::io::Errno::AGAIN.raw_os_error() => {
            "; `ulimit -u` says how many processes and threads a user may have, and each node \
             takes some threads of this command and of its own"
                .to_owned()
        }
        Some(code) if code == rustix::io::Errno::FBIG.raw_os_error() => {
            "; `ulimit -f` limits files in memory too, and must allow some".to_owned()
        }
        _ => String::new(),
    }
}

impl RunError {
    /// The command's exit code. It follows the shells' where they have one.
    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::Hosts { .. }
            | RunError::HostsLine { .. }
            | RunError::NoHosts
            | RunError::TooManySlots { .. }
            | RunError::Slots { .. }
            | RunError::Remote { .. }
            | RunError::Variable(_)
            | RunError::NoRun { .. }
            | RunError::NothingRuns
            | RunError::SeveralRun { .. } => 2,
            RunError::NoSuchProgram { .. } => 127,
            RunError::NotExecutable { .. } => 126,
            _ => 125,
        }
    }
}
