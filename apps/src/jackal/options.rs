//! The command line of `jackal`.

use clap::{ArgAction, Parser, Subcommand};

use super::{Home, Problem};
use crate::options::{BadInput, Common, listed};

/// The command line of `jackal`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "jackal",
    version,
    about = "The microbenchmarks of Jackal's paper"
)]
pub struct Options {
    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(subcommand)]
    pub benchmark: Benchmark,
}

/// A microbenchmark.
#[derive(Subcommand, Clone, Debug)]
pub enum Benchmark {
    /// Nodes 1 and 2 add to a counter of node 0, in a section each
    Counter {
        /// How often each of the two nodes adds
        #[arg(long, value_name = "N", default_value_t = 1000)]
        each: u64,

        /// Whether the two nodes take turns
        #[arg(
            long, value_name = "WHAT", default_value = "on",
            value_parser = listed::<bool>(), action = ArgAction::Set,
        )]
        turns: bool,

        /// What node 0 does meanwhile
        #[arg(long, value_name = "WHAT", value_enum, default_value_t = Home::Waits)]
        home: Home,

        /// Nodes that keep a copy of the counter when it begins, for they have read it three times
        #[arg(long, value_name = "NODES", value_delimiter = ',')]
        keepers: Vec<usize>,

        #[allow(missing_docs, reason = "clap would take the words for the program's")]
        #[command(flatten)]
        common: Common,
    },
}

impl Benchmark {
    /// The options that all programs have.
    pub fn common(&self) -> &Common {
        let Benchmark::Counter { common, .. } = self;
        common
    }

    /// The problem that the options describe.
    ///
    /// # Errors
    /// When a node that is to keep a copy is none of the run.
    pub fn problem(&self, nodes: u16) -> Result<Problem, BadInput> {
        let Benchmark::Counter {
            each,
            turns,
            home,
            keepers,
            ..
        } = self;
        let nodes = usize::from(nodes);
        if let Some(keeper) = keepers.iter().find(|keeper| **keeper >= nodes) {
            return Err(BadInput::NoNode {
                option: "keepers",
                node: *keeper,
                nodes,
            });
        }
        Ok(Problem {
            each: *each,
            turns: *turns,
            home: *home,
            keepers: keepers.clone(),
        })
    }
}
