//! The command line of `barnes`.

use std::path::PathBuf;

use apps_common::options::{BadInput, Common, Record, size};
use apps_common::picture::check_writable;
use clap::Parser;

use super::Problem;

/// The command line of `barnes`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "barnes",
    version,
    about = "Barnes-Hut: gravity among many bodies"
)]
pub struct BarnesOptions {
    /// Bodies
    #[arg(long, value_name = "N", default_value_t = 32768, value_parser = size())]
    pub bodies: u32,

    /// Steps; each builds a tree, computes all forces and moves all bodies
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = size())]
    pub steps: u32,

    /// Steps before those, which are not measured
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub untimed: u32,

    /// Opening angle: a cell of side `l` at distance `d` counts as one mass where `l` is at most
    /// `theta * d`. The default is SPLASH's; less is more accurate, and costs more
    #[arg(
        long,
        value_name = "ANGLE",
        default_value_t = 1.0,
        allow_negative_numbers = true
    )]
    pub theta: f64,

    /// What is shared: what suits objects best, or SPLASH's records and its one tree
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Record::Split)]
    pub record: Record,

    /// Draws the bodies where they are in the end, as PNG
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub common: Common,
}

impl BarnesOptions {
    /// The problem that is asked for, to be solved on `nodes` nodes.
    ///
    /// # Errors
    /// When the options contradict each other, or the picture cannot be written.
    pub fn problem(&self, nodes: u16) -> Result<Problem, BadInput> {
        BadInput::unless_one_each(nodes, self.bodies, "bodies")?;
        let theta = self.theta;
        if !(theta.is_finite() && theta >= 0.0) {
            return Err(BadInput::Theta { theta });
        }
        if let Some(picture) = &self.picture {
            check_writable(picture)?;
        }
        let (bodies, steps) = (self.bodies as usize, self.steps as usize);
        let problem = Problem::new(bodies, steps, self.common.seed);
        let problem = Problem {
            untimed: self.untimed as usize,
            theta,
            drawn: self.picture.is_some(),
            ..problem
        };
        Ok(match self.record {
            Record::Split => problem,
            Record::Splash => Problem {
                leaf_bodies: 1,
                pair: true,
                ..problem
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    fn barnes(args: &[&str]) -> Result<BarnesOptions, clap::Error> {
        BarnesOptions::try_parse_from([&["barnes"], args].concat())
    }

    #[test]
    fn the_command_line_is_well_formed() {
        BarnesOptions::command().debug_assert();
    }

    #[test]
    fn the_defaults_are_the_papers_small_problem() {
        let problem = barnes(&[]).unwrap().problem(4).unwrap();
        assert_eq!((problem.bodies, problem.steps), (32_768, 3));
    }

    #[test]
    fn a_value_out_of_its_range_is_named() {
        let error = barnes(&["--bodies", "0"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ValueValidation);
    }

    #[test]
    fn every_node_must_have_something_to_do() {
        let wrong = barnes(&["--bodies", "1000"])
            .unwrap()
            .problem(1024)
            .unwrap_err();
        assert!(
            wrong
                .to_string()
                .starts_with("1024 nodes are more than 1000 bodies")
        );
    }
}
