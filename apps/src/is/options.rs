//! The command line of `is`.

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use dhole::MemoryConsistency;

use super::{Class, Problem};
use crate::options::{BadInput, Common};
use crate::raw::{Cut, Granularity};

/// The command line of `is`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "is",
    version,
    about = "Integer sort: the ranks of many small numbers, over raw memory (Linux on x86-64)"
)]
pub struct Options {
    /// The log2 of the number of keys
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = log2(28))]
    pub keys_log2: u32,

    /// NAS's own problem of this class, with its generator and verification, instead of numbers of
    /// keys, values and rankings
    #[arg(long, value_name = "CLASS", value_enum,
        conflicts_with_all = ["keys_log2", "values_log2", "rankings"])]
    pub class: Option<Class>,

    /// What is a minipage: the counts of a region, or each page
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Granularity::Allocation)]
    pub granularity: Granularity,

    /// When a node sees what others write in raw memory: at once (sequential), or when it acquires
    /// what they have released (release) [default: as `dhole run` or `dhole sim` says, or
    /// sequential]
    #[arg(long, value_name = "WHEN")]
    pub consistency: Option<MemoryConsistency>,

    /// The log2 of the number of values that a key may have
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = log2(20))]
    pub values_log2: u32,

    /// How often the keys are ranked, at most half as often as there are keys
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = rankings())]
    pub rankings: u32,

    /// Ask for all counts before the first is read
    #[arg(long)]
    pub prefetch: bool,

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub common: Common,
}

fn log2(most: u64) -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=most)
}

fn rankings() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=1_000_000)
}

impl Options {
    /// The problem that the options describe.
    ///
    /// # Errors
    /// When there are too few keys for the rankings.
    pub fn problem(&self) -> Result<Problem, BadInput> {
        let cut = Cut {
            granularity: self.granularity,
            ..Cut::ROWS
        };
        if let Some(class) = self.class {
            let [keys, values] = class.sizes();
            return Ok(Problem {
                keys: 1 << keys,
                values: 1 << values,
                rankings: class.rankings(),
                seed: self.common.seed,
                class: Some(class),
                cut,
                prefetch: self.prefetch,
            });
        }
        let keys = 1_u32 << self.keys_log2;
        if self.rankings > keys / 2 {
            return Err(BadInput::TooManyRankings {
                rankings: self.rankings,
                most: keys / 2,
            });
        }
        Ok(Problem {
            keys: keys as usize,
            values: 1 << self.values_log2,
            rankings: self.rankings as usize,
            seed: self.common.seed,
            class: None,
            cut,
            prefetch: self.prefetch,
        })
    }
}
