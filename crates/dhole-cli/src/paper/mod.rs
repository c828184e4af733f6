//! `dhole paper`: repeats a paper's evaluation and prints its numbers beside dhole's.

mod bars;
mod cache;
mod cell;
mod figures;
mod holds;
pub mod multiview;
mod published;
mod results;
mod tables;
mod variant;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use dhole::sim::{Description, NetworkError};
use thiserror::Error;

use crate::arguments::Dosa;
use crate::say;
use cache::ResultCache;
use published::Published;
use results::Results;

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
        "{}: {cause}; `cargo build --release` builds it beside dhole",
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

/// Repeats DOSA's evaluation: runs what has not run yet, and writes tables and figures.
///
/// # Errors
/// [`PaperError`].
pub fn dosa(wanted: &Dosa) -> Result<ExitCode, PaperError> {
    Description::find(&wanted.network)?;
    let paper = Published::dosa();
    let folder = wanted.out.clone().unwrap_or_else(|| {
        let name = if wanted.small { "dosa-small" } else { "dosa" };
        PathBuf::from(name)
    });
    let cache = ResultCache::open(&folder, interruption())?;
    let (results, failed, all) = Results::fetch(&paper, wanted, &cache)?;
    write(&folder, "dosa.md", &tables::page(&results))?;
    let json = serde_json::to_string_pretty(&results.json()).expect("numbers and words");
    write(&folder, "dosa.json", &json)?;
    figures::draw(&folder, &results)?;
    let path = format!("{}\n", folder.join("dosa.md").display());
    say::print(path.as_bytes()).map_err(PaperError::Print)?;
    match failed {
        0 => Ok(ExitCode::SUCCESS),
        failed => Err(PaperError::Incomplete { failed, all }),
    }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), PaperError> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(|cause| PaperError::Folder {
        folder: path,
        cause,
    })
}

/// The flag that Ctrl-C sets. The runs in progress get the signal from the terminal too.
fn interruption() -> &'static AtomicBool {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    // Where there is a handler already, an interruption ends the command at once; runs that are
    // done are kept all the same.
    let _ = ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed));
    &INTERRUPTED
}
