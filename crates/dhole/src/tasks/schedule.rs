//! How numbers are divided among the nodes.

use std::ops::Range;

use dhole_model::NodeId;
use serde::{Deserialize, Serialize};

/// How [`for_each`](super::for_each()) divides its numbers among the nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Schedule {
    /// Each node gets as many as each other, in a row: node 0 the first. No messages. For work that
    /// is alike, and for data that a node has already.
    Static,
    /// A node that has nothing to do gets the next so many, at least one. Two messages each time,
    /// but for node 0.
    Dynamic(u64),
    /// As `Dynamic`, where a node gets `left / (2 * nodes)` of those that are left, at least one
    /// (guided self-scheduling: Polychronopoulos and Kuck, 1987).
    Guided,
}

impl Schedule {
    /// How many of the numbers that are left the next part has at most.
    pub(super) fn many(self, left: u64, nodes: u64) -> u64 {
        match self {
            Schedule::Static => left.div_ceil(nodes),
            Schedule::Dynamic(many) => many.max(1),
            Schedule::Guided => left.div_ceil(2 * nodes),
        }
    }
}

/// The part of so many that a node has, where each has as many as each other.
pub(super) fn own_part(many: u64, node: NodeId, nodes: u64) -> Range<u64> {
    let place = |node: u128| (u128::from(many) * node / u128::from(nodes)) as u64;
    let me = node.index() as u128;
    place(me)..place(me + 1)
}
