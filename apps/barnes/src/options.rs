//! The command line of `barnes`.

use std::path::PathBuf;

use apps_common::options::{BadInput, Common, Record, size};
use apps_common::picture::check_writable;
use clap::Parser;
use clap::builder::RangedU64ValueParser;

use super::{Galaxy, Problem};

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

    /// How the bodies are laid out: one Plummer model, the default; a pair of them, which is
    /// SPLASH's and the default with its records; or two disks that have just passed each other
    #[arg(long, value_name = "WHAT", value_enum)]
    pub galaxy: Option<Galaxy>,

    /// Draws the bodies where they are in the end, as PNG: the slow ones blue, the fast ones golden
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,

    /// Makes the picture an animated PNG with so many frames, evenly spread over the steps; their
    /// bodies are fetched during the run, and are counted in it
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "picture",
        value_parser = frames()
    )]
    pub frames: u32,

    /// Walks for all bodies in passes: what many of them miss is fetched in one round. For
    /// networks; where nodes see each other's memory it changes nothing
    #[arg(long)]
    pub passes: bool,

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
        let (leaf_bodies, galaxy) = match self.record {
            Record::Split => (problem.leaf_bodies, Galaxy::Plummer),
            Record::Splash => (1, Galaxy::Pair),
        };
        Ok(Problem {
            untimed: self.untimed as usize,
            theta,
            leaf_bodies,
            galaxy: self.galaxy.unwrap_or(galaxy),
            frames: match self.picture {
                Some(_) => self.frames.min(self.steps) as usize,
                None => 0,
            },
            passes: self.passes,
            ..problem
        })
    }
}

/// Frames of a picture: as many as fit into a common memory.
fn frames() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=1000)
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
    fn the_layout_is_what_is_asked_for_or_suits_the_records() {
        let galaxy = |args: &[&str]| barnes(args).unwrap().problem(4).unwrap().galaxy;
        assert_eq!(galaxy(&[]), Galaxy::Plummer);
        assert_eq!(galaxy(&["--record", "splash"]), Galaxy::Pair);
        let both = ["--record", "splash", "--galaxy", "collision"];
        assert_eq!(galaxy(&both), Galaxy::Collision);
    }

    #[test]
    fn there_is_no_more_than_a_frame_a_step() {
        let error = barnes(&["--frames", "3"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MissingRequiredArgument);
        let picture = std::env::temp_dir().join(format!("dhole-frames-{}.png", std::process::id()));
        let frames = |frames: &str| {
            let picture = picture.to_str().unwrap();
            let args = ["--steps", "5", "--frames", frames, "--picture", picture];
            barnes(&args).unwrap().problem(4).unwrap().frames
        };
        assert_eq!((frames("3"), frames("9")), (3, 5));
        assert_eq!(barnes(&[]).unwrap().problem(4).unwrap().frames, 0);
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
