//! The command line of `tsp`.

use std::path::PathBuf;

use clap::Parser;

use super::Instance;
use crate::input::Lines;
use crate::options::{BadInput, Common};

/// The largest file that is read, in bytes.
const MOST_BYTES: u64 = 16 << 20;

/// The command line of `tsp`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "tsp",
    version,
    about = "The shortest tour through all cities of a TSPLIB file"
)]
pub struct Options {
    /// The file: EXPLICIT, EUC_2D, CEIL_2D, GEO or ATT
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub common: Common,
}

impl Options {
    /// What is to be solved.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn problem(&self) -> Result<Instance, BadInput> {
        let lines = Lines::read(&self.input, MOST_BYTES)?;
        Ok(Instance::parse(&lines)?)
    }
}
