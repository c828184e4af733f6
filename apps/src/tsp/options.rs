//! The command line of `tsp`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use super::{Instance, LowerBound, Problem};
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
    /// The file, of at most 16 MiB and 1,000 cities: EXPLICIT, EUC_2D or 3D, MAN_2D or 3D, MAX_2D
    /// or 3D, CEIL_2D, GEO or ATT. Some 20 cities are solved in seconds, with --bound one-tree 30
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,

    /// The lower bound for the rest of a tour: the shortest tree through the remaining cities, or
    /// 1-trees by Held and Karp
    #[arg(long, value_name = "HOW", value_enum, default_value_t = LowerBound::Tree)]
    pub bound: LowerBound,

    /// Stop after so many seconds, and print the shortest tour so far; so do SIGINT and SIGTERM
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub time_limit: Option<Duration>,

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub common: Common,
}

impl Options {
    /// The problem that the options describe.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn problem(&self) -> Result<Problem, BadInput> {
        let lines = Lines::read(&self.input, MOST_BYTES)?;
        Ok(Problem {
            instance: Instance::parse(&lines)?,
            bound: self.bound,
            time_limit: self.time_limit,
        })
    }
}

/// A time in seconds, which may have a fraction.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text
        .parse()
        .map_err(|_| "it is no number of seconds".to_owned())?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|cause| cause.to_string())?;
    Ok(time)
}
