//! The command line of `ida`.

use clap::Parser;

use super::Position;
use crate::options::{BadInput, Common};

/// The command line of `ida`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "ida",
    version,
    about = "The fewest moves that solve a 15-puzzle"
)]
pub struct Options {
    /// The tiles, row by row, with 0 for the blank, which is first when the puzzle is solved
    #[arg(
        long,
        value_name = "TILES",
        default_value = "14,13,15,7,11,12,9,5,6,0,2,1,4,8,10,3"
    )]
    pub position: String,

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub common: Common,
}

impl Options {
    /// The problem that the options describe.
    ///
    /// # Errors
    /// When the position is none, or cannot be solved.
    pub fn problem(&self) -> Result<Position, BadInput> {
        Position::parse(&self.position)
    }
}
