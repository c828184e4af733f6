//! The command line of `tsp`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use clap::{ArgAction, ArgGroup, Parser};

use super::pool::MOST_CITIES;
use super::{Instance, LowerBound, Pooled, Problem, Way};
use crate::input::Lines;
use crate::options::{BadInput, Common, listed};
use crate::raw::Granularity;
use crate::share::Share;

/// The largest file that is read, in bytes.
const MOST_BYTES: u64 = 16 << 20;

/// The command line of `tsp`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "tsp",
    version,
    about = "The shortest tour through all cities of a TSPLIB file",
    group(ArgGroup::new("tour").args(["input", "cities"]).required(true))
)]
pub struct Options {
    /// The file, of at most 16 MiB and 1,000 cities: EXPLICIT, EUC_2D or 3D, MAN_2D or 3D, MAX_2D
    /// or 3D, CEIL_2D, GEO or ATT. Some 20 cities are solved in seconds, with --bound one-tree 30
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,

    /// Cities at random places, instead of a file
    #[arg(long, value_name = "N",
        value_parser = RangedU64ValueParser::<u32>::new().range(2..=1000))]
    pub cities: Option<u32>,

    /// What is shared: Orca's job queue and bound, which are objects, TreadMarks' pool of tours in
    /// raw memory, or Jackal's list of jobs, taken in sections or by calls; all but the first of at
    /// most 32 cities
    #[arg(long, value_enum, default_value_t = Share::Objects)]
    pub share: Share,

    /// Cities that are left where a node searches a tour of the pool by itself
    #[arg(long, value_name = "N", default_value_t = DEPTH,
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=32))]
    pub depth: u32,

    /// Push the length of a shorter tour to all nodes, over raw memory: on or off
    #[arg(long, value_name = "WHAT", default_value = "on", value_parser = listed::<bool>(),
        action = ArgAction::Set)]
    pub push: bool,

    /// Bytes of a minipage of tours: those of a tour, or a number that divides a page
    #[arg(long, value_name = "BYTES", default_value = "148", value_parser = unit())]
    pub unit: u32,

    /// What is a minipage of tours: such a unit, or each page
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Granularity::Allocation)]
    pub granularity: Granularity,

    /// The lower bound for the rest of a tour: the shortest tree through the remaining cities, or
    /// 1-trees by Held and Karp
    #[arg(long, value_name = "HOW", value_enum, default_value_t = LowerBound::Tree)]
    pub bound: LowerBound,

    /// Begin with a shortest tour, which is found before the nodes begin: each order of the search
    /// does the same work
    #[arg(long)]
    pub preset: bool,

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
        let instance = match (&self.input, self.cities) {
            (Some(input), _) => Instance::parse(&Lines::read(input, MOST_BYTES)?)?,
            (None, cities) => Instance::random(cities.unwrap_or(2) as usize, self.common.seed),
        };
        self.share.check(&[
            ("depth", self.depth != DEPTH),
            ("push", !self.push),
            ("unit", self.unit != UNIT),
            ("granularity", self.granularity != Granularity::Allocation),
        ])?;
        let (share, cities) = (self.share, instance.cities());
        if share != Share::Objects {
            share.lacks(&[("time-limit", self.time_limit.is_some())])?;
            if cities > MOST_CITIES {
                return Err(BadInput::TooManyCities {
                    share: share.name(),
                    cities,
                    most: MOST_CITIES,
                });
            }
        }
        let way = match share {
            Share::Objects => Way::Objects,
            Share::Sections => Way::Sections,
            Share::Calls => Way::Calls,
            Share::Memory => {
                share.lacks(&[
                    ("bound", self.bound != LowerBound::Tree),
                    ("preset", self.preset),
                ])?;
                Way::Pooled(Pooled {
                    depth: self.depth as usize,
                    push: self.push,
                    unit: self.unit,
                    granularity: self.granularity,
                })
            }
        };
        let problem = Problem {
            bound: self.bound,
            time_limit: self.time_limit,
            way,
            ..Problem::from(instance)
        };
        Ok(match self.preset {
            true => problem.preset(),
            false => problem,
        })
    }
}

/// The bytes of a tour.
const UNIT: u32 = 148;
/// The paper's recursion level.
const DEPTH: u32 = 12;

/// Bytes of a minipage of tours.
fn unit() -> impl TypedValueParser<Value = u32> {
    PossibleValuesParser::new(["148", "128", "256"]).map(|bytes| bytes.parse().unwrap_or(UNIT))
}

/// A time in seconds, which may have a fraction.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text
        .parse()
        .map_err(|_| "it is no number of seconds".to_owned())?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|cause| cause.to_string())?;
    Ok(time)
}
