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
    #[error("starting node {node}, {doing}: {cause}")]
    Start {
        /// Which node.
        node: u16,
        /// What was being done.
        doing: &'static str,
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

impl RunError {
    /// The command's exit code: as shells use them, where they do.
    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::Hosts { .. }
            | RunError::HostsLine { .. }
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
