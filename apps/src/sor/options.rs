//! The command line of `sor`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Parser};
use dhole::MemoryConsistency;

use super::Problem;
use crate::options::{BadInput, Common, size};
use crate::raw::{Element, Granularity};
use crate::share::{Construct, Share};

/// The most interior points of a grid: 32 GiB of them, more than one process should take.
const MAX_POINTS: u64 = 1 << 32;

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

    /// What the rows are: objects; raw memory, of which each row is a minipage (Linux on x86-64);
    /// objects at home at the nodes that relax them, with a barrier of sections; or each node's
    /// own, with edges that are passed by calls
    #[arg(long, value_enum, default_value_t = Share::Objects)]
    pub share: Share,

    /// Where the rows of sections are allocated: on node 0, or on the node that relaxes them
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = Construct::There)]
    pub construct: Construct,

    /// Rows of a colour that are one minipage of raw memory
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = size())]
    pub chunk: u32,

    /// What is a minipage of raw memory: what is allocated, or each page
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Granularity::Allocation)]
    pub granularity: Granularity,

    /// When a node sees what others write in raw memory: at once (sequential), or when it acquires
    /// what they have released (release) [default: as `dhole run` or `dhole sim` says, or
    /// sequential]
    #[arg(long, value_name = "WHEN")]
    pub consistency: Option<MemoryConsistency>,

    /// The numbers in raw memory
    #[arg(long, value_enum, default_value_t = Element::F64)]
    pub element: Element,

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

impl SorOptions {
    /// The problem that is asked for, to be solved on `nodes` nodes.
    ///
    /// # Errors
    /// When the options contradict each other.
    pub fn problem(&self, nodes: u16) -> Result<Problem, BadInput> {
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
            return Err(BadInput::TooManyPoints {
                rows,
                columns,
                most: MAX_POINTS,
            });
        }
        if self.share != Share::Sections {
            let here = self.construct != Construct::There;
            self.share.lacks(&[("construct here", here)])?;
        }
        if matches!(self.share, Share::Sections | Share::Calls) {
            self.share.lacks(&[
                ("layout", self.layout != SorLayout::Rows),
                ("hoist no", !self.hoist),
                ("measure-setup", measure_setup),
            ])?;
        }
        self.share.check(&[
            ("chunk", self.chunk != 1),
            ("granularity", self.granularity != Granularity::Allocation),
            ("consistency", self.consistency.is_some()),
            ("element", self.element != Element::F64),
        ])?;
        if !(omega > 0.0 && omega < 2.0) {
            return Err(BadInput::Omega { omega });
        }
        BadInput::unless_one_each(nodes, rows, "rows")?;
        Ok(Problem {
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

fn yes_or_no() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["yes", "no"]).map(|what| what == "yes")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::options::BAD_INPUT;

    fn sor(args: &[&str]) -> Result<SorOptions, clap::Error> {
        SorOptions::try_parse_from([&["sor"], args].concat())
    }

    #[test]
    fn the_command_line_is_well_formed() {
        SorOptions::command().debug_assert();
    }

    #[test]
    fn the_defaults_are_the_papers_small_problem() {
        let problem = sor(&[]).unwrap().problem(4).unwrap();
        assert_eq!(
            (problem.rows, problem.columns, problem.steps),
            (3070, 2047, 20)
        );
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
                columns: 1_000_000,
                most: 1 << 32
            })
        );
        for omega in ["0", "2", "NaN"] {
            let wrong = sor(&["--omega", omega]).unwrap().problem(4);
            assert!(matches!(wrong, Err(BadInput::Omega { .. })), "{omega}");
        }
    }
}
