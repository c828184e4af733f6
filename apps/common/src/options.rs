//! The programs' command lines. A program reports a wrong option with its value before it runs
//! anything, and ends with code 2.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use clap::{ArgAction, Args};
use dhole::settings::Value;
use dhole::{Barriers, Coherence, Defaults, Detector, MAX_NODES, Placement, Races, WriteDetection};
use thiserror::Error;

use crate::input::BadFile;

/// The exit code of a program with impossible options.
pub const BAD_INPUT: u8 = 2;

/// The options of all programs.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Nodes of the cluster [default: as `dhole run` or `dhole sim` says, or 4]
    #[arg(short, long, value_name = "N", value_parser = nodes())]
    pub nodes: Option<u16>,

    /// The seed of the initial state
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// The protocol of shared objects: lazy, update, home, directory or treadmarks [default: as
    /// `dhole run` or `dhole sim` says, or lazy]
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
    #[arg(long, value_name = "WHAT", value_parser = listed::<bool>(), action = ArgAction::Set)]
    pub read_aggregation: Option<bool>,

    /// Send the write notices of an interval as the difference from one of the node's last N
    /// intervals, under lazy and update: 16 by default, never at 0
    #[arg(long, value_name = "N", value_parser = reach())]
    pub notice_reduction: Option<u32>,

    /// The place of copies: that of the node's first access (the default, not under treadmarks), or
    /// one place on all nodes
    #[arg(long, value_name = "WHERE", value_parser = listed::<Placement>())]
    pub allocation: Option<Placement>,

    /// How the runtime finds what was written, under lazy: by marking each object (the default), by
    /// comparing pages with their twins, or by comparing objects
    #[arg(long, value_name = "HOW", value_parser = listed::<WriteDetection>())]
    pub write_detection: Option<WriteDetection>,

    /// Whether the runtime learns from what the program did what it will do next (not under
    /// treadmarks): on, which is the default, or off
    #[arg(long, value_name = "WHAT", value_parser = listed::<bool>(), action = ArgAction::Set)]
    pub learn: Option<bool>,

    /// Whether a node reads objects in the memory of nodes that it sees, without a message: on or
    /// off [default: as `dhole run` or `dhole sim` says, or on]
    #[arg(long, value_name = "WHAT", value_parser = listed::<bool>(), action = ArgAction::Set)]
    pub one_sided: Option<bool>,

    /// Whether sections run at the home of their lock's object, in one round trip: on or off, at
    /// their callers under the lock [default: as `dhole run` or `dhole sim` says, or on]
    #[arg(long, value_name = "WHAT", value_parser = listed::<bool>(), action = ArgAction::Set)]
    pub sections: Option<bool>,

    /// Run the sequential version too, and compare
    #[arg(long)]
    pub verify: bool,

    /// Whether races are ignored, reported (warn), reported with those that warn overlooks, at a
    /// cost (warn-all), or end the run (fail). Under treadmarks there is no detection [default: as
    /// `dhole run` or `dhole sim` says, or warn]
    #[arg(long, value_name = "WHAT", value_parser = listed::<Races>())]
    pub races: Option<Races>,

    /// Print one JSON object instead of the screen
    #[arg(long)]
    pub json: bool,

    /// Say at the end, on standard error, for what the nodes waited and at which lines
    #[arg(long)]
    pub report: bool,

    /// Write when each node waited to this file, as a timeline for Perfetto or speedscope
    /// [default: as `dhole run` or `dhole sim` says, or none]
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Print the table of all counters too, by subject
    #[arg(long)]
    pub counters: bool,
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
    #[error("a grid of {rows} x {columns} points is too large: at most {most} points")]
    TooManyPoints {
        /// The rows asked for.
        rows: u32,
        /// The columns asked for.
        columns: u32,
        /// The most points of a grid.
        most: u64,
    },
    /// The sweeps would not converge.
    #[error(
        "an over-relaxation factor of {omega} does not converge: it must be above 0 and below 2"
    )]
    Omega {
        /// The factor asked for.
        omega: f64,
    },
    /// A page has no whole number of words.
    #[error("pages of {0} bytes: it must be a multiple of 8")]
    PageBytes(u32),
    /// What is asked for needs more nodes.
    #[error("{what} on {nodes} nodes: at least {needed} are needed")]
    TooFewNodes {
        /// The nodes there are.
        nodes: u16,
        /// The nodes that are needed.
        needed: u32,
        /// What needs them.
        what: String,
    },
    /// A tree that no number of nodes could search.
    #[error("{0}")]
    Tree(&'static str),
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
    /// A node is named that the run has not.
    #[error("--{option} {node}: the run has {nodes} nodes")]
    NoNode {
        /// The option.
        option: &'static str,
        /// The node.
        node: usize,
        /// The nodes of the run.
        nodes: usize,
    },
    /// A variable of the environment has an unknown value.
    #[error("{0}")]
    Variable(String),
    /// Shared tours have room for so many.
    #[error("{cities} cities: with --share {share} there may be {most}")]
    TooManyCities {
        /// What is shared.
        share: &'static str,
        /// The cities.
        cities: usize,
        /// The most there may be.
        most: usize,
    },
    /// The matrix has no whole number of blocks.
    #[error("a matrix of {size} in blocks of {block}: it must be a multiple of them")]
    Blocks {
        /// Rows and columns of the matrix.
        size: u32,
        /// Rows and columns of a block.
        block: u32,
    },
    /// An option that only raw memory has.
    #[error("--{option}: only raw memory has it (--share memory)")]
    NeedsMemory {
        /// Its name.
        option: &'static str,
    },
    /// The program lacks a way to share.
    #[error("--share {share}: the program has {has}")]
    NoShare {
        /// What is to be shared.
        share: &'static str,
        /// What it can share.
        has: String,
    },
    /// An option that a way to share lacks.
    #[error("--{option}: not with --share {share}")]
    NotShared {
        /// Its name.
        option: &'static str,
        /// What is shared.
        share: &'static str,
    },
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
        let defaults = Defaults::from_env();
        let defaults = defaults.map_err(|wrong| BadInput::Variable(wrong.to_string()))?;
        let protocol = self.protocol.or(defaults.coherence).unwrap_or_default();
        let races = self.races.or(defaults.races);
        let properties = protocol.properties();
        let (aggregates, paged) = (properties.aggregates, properties.keeps_pages());
        let first_touch = self.allocation == Some(Placement::FirstTouch);
        let looks_for_races = races.is_some_and(|races| races != Races::Ignore);
        let lacked = [
            (
                !aggregates && self.read_aggregation.is_some(),
                "read-aggregation",
                "does not aggregate reads, as lazy does",
            ),
            (
                !aggregates && self.write_detection.is_some(),
                "write-detection",
                "finds in one way what was written, lazy in several",
            ),
            (
                !properties.announces && self.notice_reduction.is_some(),
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

fn nodes() -> RangedU64ValueParser<u16> {
    RangedU64ValueParser::new().range(1..=MAX_NODES as u64)
}

/// One of the values of a setting, which the help lists.
pub fn listed<V: Value + Clone + Send + Sync + 'static>() -> impl TypedValueParser<Value = V> {
    PossibleValuesParser::new(V::allowed()).map(|said| V::find(&said).expect("it is listed"))
}

fn reach() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(0..=1000)
}

/// A number of things or of steps.
pub fn size() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=100_000_000)
}
