//! The programs' command lines. A program reports a wrong option with its value before it runs
//! anything, and ends with code 2.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use clap::{ArgAction, Args, Parser};
use dhole::{Barriers, Coherence, Defaults, Detector, MAX_NODES, Placement, Races, WriteDetection};
use thiserror::Error;

use crate::input::BadFile;
use crate::picture::check_writable;
use crate::{barnes, sor};

/// The most interior points of a grid: 32 GiB of them, more than one process should take.
const MAX_POINTS: u64 = 1 << 32;

/// The exit code of a program with impossible options.
pub const BAD_INPUT: u8 = 2;

/// The options of all programs.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Nodes of the cluster
    #[arg(short, long, value_name = "N", default_value_t = 4, value_parser = nodes())]
    pub nodes: u16,

    /// The seed of the initial state
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// The protocol of shared objects: lazy, update, home or treadmarks [default: as `dhole run` or
    /// `dhole sim` says, or lazy]
    #[arg(long, value_name = "NAME")]
    pub protocol: Option<Coherence>,

    /// The kind of barriers: central or dissemination [default: as `dhole run` or `dhole sim` says,
    /// or dissemination]
    #[arg(long, value_name = "HOW")]
    pub barrier: Option<Barriers>,

    /// The detector: check, which is the default, or vm (not under treadmarks)
    #[arg(long, value_name = "NAME")]
    pub detector: Option<Detector>,

    /// Whether a miss fetches all invalid objects of the page (read aggregation), under lazy: on,
    /// which is the default, or off
    #[arg(long, value_name = "WHAT", value_parser = switch(), action = ArgAction::Set)]
    pub read_aggregation: Option<bool>,

    /// Send the write notices of an interval as the difference from one of the node's last N
    /// intervals, under lazy and update: 16 by default, never at 0
    #[arg(long, value_name = "N", value_parser = reach())]
    pub notice_reduction: Option<u32>,

    /// The place of copies: that of the node's first access (the default, not under treadmarks), or
    /// one place on all nodes
    #[arg(long, value_name = "WHERE", value_parser = placement())]
    pub allocation: Option<Placement>,

    /// How the runtime finds what was written, under lazy: by marking each object (the default), by
    /// comparing pages with their twins, or by comparing objects
    #[arg(long, value_name = "HOW", value_parser = write_detection())]
    pub write_detection: Option<WriteDetection>,

    /// Whether the runtime learns from what the program did what it will do next (not under
    /// treadmarks): on, which is the default, or off
    #[arg(long, value_name = "WHAT", value_parser = switch(), action = ArgAction::Set)]
    pub learn: Option<bool>,

    /// Whether a node reads objects in the memory of nodes that it sees, without a message: on or
    /// off [default: as `dhole run` or `dhole sim` says, or on]
    #[arg(long, value_name = "WHAT", value_parser = switch(), action = ArgAction::Set)]
    pub one_sided: Option<bool>,

    /// Run the sequential version too, and compare
    #[arg(long)]
    pub verify: bool,

    /// Whether races are ignored, reported (warn), reported with those that warn overlooks, at a
    /// cost (warn-all), or end the run (fail). Under treadmarks there is no detection [default: as
    /// `dhole run` or `dhole sim` says, or warn]
    #[arg(long, value_name = "WHAT", value_parser = races())]
    pub races: Option<Races>,

    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,

    /// Say at the end, on standard error, for what the nodes waited and at which lines
    #[arg(long)]
    pub report: bool,
}

/// The command line of `sor`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "sor",
    version,
    about = "Red-black successive over-relaxation of a grid"
)]
pub struct SorOptions {
    /// Interior rows of the grid
    #[arg(long, value_name = "N", default_value_t = 3070, value_parser = size())]
    pub rows: u32,

    /// Interior columns of the grid, of both colours together
    #[arg(long, value_name = "N", default_value_t = 2047, value_parser = size())]
    pub columns: u32,

    /// Steps; each relaxes the red points and then the black ones
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = size())]
    pub steps: u32,

    /// The over-relaxation factor, above 0 and below 2
    #[arg(long, default_value_t = 1.5)]
    pub omega: f64,

    /// What the rows are: objects, or raw memory, of which each row is a minipage (Linux on x86-64)
    #[arg(long, value_enum, default_value_t = SorShare::Objects)]
    pub share: SorShare,

    /// Rows of a colour that are one minipage of raw memory
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = size())]
    pub chunk: u32,

    /// How the rows of a colour are shared: each an object, or all of them one array
    #[arg(long, value_enum, default_value_t = SorLayout::Rows)]
    pub layout: SorLayout,

    /// Read the handle of a row once for all its points (hoisting), and not for each: yes or no
    #[arg(long, value_name = "WHAT", default_value = "yes", value_parser = yes_or_no(),
        action = ArgAction::Set)]
    pub hoist: bool,

    /// Count messages and data from the program's start, and not from the first step
    #[arg(long)]
    pub measure_setup: bool,

    /// Relax the rows first that need a row of another node. So all nodes fetch right after the
    /// barrier, and answer each other while they wait
    #[arg(long)]
    pub edges_first: bool,

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub common: Common,
}

/// What the rows of `sor` are.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum SorShare {
    /// Objects.
    Objects,
    /// Raw memory.
    Memory,
}

/// How `sor` shares its rows.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum SorLayout {
    /// Each row is an object.
    Rows,
    /// All rows of a colour are one array.
    Arrays,
    /// The same, and a page of a row is fetched by itself.
    Pages,
}

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

/// The part of a body or molecule that is shared.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Record {
    /// The fields that other nodes need; the rest is its owner's.
    #[default]
    Split,
    /// All fields of SPLASH's record, so that as many fit on a page.
    Splash,
}

/// An error in options that contradict each other, or whose range clap cannot describe.
#[derive(Error, Clone, PartialEq, Debug)]
pub enum BadInput {
    /// A node would have nothing to do.
    #[error("{nodes} nodes are more than {count} {of}: every node needs at least one")]
    TooManyNodes {
        /// The nodes asked for.
        nodes: u16,
        /// The number of things to divide among them.
        count: u32,
        /// The things.
        of: &'static str,
    },
    /// The grid would not fit.
    #[error("a grid of {rows} x {columns} points is too large: at most {MAX_POINTS} points")]
    TooManyPoints {
        /// The rows asked for.
        rows: u32,
        /// The columns asked for.
        columns: u32,
    },
    /// The sweeps would not converge.
    #[error(
        "an over-relaxation factor of {omega} does not converge: it must be above 0 and below 2"
    )]
    Omega {
        /// The factor asked for.
        omega: f64,
    },
    /// No cell could be told near from far.
    #[error("an opening angle of {theta}: it must be a finite number of at least 0")]
    Theta {
        /// The angle asked for.
        theta: f64,
    },
    /// There are too few keys to change two in each ranking.
    #[error("{rankings} rankings: with so few keys there may be {most}")]
    TooManyRankings {
        /// The rankings asked for.
        rankings: u32,
        /// The most there may be.
        most: u32,
    },
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] BadFile),
    /// The position is none, or cannot be solved.
    #[error("a position of {given}: {what}")]
    Position {
        /// The position asked for.
        given: String,
        /// The error.
        what: String,
    },
    /// A switch that was given has no effect under the protocol.
    #[error("--{switch}: {protocol} {why}")]
    NoSwitch {
        /// The protocol.
        protocol: Coherence,
        /// The switch, and its value if the value decides.
        switch: &'static str,
        /// What the protocol does instead.
        why: &'static str,
    },
    /// A variable of the environment has an unknown value.
    #[error("{0}")]
    Variable(String),
    /// No water has such a cut-off radius.
    #[error("a cut-off radius of {cutoff} angstrom: it must be at least 1, or 0 for the largest")]
    Cutoff {
        /// The radius asked for.
        cutoff: f64,
    },
}

impl BadInput {
    /// Refuses more nodes than things.
    ///
    /// # Errors
    /// If there are more `nodes` than things, `count` of them, to divide among them.
    pub fn unless_one_each(nodes: u16, count: u32, of: &'static str) -> Result<(), BadInput> {
        match nodes {
            _ if u32::from(nodes) > count => Err(BadInput::TooManyNodes { nodes, count, of }),
            _ => Ok(()),
        }
    }
}

impl Common {
    /// Checks that the protocol has every switch that was given.
    ///
    /// # Errors
    /// [`BadInput::NoSwitch`] names the first switch that would have no effect.
    pub fn check_switches(&self) -> Result<(), BadInput> {
        use Coherence::{Lazy, TreadMarks, Update};
        let defaults = Defaults::from_env();
        let defaults = defaults.map_err(|wrong| BadInput::Variable(wrong.to_string()))?;
        let protocol = self.protocol.or(defaults.coherence).unwrap_or(Lazy);
        let races = self.races.or(defaults.races);
        let (lazy, paged) = (protocol == Lazy, protocol == TreadMarks);
        let first_touch = self.allocation == Some(Placement::FirstTouch);
        let looks_for_races = races.is_some_and(|races| races != Races::Ignore);
        let lacked = [
            (
                !lazy && self.read_aggregation.is_some(),
                "read-aggregation",
                "does not aggregate reads, as lazy does",
            ),
            (
                !lazy && self.write_detection.is_some(),
                "write-detection",
                "finds in one way what was written, lazy in several",
            ),
            (
                !matches!(protocol, Lazy | Update) && self.notice_reduction.is_some(),
                "notice-reduction",
                "gives no notices of objects, as lazy and update do",
            ),
            (
                paged && self.learn.is_some(),
                "learn",
                "learns nothing, as the protocols of objects do",
            ),
            (
                paged && first_touch,
                "allocation first-touch",
                "has every page at one place everywhere",
            ),
            (
                paged && self.detector == Some(Detector::Vm),
                "detector vm",
                "needs the detector check, for vm stores objects where a node touches them",
            ),
            (
                paged && looks_for_races,
                "races",
                "looks for none, for its pages have several writers",
            ),
        ];
        match lacked.into_iter().find(|(is_lacked, ..)| *is_lacked) {
            None => Ok(()),
            Some((_, switch, why)) => Err(BadInput::NoSwitch {
                protocol,
                switch,
                why,
            }),
        }
    }
}

impl SorOptions {
    /// The problem that is asked for, to be solved on `nodes` nodes.
    ///
    /// # Errors
    /// When the options contradict each other.
    pub fn problem(&self, nodes: u16) -> Result<sor::Problem, BadInput> {
        let &SorOptions {
            rows,
            columns,
            steps,
            omega,
            measure_setup,
            edges_first,
            ref common,
            ..
        } = self;
        if u64::from(rows) * u64::from(columns) > MAX_POINTS {
            return Err(BadInput::TooManyPoints { rows, columns });
        }
        if !(omega > 0.0 && omega < 2.0) {
            return Err(BadInput::Omega { omega });
        }
        BadInput::unless_one_each(nodes, rows, "rows")?;
        Ok(sor::Problem {
            rows: rows as usize,
            columns: columns as usize,
            steps: steps as usize,
            seed: common.seed,
            omega,
            setup_measured: measure_setup,
            edges_first,
        })
    }
}

impl BarnesOptions {
    /// The problem that is asked for, to be solved on `nodes` nodes.
    ///
    /// # Errors
    /// When the options contradict each other, or the picture cannot be written.
    pub fn problem(&self, nodes: u16) -> Result<barnes::Problem, BadInput> {
        BadInput::unless_one_each(nodes, self.bodies, "bodies")?;
        let theta = self.theta;
        if !(theta.is_finite() && theta >= 0.0) {
            return Err(BadInput::Theta { theta });
        }
        if let Some(picture) = &self.picture {
            check_writable(picture)?;
        }
        let (bodies, steps) = (self.bodies as usize, self.steps as usize);
        let problem = barnes::Problem::new(bodies, steps, self.common.seed);
        let problem = barnes::Problem {
            untimed: self.untimed as usize,
            theta,
            drawn: self.picture.is_some(),
            ..problem
        };
        Ok(match self.record {
            Record::Split => problem,
            Record::Splash => barnes::Problem {
                leaf_bodies: 1,
                pair: true,
                ..problem
            },
        })
    }
}

fn nodes() -> RangedU64ValueParser<u16> {
    RangedU64ValueParser::new().range(1..=MAX_NODES as u64)
}

fn races() -> impl TypedValueParser<Value = Races> {
    PossibleValuesParser::new(Races::ALL.map(Races::name))
        .map(|name| Races::named(&name).expect("it is the name of one"))
}

/// `on` or `off`.
pub(crate) fn switch() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["on", "off"]).map(|what| what == "on")
}

fn yes_or_no() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["yes", "no"]).map(|what| what == "yes")
}

fn write_detection() -> impl TypedValueParser<Value = WriteDetection> {
    PossibleValuesParser::new(["marks", "twins", "objects"]).map(|how| match &*how {
        "marks" => WriteDetection::Marks,
        "objects" => WriteDetection::Objects,
        _ => WriteDetection::Twins,
    })
}

fn placement() -> impl TypedValueParser<Value = Placement> {
    PossibleValuesParser::new(["first-touch", "everywhere"]).map(|place| match &*place {
        "first-touch" => Placement::FirstTouch,
        _ => Placement::Everywhere,
    })
}

fn reach() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(0..=1000)
}

fn size() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=100_000_000)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    fn sor(args: &[&str]) -> Result<SorOptions, clap::Error> {
        SorOptions::try_parse_from([&["sor"], args].concat())
    }

    fn barnes(args: &[&str]) -> Result<BarnesOptions, clap::Error> {
        BarnesOptions::try_parse_from([&["barnes"], args].concat())
    }

    #[test]
    fn the_command_lines_are_well_formed() {
        SorOptions::command().debug_assert();
        BarnesOptions::command().debug_assert();
    }

    #[test]
    fn the_defaults_are_the_papers_small_problems() {
        let problem = sor(&[]).unwrap().problem(4).unwrap();
        assert_eq!(
            (problem.rows, problem.columns, problem.steps),
            (3070, 2047, 20)
        );
        let problem = barnes(&[]).unwrap().problem(4).unwrap();
        assert_eq!((problem.bodies, problem.steps), (32_768, 3));
    }

    #[test]
    fn a_value_out_of_its_range_is_named() {
        for (args, value) in [
            (["--nodes", "0"], "'0'"),
            (["--nodes", "5000"], "'5000'"),
            (["--nodes", "99999999"], "'99999999'"),
            (["--rows", "0"], "'0'"),
            (["--columns", "-3"], "'-3'"),
            (["--steps", "many"], "'many'"),
            (["--races", "win"], "'win'"),
            (["--detector", "mmu"], "'mmu'"),
            (["--speed", "9"], "'--speed'"),
        ] {
            let error = sor(&args).expect_err(args[1]);
            assert!(error.to_string().contains(value), "{error}");
            assert_eq!(error.exit_code(), i32::from(BAD_INPUT));
        }
        let error = barnes(&["--bodies", "0"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ValueValidation);
    }

    #[test]
    fn every_node_must_have_something_to_do() {
        let grid = sor(&["--rows", "8"]).unwrap();
        let wrong = grid.problem(9);
        assert_eq!(
            wrong,
            Err(BadInput::TooManyNodes {
                nodes: 9,
                count: 8,
                of: "rows"
            })
        );
        assert!(grid.problem(8).is_ok());
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

    #[test]
    fn impossible_grids_are_refused() {
        let size = "1000000";
        let wrong = sor(&["--rows", size, "--columns", size])
            .unwrap()
            .problem(4);
        assert_eq!(
            wrong,
            Err(BadInput::TooManyPoints {
                rows: 1_000_000,
                columns: 1_000_000
            })
        );
        for omega in ["0", "2", "NaN"] {
            let wrong = sor(&["--omega", omega]).unwrap().problem(4);
            assert!(matches!(wrong, Err(BadInput::Omega { .. })), "{omega}");
        }
    }
}
