//! The command line of `asp`.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::RangedU64ValueParser;

use super::Graph;
use super::graph::MOST_VERTICES;
use crate::input::Lines;
use crate::options::{BadInput, Common};

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

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub common: Common,
}

fn vertices() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=MOST_VERTICES as u64)
}

impl Options {
    /// The problem that the options describe.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn problem(&self) -> Result<Graph, BadInput> {
        match &self.input {
            Some(path) => Ok(Graph::parse(&Lines::read(path, MOST_BYTES)?)?),
            None => Ok(Graph::made(self.vertices as usize, self.common.seed)),
        }
    }
}
