//! The command line of `raytrace`.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::RangedU64ValueParser;

use super::{Problem, Scene};
use crate::input::Lines;
use crate::options::{BadInput, Common};
use crate::picture::check_writable;

/// The largest file that is read, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// The command line of `raytrace`.
#[derive(Parser, Clone, Debug)]
#[command(name = "raytrace", version, about = "A picture of a scene, as PNG")]
pub struct Options {
    /// The scene: lines of `camera`, `sky`, `light`, `sphere` and `floor`
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,

    /// Where the picture goes; without it only its checksum is printed
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Columns of the picture
    #[arg(long, value_name = "N", default_value_t = 640, value_parser = side())]
    pub width: u32,

    /// Rows of the picture
    #[arg(long, value_name = "N", default_value_t = 480, value_parser = side())]
    pub height: u32,

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub common: Common,
}

fn side() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=8192)
}

impl Options {
    /// What is to be drawn.
    ///
    /// # Errors
    /// When the file cannot be used, or the picture not be written.
    pub fn problem(&self) -> Result<Problem, BadInput> {
        if let Some(output) = &self.output {
            check_writable(output)?;
        }
        let lines = Lines::read(&self.input, MOST_BYTES)?;
        Ok(Problem {
            scene: Scene::parse(&lines)?,
            size: (self.width, self.height),
            output: self.output.clone(),
        })
    }
}
