//! Unbalanced tree search: counts the nodes of a tree that no one knows beforehand (Olivier and
//! others, "UTS: An unbalanced tree search benchmark", 2006). How many children a node has is
//! decided by the SHA-1 hash that is its name, so all machines search the same tree.

mod options;
mod sequential;
mod shared;
mod tree;

pub use options::Options;
pub use tree::{Kind, Node, Shape, Tree};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::program::Losses;
use crate::report::count;
use crate::solve::Program;

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Counted {
    /// Nodes of the tree.
    pub nodes: u64,
    /// Those without children.
    pub leaves: u64,
    /// The most steps from the root to a node.
    pub depth: u32,
}

impl Counted {
    /// What was counted in two parts of the tree.
    pub fn and(self, other: Counted) -> Counted {
        Counted {
            nodes: self.nodes + other.nodes,
            leaves: self.leaves + other.leaves,
            depth: self.depth.max(other.depth),
        }
    }

    /// One node with so many children.
    pub fn of(node: &Node, children: u32) -> Counted {
        Counted {
            nodes: 1,
            leaves: u64::from(children == 0),
            depth: node.depth(),
        }
    }
}

/// The program.
pub const PROGRAM: Program<Tree, Counted> = Program {
    name: "uts",
    losses: Losses::End,
    sequential: sequential::count,
    shared: shared::count,
    differ: |alone, found| (alone != found).then(|| format!("{alone:?} and {found:?}")),
    title: |tree| format!("unbalanced tree search, {tree}"),
    found: |_, found| {
        let (nodes, leaves) = (count(found.nodes as usize), count(found.leaves as usize));
        format!(
            "{nodes} nodes, {leaves} of them leaves, depth {}",
            found.depth
        )
    },
    result,
    keep: |_, _| Ok(()),
};

fn result(tree: &Tree, found: &Counted) -> Value {
    json!({
        "tree": tree.to_string(),
        "nodes": found.nodes,
        "leaves": found.leaves,
        "depth": found.depth,
    })
}
