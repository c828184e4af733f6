//! The command line of `lu`.

use clap::builder::RangedU64ValueParser;
use clap::{ArgAction, Parser};

use super::Problem;
use crate::options::{BadInput, Common, listed};
use crate::raw::Element;

/// The command line of `lu`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "lu",
    version,
    about = "Factors a dense matrix by blocks, over raw memory (Linux on x86-64)"
)]
pub struct Options {
    /// Rows and columns of the matrix, a multiple of those of a block
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = side(16_384))]
    pub size: u32,

    /// Rows and columns of a block
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = side(1_024))]
    pub block: u32,

    /// Ask for all blocks of other nodes that are needed before the first is read: on or off
    #[arg(long, value_name = "WHAT", default_value = "on", value_parser = listed::<bool>(),
        action = ArgAction::Set)]
    pub prefetch: bool,

    /// The numbers
    #[arg(long, value_enum, default_value_t = Element::F64)]
    pub element: Element,

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub common: Common,
}

fn side(most: u64) -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=most)
}

impl Options {
    /// The problem that the options describe.
    ///
    /// # Errors
    /// When the size is no multiple of the block's.
    pub fn problem(&self) -> Result<Problem, BadInput> {
        let (size, block) = (self.size, self.block);
        if !size.is_multiple_of(block) {
            return Err(BadInput::Blocks { size, block });
        }
        Ok(Problem {
            size: size as usize,
            block: block as usize,
            seed: self.common.seed,
            prefetch: self.prefetch,
            element: self.element,
        })
    }
}
