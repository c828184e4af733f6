//! The error of an evaluation.

use std::io;
use std::path::PathBuf;

use dhole::sim::NetworkError;
use thiserror::Error;

/// The error of an evaluation that did not run to its end.
#[derive(Debug, Error)]
pub enum PaperError {
    /// There is no such network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Ctrl-C.
    #[error(
        "interrupted: what is done is kept in {}; the same command goes on from there",
        kept.display()
    )]
    Interrupted {
        /// The folder with the finished runs.
        kept: PathBuf,
    },
    /// A program is missing.
    #[error(
        "{}: {cause}; `./install` in a checkout of dhole puts it beside `dhole`, and \
         `cargo build --release` builds both",
        path.display()
    )]
    NoProgram {
        /// Its expected path.
        path: PathBuf,
        /// The system's own words.
        cause: io::Error,
    },
    /// The folder for the results cannot be written.
    #[error("{}: {cause}", folder.display())]
    Folder {
        /// The folder, or the file in it.
        folder: PathBuf,
        /// The system's own words.
        cause: io::Error,
    },
    /// The path of the tables cannot be printed.
    #[error("writing to standard output: {0}")]
    Print(io::Error),
    /// A figure could not be drawn.
    #[error("drawing {figure}: {cause}")]
    Figure {
        /// Its file.
        figure: String,
        /// The drawing library's own words.
        cause: String,
    },
    /// A run failed.
    #[error("`{command}` failed: {why}")]
    Cell {
        /// The command line that a user would type.
        command: String,
        /// The program's words.
        why: String,
    },
    /// Some runs failed; the tables are without them.
    #[error("{failed} of {all} runs failed; the tables are without them")]
    Incomplete {
        /// The runs that failed.
        failed: usize,
        /// All runs.
        all: usize,
    },
    /// The data of the evaluation contradict themselves: a fault of this program.
    #[error("the evaluation `{paper}`: {why}")]
    Data {
        /// The evaluation.
        paper: String,
        /// What is wrong, and where.
        why: String,
    },
}

impl PaperError {
    /// The command's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            PaperError::Network(_) => 2,
            PaperError::Interrupted { .. } => 130,
            PaperError::NoProgram { .. } => 127,
            _ => 1,
        }
    }
}
