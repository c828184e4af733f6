//! A cluster whose other nodes live in other processes: which ids are whose.
//!
//! All processes of a run agree on one *window* of ids that none of them has used. It is cut into
//! extents, each twice as large as the one before, and each extent into a part for every node: so
//! whoever sees an id knows its node, and each node allocates without asking, as much as it likes.

use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, OnceLock};

use dhole_model::{NodeId, Oid};

use crate::ReserveError;
use crate::cluster::Extent;
use crate::told::{Log, MOST_LEARNT};

/// Ids that each node has in the first extent.
const FIRST_PER_NODE: u64 = 4096;

/// What a cluster knows of being one of several processes.
pub(crate) struct Apart {
    /// The node that is here.
    pub(crate) me: NodeId,
    nodes: u64,
    /// The ids that the processes agreed on.
    window: OnceLock<Range<u64>>,
    pub(crate) log: Mutex<Log>,
    pub(crate) lines: Box<[crate::told::Line]>,
    /// With so many runs known, others may tell of no more.
    pub(crate) most_learnt: AtomicUsize,
}

impl Apart {
    pub(crate) fn new(me: NodeId, nodes: usize) -> Apart {
        Apart {
            me,
            nodes: nodes as u64,
            window: OnceLock::new(),
            log: Mutex::default(),
            lines: (0..nodes).map(|_| crate::told::Line::default()).collect(),
            most_learnt: AtomicUsize::new(MOST_LEARNT),
        }
    }

    /// The window, empty until it is settled.
    pub(crate) fn window(&self) -> Range<u64> {
        self.window.get().cloned().unwrap_or(0..0)
    }

    /// Settles the window; whether it was not before.
    pub(crate) fn settle(&self, window: Range<u64>) -> bool {
        self.window.set(window).is_ok()
    }

    /// The `n`-th extent.
    pub(crate) fn extent(&self, n: usize) -> Result<Extent, ReserveError> {
        let Range { start, end } = self.window();
        let all = end - start;
        let too_many = ReserveError::Ids {
            ids: FIRST_PER_NODE.saturating_mul(self.nodes) << n.min(20),
            left: 0,
            all,
        };
        let unit = FIRST_PER_NODE * self.nodes;
        let before = 1_u64.checked_shl(n as u32).map(|sum| sum - 1);
        let base = before.and_then(|before| unit.checked_mul(before));
        let Some(base) = base else {
            return Err(too_many);
        };
        let per_node = FIRST_PER_NODE << n;
        match base + per_node * self.nodes <= all {
            true => Ok(Extent {
                base: start + base,
                per_node,
            }),
            false => Err(too_many),
        }
    }

    /// The number of the extent in which an id of the window lies, the node whose it is, and the
    /// end of the node's part of the extent.
    pub(crate) fn part_of(&self, oid: Oid) -> Option<(usize, NodeId, u64)> {
        let window = self.window();
        if !window.contains(&oid.0) {
            return None;
        }
        let place = (oid.0 - window.start) / (FIRST_PER_NODE * self.nodes);
        let n = (place + 1).ilog2() as usize;
        let extent = self.extent(n).ok()?;
        let node = (oid.0 - extent.base) / extent.per_node;
        let end = extent.base + (node + 1) * extent.per_node;
        Some((n, NodeId::at(node as usize), end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_of_a_window_is_in_the_part_of_one_node() {
        let apart = Apart::new(NodeId(1), 3);
        let unit = 3 * FIRST_PER_NODE;
        assert!(apart.settle(512..512 + 7 * unit + 100));
        let mut next = 512;
        for n in 0..3 {
            let extent = apart.extent(n).unwrap();
            assert_eq!(extent.base, next);
            for node in 0..3 {
                let start = extent.base + node * extent.per_node;
                let end = start + extent.per_node;
                let part = Some((n, NodeId(node as u16), end));
                assert_eq!(apart.part_of(Oid(start)), part);
                assert_eq!(apart.part_of(Oid(end - 1)), part);
            }
            next += 3 * extent.per_node;
        }
        // What is left over is too little for another extent.
        assert!(apart.extent(3).is_err() && apart.extent(64).is_err());
        for nobodys in [0, 511, next, next + 99, next + 100, u64::MAX] {
            assert_eq!(apart.part_of(Oid(nobodys)), None);
        }
    }
}
