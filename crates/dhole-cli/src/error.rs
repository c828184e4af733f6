use std::io;

use dhole::sim::{NetworkError, SettingsError};
use dhole::{ConfigError, RunError};
use thiserror::Error;

use crate::run::advice;

/// The error of `dhole sim`.
#[derive(Debug, Error)]
pub enum SimError {
    /// The options ask for an impossible cluster.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A variable of the environment that is for the program has a value that cannot be.
    #[error(transparent)]
    Variable(#[from] ConfigError),
    /// There is no such network, or its description is wrong.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A primitive of the network could not be measured.
    #[error("measuring {primitive} of the network {network}: {cause}")]
    Calibration {
        /// The primitive.
        primitive: String,
        /// The network.
        network: String,
        /// The cause.
        cause: RunError,
    },
    /// The results cannot be printed.
    #[error("writing to standard output: {0}")]
    Print(io::Error),
    /// The program's computation on one node is unknown.
    #[error(
        "`{program}` did not compute to its end on one node, \
         so that the time of its computation cannot be scaled"
    )]
    NothingComputed {
        /// As it was given.
        program: String,
    },
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
    /// The program never called `dhole::run`.
    #[error(
        "`{program}` is not a dhole program: it ended without calling dhole::run, \
         so nothing was simulated"
    )]
    NotADholeProgram {
        /// As it was given.
        program: String,
    },
    /// The file with which the program reports to the command cannot be made or read.
    #[error(
        "the file in which `{program}` says that it is a dhole program: {cause}{}",
        advice(cause)
    )]
    Hello {
        /// As it was given.
        program: String,
        /// The system's own words.
        cause: io::Error,
    },
    /// Waiting for the program failed.
    #[error("waiting for `{program}`: {cause}")]
    Wait {
        /// As it was given.
        program: String,
        /// The system's own words.
        cause: io::Error,
    },
}

impl SimError {
    /// The command's exit code. It follows the shells' where they have one.
    pub fn exit_code(&self) -> u8 {
        match self {
            SimError::Settings(_) | SimError::Variable(_) | SimError::Network(_) => 2,
            SimError::NoSuchProgram { .. } => 127,
            SimError::NotExecutable { .. } => 126,
            SimError::NotADholeProgram { .. }
            | SimError::NothingComputed { .. }
            | SimError::Calibration { .. }
            | SimError::Print(_) => 1,
            SimError::Hello { .. } | SimError::Wait { .. } => 125,
        }
    }
}
