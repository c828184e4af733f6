//! The command line of `uts`, whose letters are the benchmark's.

use clap::Parser;
use clap::builder::{PossibleValuesParser, RangedU64ValueParser, TypedValueParser};

use super::{Kind, Shape, Tree};
use crate::options::{BadInput, Common};

/// The command line of `uts`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "uts",
    version,
    about = "The number of nodes of an unbalanced tree",
    after_help = "The defaults are the benchmark's tree T1, of 4,130,071 nodes. T2: -a 2 -d 16 \
                  -b 6 -r 502. T3: -t 0 -b 2000 -q 0.124875 -m 8 -r 42. T4: -t 2 -a 0 -d 16 -b 6 \
                  -r 1 -q 0.234375 -m 4. T5: -a 0 -d 20 -r 34"
)]
pub struct Options {
    /// The kind of tree: 0 binomial, 1 geometric, 2 hybrid, 3 balanced
    #[arg(short = 't', long = "tree", value_name = "KIND", default_value = "1",
        value_parser = one_of(&["0", "1", "2", "3"]))]
    pub kind: u8,

    /// The shape of a geometric tree: 0 linear, 1 exponential, 2 cyclic, 3 fixed
    #[arg(short = 'a', long, value_name = "SHAPE", default_value = "3",
        value_parser = one_of(&["0", "1", "2", "3"]))]
    pub shape: u8,

    /// The children of the root, and of a geometric tree the expected number of a node's
    #[arg(short = 'b', long, value_name = "N", default_value_t = 4.0)]
    pub branching: f64,

    /// The depth of a geometric, hybrid or balanced tree
    #[arg(short = 'd', long, value_name = "N", default_value = "10",
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000))]
    pub depth: u32,

    /// The probability that a node of a binomial tree has children
    #[arg(short = 'q', long, value_name = "P", default_value_t = 15.0 / 64.0)]
    pub probability: f64,

    /// How many children it has then
    #[arg(short = 'm', long, value_name = "N", default_value = "4",
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=100))]
    pub children: u32,

    /// Down to which part of its depth a hybrid tree is geometric
    #[arg(short = 'f', long, value_name = "PART", default_value_t = 0.5)]
    pub shift: f64,

    /// The seed of the root
    #[arg(short = 'r', long = "root", value_name = "SEED", default_value_t = 19)]
    pub root: u32,

    #[allow(missing_docs, reason = "clap would take the words for the program's")]
    #[command(flatten)]
    pub common: Common,
}

fn one_of(values: &'static [&'static str]) -> impl TypedValueParser<Value = u8> {
    PossibleValuesParser::new(values).map(|value| value.parse().unwrap_or(0))
}

impl Options {
    /// The tree that the options describe.
    ///
    /// # Errors
    /// When it has no end, or a number is none that a tree can have.
    pub fn problem(&self) -> Result<Tree, BadInput> {
        let tree = Tree {
            kind: match self.kind {
                0 => Kind::Binomial,
                1 => Kind::Geometric,
                2 => Kind::Hybrid,
                _ => Kind::Balanced,
            },
            seed: self.root,
            branching: self.branching,
            shape: match self.shape {
                0 => Shape::Linear,
                1 => Shape::Exponential,
                2 => Shape::Cyclic,
                _ => Shape::Fixed,
            },
            depth: self.depth,
            probability: self.probability,
            children: self.children,
            shift: self.shift,
        };
        let among = |value: f64, most: f64| (0.0..=most).contains(&value);
        if !among(tree.branching, 1e6) {
            return Err(BadInput::Tree("--branching is a number from 0 to 1000000"));
        }
        if !among(tree.shift, 1.0) {
            return Err(BadInput::Tree(
                "--shift is a part of the depth: from 0 to 1",
            ));
        }
        let is_binomial = matches!(tree.kind, Kind::Binomial | Kind::Hybrid);
        let expected = tree.probability * f64::from(tree.children);
        if is_binomial && !(among(tree.probability, 1.0) && expected < 1.0) {
            return Err(BadInput::Tree(
                "--probability times --children must be less than 1: the tree would have no end",
            ));
        }
        Ok(tree)
    }
}
