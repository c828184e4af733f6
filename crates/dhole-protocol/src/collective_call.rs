//! Calls of collectives and barriers: of which kind they are, and where two nodes differ.

use std::fmt;

use dhole_model::{CallSite, NodeId};
use dhole_wire::Wire;
use serde::{Deserialize, Serialize};

use crate::sync_id::BarrierId;

/// What is done with the values of all nodes.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub enum CollectiveKind {
    /// Node 0's value goes to all.
    Broadcast,
    /// The values are combined, for node 0.
    Reduce,
    /// The values are combined, for all.
    AllReduce,
    /// Node 0 gets all values.
    Gather,
    /// All get all values.
    AllGather,
    /// Each node gets the values up to its own, combined.
    Scan,
    /// Each node gets the values before its own, combined.
    ExclusiveScan,
    /// Each node gets one of the values of a node.
    Scatter {
        /// The node that has them.
        from: NodeId,
    },
    /// Each node has a value for each.
    AllToAll,
}

/// Which way a value of a collective goes.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub enum Way {
    /// From a node to its children in the tree.
    Down,
    /// From a node to its parent.
    Up,
    /// From each node to each other.
    Across,
}

/// The tree along which the values of a collective travel, a binomial one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tree {
    /// The node without a parent.
    pub root: NodeId,
    /// How many nodes there are.
    pub nodes: usize,
}

impl Tree {
    /// How many nodes lie between the root and this one, in ascending order of their numbers; node
    /// 0 follows the last.
    pub fn distance(&self, node: NodeId) -> usize {
        // A peer may name a root that is no node.
        (node.index() + self.nodes - self.root.index() % self.nodes) % self.nodes
    }

    /// How many nodes are below a node, itself among them.
    pub fn row(&self, node: NodeId) -> usize {
        match self.distance(node) {
            0 => self.nodes,
            distance => (1 << distance.trailing_zeros()).min(self.nodes - distance),
        }
    }

    /// The parent of a node.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        let distance = self.distance(node);
        (distance > 0).then(|| self.at(distance & (distance - 1)))
    }

    /// The children of a node, in ascending order of their distances. The nodes below one are a
    /// [row](Tree::row) of those that follow it, up to its parent's next child.
    pub fn children(self, node: NodeId) -> impl Iterator<Item = NodeId> {
        let distance = self.distance(node);
        let steps = (0..usize::BITS).map(|bit| 1_usize << bit);
        let below = steps.take_while(move |step| distance & step == 0 && *step < self.nodes);
        below
            .map(move |step| distance + step)
            .take_while(move |child| *child < self.nodes)
            .map(move |child| self.at(child))
    }

    fn at(&self, distance: usize) -> NodeId {
        NodeId::at((self.root.index() + distance) % self.nodes)
    }
}

impl CollectiveKind {
    /// The name of the worker's method.
    pub const fn name(self) -> &'static str {
        match self {
            CollectiveKind::Broadcast => "broadcast",
            CollectiveKind::Reduce => "reduce",
            CollectiveKind::AllReduce => "all_reduce",
            CollectiveKind::Gather => "gather",
            CollectiveKind::AllGather => "all_gather",
            CollectiveKind::Scan => "scan",
            CollectiveKind::ExclusiveScan => "exclusive_scan",
            CollectiveKind::Scatter { .. } => "scatter",
            CollectiveKind::AllToAll => "all_to_all",
        }
    }

    /// Whether values go from the nodes to the root of the tree.
    pub fn goes_up(self) -> bool {
        use CollectiveKind::*;
        !matches!(self, Broadcast | Scatter { .. } | AllToAll)
    }

    /// Whether values go from the root of the tree to the nodes.
    pub fn goes_down(self) -> bool {
        use CollectiveKind::*;
        !matches!(self, Reduce | Gather | AllToAll)
    }

    /// Whether values go from each node to each other.
    pub fn goes_across(self) -> bool {
        self == CollectiveKind::AllToAll
    }

    /// The tree along which its values travel.
    pub fn tree(self, nodes: usize) -> Tree {
        let root = match self {
            CollectiveKind::Scatter { from } => from,
            _ => NodeId(0),
        };
        Tree { root, nodes }
    }
}

impl fmt::Display for CollectiveKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CollectiveKind::Scatter { from } => write!(f, "{} from {from}", self.name()),
            _ => f.write_str(self.name()),
        }
    }
}

/// What a worker waits for in a collective.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub struct CollectiveWait {
    /// Its number.
    pub number: u64,
    /// What is done with the values.
    pub kind: CollectiveKind,
    /// Which way the values go that it waits for.
    pub way: Way,
}

impl fmt::Display for CollectiveWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (number {})", self.kind, self.number)
    }
}

/// What a node calls, where all nodes should call the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Called {
    /// A collective.
    Collective(CollectiveKind),
    /// A barrier, or what is one too.
    Barrier,
    /// A value that node 0 makes for all.
    Once,
    /// Nothing more: the program is over.
    End,
}

impl Called {
    /// What a node calls that is at this barrier.
    pub(crate) fn at(barrier: BarrierId) -> Called {
        match barrier {
            BarrierId::End(_) => Called::End,
            BarrierId::Once(_) => Called::Once,
            _ => Called::Barrier,
        }
    }
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Called::Collective(kind) => kind.fmt(f),
            Called::Barrier => f.write_str("a barrier"),
            Called::Once => f.write_str("once"),
            Called::End => f.write_str("nothing more"),
        }
    }
}

/// A call of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CalledAt {
    /// The node.
    pub node: NodeId,
    /// What it calls.
    pub what: Called,
    /// Where in its program.
    pub site: CallSite,
}

/// Two nodes that do not call the same collectives and barriers in the same order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mismatch {
    /// The call of the node that found it.
    pub here: CalledAt,
    /// The call of the other.
    pub there: CalledAt,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { here, there } = self;
        let (node, what, site) = (here.node, here.what, here.site);
        let (other, other_site) = (there.node, there.site);
        match what == there.what {
            true => write!(
                f,
                "{node} calls {what} at {site} with values of another type than {other} does at \
                 {other_site}"
            )?,
            false => write!(
                f,
                "{node} calls {what} at {site}, where {other} calls {} at {other_site}",
                there.what
            )?,
        }
        f.write_str(
            ": all nodes call the same collectives and barriers, in the same order and with values \
             of the same types",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_has_every_node_once_and_each_subtree_is_a_row_of_nodes() {
        for nodes in 1..=70 {
            for root in [0, 1, nodes / 2, nodes - 1].map(|root| root % nodes) {
                let root = NodeId::at(root);
                let tree = Tree { root, nodes };
                let mut seen = vec![0; nodes];
                for node in (0..nodes).map(NodeId::at) {
                    let mut last = tree.distance(node);
                    for child in tree.children(node) {
                        assert_eq!(tree.parent(child), Some(node));
                        assert_eq!(tree.distance(child), last + 1, "the row goes on");
                        last = last_below(tree, child);
                        seen[child.index()] += 1;
                    }
                    assert_eq!(last, last_below(tree, node));
                    assert_eq!(last - tree.distance(node) + 1, tree.row(node));
                }
                assert_eq!((seen[root.index()], tree.parent(root)), (0, None));
                assert_eq!(seen.iter().sum::<usize>(), nodes - 1);
                assert!(seen.iter().all(|times| *times <= 1));
            }
        }
    }

    fn last_below(tree: Tree, node: NodeId) -> usize {
        let last = tree.children(node).last();
        last.map_or(tree.distance(node), |last| last_below(tree, last))
    }

    #[test]
    fn the_tree_is_as_deep_as_nodes_can_be_halved() {
        for (nodes, most) in [(1, 0), (2, 1), (4, 2), (5, 2), (8, 3), (1024, 10)] {
            let tree = CollectiveKind::Reduce.tree(nodes);
            let depth = |node| std::iter::successors(Some(node), |at| tree.parent(*at)).count() - 1;
            let deepest = (0..nodes).map(NodeId::at).map(depth).max();
            assert_eq!(deepest, Some(most), "{nodes} nodes");
            assert!(tree.children(NodeId(0)).count() <= 10);
        }
    }
}
