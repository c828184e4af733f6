//! The command line of `asp`.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::RangedU64ValueParser;

use super::graph::MOST_VERTICES;
use super::{Graph, Way};
use crate::input::Lines;
use crate::options::{BadInput, Common};
use crate::share::{Construct, Share};

/// The largest file that is read, in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// The command line of `asp`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "asp",
    version,
    about = "Shortest paths between all pairs of vertices of a graph"
)]
pub struct Options {
    /// The graph, in DIMACS's form (`p sp`, `a`), of at most 256 MiB, 16,384 vertices and arcs of
    /// 65,536; without one it is made
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,

    /// Vertices of a graph that is made; the distances of N vertices take 4 N^2 bytes on all nodes
    /// together
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = vertices(),
        conflicts_with = "input")]
    pub vertices: u32,

    /// What is shared: Orca's rows, which are a replicated object; rings of rows from which nodes
    /// take in sections; or nothing, with rows that are passed by calls
    #[arg(long, value_enum, default_value_t = Share::Objects)]
    pub share: Share,

    /// Where the rings of sections are allocated: on node 0, or on the node that fills them
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = Construct::There)]
    pub construct: Construct,

    /// Whether a node that passes a row on by calls waits until its child has it
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Forward::Started)]
    pub forward: Forward,

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub common: Common,
}

/// How a node passes a row on by calls.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forward {
    /// It goes on meanwhile.
    Started,
    /// It waits for each child.
    Sync,
}

fn vertices() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=MOST_VERTICES as u64)
}

impl Options {
    /// How the problem is to be solved.
    pub fn way(&self) -> Way {
        match self.share {
            Share::Objects | Share::Memory => Way::Objects,
            Share::Sections => Way::Sections(self.construct),
            Share::Calls => Way::Calls {
                waits: self.forward == Forward::Sync,
            },
        }
    }

    /// The problem that the options describe.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn problem(&self) -> Result<Graph, BadInput> {
        let share = self.share;
        share.among(&[Share::Objects, Share::Sections, Share::Calls])?;
        if share != Share::Sections {
            share.lacks(&[("construct here", self.construct != Construct::There)])?;
        }
        if share != Share::Calls {
            share.lacks(&[("forward sync", self.forward == Forward::Sync)])?;
        }
        match &self.input {
            Some(path) => Ok(Graph::parse(&Lines::read(path, MOST_BYTES)?)?),
            None => Ok(Graph::made(self.vertices as usize, self.common.seed)),
        }
    }
}
