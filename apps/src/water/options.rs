//! The command lines of `water-nsquared` and `water-spatial`.

use clap::builder::RangedU64ValueParser;
use clap::{ArgAction, Args, Parser};

use super::model::CUTOFF;
use super::problem::{Problem, Record, System, Way};
use super::spatial::grid::Grid;
use crate::options::{BadInput, Common, listed};
use crate::raw::{Cut, Granularity, Reads};
use crate::share::{Construct, Share};

/// The command line of `water-nsquared`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "water-nsquared",
    version,
    about = "Liquid water: every molecule looks at half of all others"
)]
pub struct NsquaredOptions {
    /// Molecules
    #[arg(long, value_name = "N", default_value_t = 1728, value_parser = molecules())]
    pub molecules: u32,

    /// Steps of 0.15 fs
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = steps())]
    pub steps: u32,

    /// What the molecules are: objects; SPLASH's records in raw memory (with --record splash);
    /// objects at home at their nodes, with barriers of sections; or each node's own, with
    /// positions that are passed by calls
    #[arg(long, value_enum, default_value_t = Share::Objects)]
    pub share: Share,

    /// Where the molecules of sections are allocated: on node 0, or on their nodes
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = Construct::There)]
    pub construct: Construct,

    /// A molecule of sections has where its atoms are, and not references to that
    #[arg(long)]
    pub inlined: bool,

    /// Records that are one minipage of raw memory
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = molecules())]
    pub chunk: u32,

    /// What is a minipage of raw memory: what is allocated, or each page
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Granularity::Allocation)]
    pub granularity: Granularity,

    /// How records of other nodes are read in raw memory
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Reads::Each)]
    pub reads: Reads,

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub physics: Physics,

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub common: Common,
}

/// The command line of `water-spatial`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "water-spatial",
    version,
    about = "Liquid water: every molecule looks at those in the cells around it"
)]
pub struct SpatialOptions {
    /// Molecules
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = molecules())]
    pub molecules: u32,

    /// Steps of 0.15 fs
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = steps())]
    pub steps: u32,

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub physics: Physics,

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub common: Common,
}

/// The options of both programs.
#[derive(Args, Clone, Copy, Debug)]
pub struct Physics {
    /// The cut-off radius in angstrom, half the box where it is larger; at 0 half the box, or 11
    #[arg(long, value_name = "A", default_value_t = CUTOFF)]
    pub cutoff: f64,

    /// Ask for all molecules that will be read before the first is read: on or off, as in the
    /// papers' programs, which leave that to read aggregation
    #[arg(long, value_name = "WHAT", default_value = "on", value_parser = listed::<bool>(),
        action = ArgAction::Set)]
    pub prefetch: bool,

    /// The shared fields of a molecule: its positions alone, or SPLASH's whole record
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Record::Split)]
    pub record: Record,
}

/// Shorter radii leave cells without molecules, and water without neighbours.
const SHORTEST: f64 = 1.0;

impl Physics {
    fn problem(self, molecules: u32, steps: u32, seed: u64) -> Result<Problem, BadInput> {
        let cutoff = self.cutoff;
        if cutoff != 0.0 && !(cutoff.is_finite() && cutoff >= SHORTEST) {
            return Err(BadInput::Cutoff { cutoff });
        }
        Ok(Problem {
            cutoff,
            prefetch: self.prefetch,
            record: self.record,
            ..Problem::new(molecules as usize, steps as usize, seed)
        })
    }
}

impl NsquaredOptions {
    /// The problem that is asked for, to be solved on `nodes` nodes.
    ///
    /// # Errors
    /// When the options contradict each other.
    pub fn problem(&self, nodes: u16) -> Result<Problem, BadInput> {
        BadInput::unless_one_each(nodes, self.molecules, "molecules")?;
        if self.share != Share::Sections {
            self.share.lacks(&[
                ("construct here", self.construct != Construct::There),
                ("inlined", self.inlined),
            ])?;
        }
        self.share.check(&[
            ("chunk", self.chunk != 1),
            ("granularity", self.granularity != Granularity::Allocation),
            ("reads", self.reads != Reads::Each),
        ])?;
        let problem = self
            .physics
            .problem(self.molecules, self.steps, self.common.seed)?;
        let way = match self.share {
            Share::Objects => return Ok(problem),
            Share::Memory => Way::Own,
            Share::Calls => Way::Calls,
            Share::Sections => Way::Sections {
                construct: self.construct,
                inlined: self.inlined,
            },
        };
        if way != Way::Own {
            let splash = problem.record == Record::Splash;
            self.share.lacks(&[("record splash", splash)])?;
            return Ok(Problem { way, ..problem });
        }
        let split = problem.record != Record::Splash;
        self.share.lacks(&[("record split", split)])?;
        let cut = Cut {
            granularity: self.granularity,
            chunk: self.chunk as usize,
        };
        Ok(Problem {
            cut: Some(cut),
            reads: self.reads,
            ..problem
        })
    }
}

impl SpatialOptions {
    /// The problem that is asked for, to be solved on `nodes` nodes.
    ///
    /// # Errors
    /// When the options contradict each other, or there are fewer cells than nodes.
    pub fn problem(&self, nodes: u16) -> Result<Problem, BadInput> {
        let problem = self
            .physics
            .problem(self.molecules, self.steps, self.common.seed)?;
        let cells = Grid::of(&System::of(&problem)).cells();
        let cells = u32::try_from(cells).unwrap_or(u32::MAX);
        BadInput::unless_one_each(nodes, cells, "cells")?;
        Ok(problem)
    }
}

fn molecules() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=10_000_000)
}

fn steps() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=100_000_000)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn spatial(args: &[&str]) -> SpatialOptions {
        SpatialOptions::parse_from([&["water-spatial"], args].concat())
    }

    #[test]
    fn the_command_lines_are_well_formed() {
        NsquaredOptions::command().debug_assert();
        SpatialOptions::command().debug_assert();
    }

    #[test]
    fn the_defaults_are_the_papers_small_problems() {
        let problem = spatial(&[]).problem(32).unwrap();
        assert_eq!((problem.molecules, problem.steps), (4096, 9));
        let options = NsquaredOptions::parse_from(["water-nsquared"]);
        let problem = options.problem(32).unwrap();
        assert_eq!((problem.molecules, problem.steps), (1728, 2));
    }

    #[test]
    fn a_node_without_a_cell_is_refused() {
        let options = spatial(&["--molecules", "512", "--cutoff", "0"]);
        assert!(options.problem(8).is_ok());
        let wrong = options.problem(9).unwrap_err().to_string();
        assert!(
            wrong.starts_with("9 nodes are more than 8 cells"),
            "{wrong}"
        );
    }

    #[test]
    fn impossible_radii_are_refused() {
        for cutoff in ["NaN", "inf", "0.5", "-0.1"] {
            let options = spatial(&[]);
            let options = SpatialOptions {
                physics: Physics {
                    cutoff: cutoff.parse().unwrap(),
                    prefetch: true,
                    record: Record::Split,
                },
                ..options
            };
            assert!(matches!(options.problem(1), Err(BadInput::Cutoff { .. })));
        }
    }
}
