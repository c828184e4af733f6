use std::fmt;

use crate::NodeId;
use dhole_wire::Wire;
use serde::{Deserialize, Serialize};

/// The number of an interval of one node. The first interval that wrote anything is 1.
pub type IntervalIndex = u32;

/// The intervals of every node that a node has seen: element `p` is the highest interval of node
/// `p` whose write notices were applied (DOSA, section 3.1).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, Wire)]
pub struct VectorTime(Box<[IntervalIndex]>);

impl VectorTime {
    /// The time at which no interval of any of `nodes` nodes has been seen.
    pub fn zero(nodes: usize) -> VectorTime {
        VectorTime(vec![0; nodes].into())
    }

    /// Whether nothing has been seen.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|index| *index == 0)
    }

    /// The highest interval of `node` seen.
    #[inline]
    pub fn of(&self, node: NodeId) -> IntervalIndex {
        self.0[node.index()]
    }

    /// Adds `node`'s intervals up to `index`. The time never goes back.
    pub fn see(&mut self, node: NodeId, index: IntervalIndex) {
        let seen = &mut self.0[node.index()];
        *seen = (*seen).max(index);
    }

    /// Merges: takes the maximum of both times in every element.
    pub fn merge(&mut self, other: &VectorTime) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Takes the minimum of both times in every element: what both have seen.
    pub fn meet(&mut self, other: &VectorTime) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).min(*theirs);
        }
    }

    /// Whether this time includes everything that `other` has seen.
    pub fn covers(&self, other: &VectorTime) -> bool {
        self.0
            .iter()
            .zip(&other.0)
            .all(|(mine, theirs)| mine >= theirs)
    }

    /// The highest interval of each node seen, from the first node on.
    pub fn indices(&self) -> impl Iterator<Item = IntervalIndex> {
        self.0.iter().copied()
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.0.len()
    }
}

/// The version of an object: the write that made it. Versions are ordered by Lamport time and then
/// by node, which extends happens-before. With `lamport` 0 it is the object as allocated, and
/// `node` is its creator.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, Wire,
)]
pub struct Version {
    /// The Lamport time of the interval that wrote it; 0 for the allocation.
    pub lamport: u64,
    /// The node that wrote it, which has the bytes.
    pub node: NodeId,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} of {}", self.lamport, self.node)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}{:?}", self.lamport, self.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_time_covers_both() {
        let (mut a, mut b) = (VectorTime::zero(3), VectorTime::zero(3));
        a.see(NodeId(0), 4);
        b.see(NodeId(2), 1);
        assert!(!a.covers(&b) && !b.covers(&a));
        let mut both = a.clone();
        both.merge(&b);
        assert!(both.covers(&a) && both.covers(&b));
        assert_eq!(
            (both.of(NodeId(0)), both.of(NodeId(1)), both.of(NodeId(2))),
            (4, 0, 1)
        );
    }

    #[test]
    fn both_have_seen_what_their_times_meet_in() {
        let (mut a, mut b) = (VectorTime::zero(2), VectorTime::zero(2));
        a.see(NodeId(0), 4);
        a.see(NodeId(1), 2);
        b.see(NodeId(0), 3);
        let mut common = a.clone();
        common.meet(&b);
        assert!(a.covers(&common) && b.covers(&common));
        assert_eq!((common.of(NodeId(0)), common.of(NodeId(1))), (3, 0));
    }

    #[test]
    fn seeing_an_older_interval_changes_nothing() {
        let mut t = VectorTime::zero(1);
        t.see(NodeId(0), 5);
        t.see(NodeId(0), 3);
        assert_eq!(t.of(NodeId(0)), 5);
    }
}
