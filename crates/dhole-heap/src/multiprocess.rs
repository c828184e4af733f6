//! A cluster whose other nodes live in other processes: which ids are whose.
//!
//! All processes of a run agree on one *window* of ids that none of them has used. Each node begins
//! with a small part of it. Node 0 hands the rest out: a node that has used up its ids asks for
//! more, and announces its new part to every node before anything that lies there.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use dhole_model::unpoisoned::lock;
use dhole_model::{NodeId, Oid};
use dhole_space::space::size_of_part;

use crate::catalog_log::{CatalogLog, MOST_LEARNT, Progress};
use crate::parts::FIRST_PER_NODE;

/// What a cluster knows of being one of several processes.
pub(crate) struct Multiprocess {
    /// The node that is here.
    pub(crate) me: NodeId,
    nodes: u64,
    /// The ids that the processes agreed on.
    window: OnceLock<Range<u64>>,
    /// On node 0: how many ids were handed out.
    handed_out: Mutex<u64>,
    /// How many ids were left when node 0 handed out no more.
    pub(crate) refused: Mutex<Option<u64>>,
    pub(crate) log: Mutex<CatalogLog>,
    pub(crate) progress: Box<[Progress]>,
    /// With so many runs known, others may announce no more.
    pub(crate) most_learnt: AtomicUsize,
}

impl Multiprocess {
    pub(crate) fn new(me: NodeId, nodes: usize) -> Multiprocess {
        Multiprocess {
            me,
            nodes: nodes as u64,
            window: OnceLock::new(),
            handed_out: Mutex::default(),
            refused: Mutex::default(),
            log: Mutex::default(),
            progress: (0..nodes).map(|_| Progress::default()).collect(),
            most_learnt: AtomicUsize::new(MOST_LEARNT),
        }
    }

    /// This node, or as another one says, a node has allocated a run or an array.
    pub(crate) fn note_run(&self, first: Oid, creator: NodeId, from: NodeId) {
        self.note((first, 0), creator, from);
    }

    /// A node has a part of the ids, which others must know before what lies there.
    pub(crate) fn note_part(&self, ids: Range<u64>, of: NodeId, from: NodeId) {
        self.note((Oid(ids.start), ids.end - ids.start), of, from);
    }

    fn note(&self, what: (Oid, u64), creator: NodeId, from: NodeId) {
        let end = lock(&self.log).add(what, creator, from);
        for progress in &self.progress {
            progress.behind.fetch_max(end, Ordering::Release);
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

    /// The part of a node with which it begins; none where the window has too few ids.
    pub(crate) fn first(&self, node: NodeId) -> Option<Range<u64>> {
        let Range { start, end } = self.window();
        let first = start + FIRST_PER_NODE * node.index() as u64;
        (first + FIRST_PER_NODE <= end).then_some(first..first + FIRST_PER_NODE)
    }

    /// Where the ids begin that are handed out later.
    pub(crate) fn later(&self) -> Range<u64> {
        let Range { start, end } = self.window();
        (start + FIRST_PER_NODE * self.nodes).min(end)..end
    }

    /// Hands ids out to a node that needs as many as `size` says; none where too few are left. And
    /// how many were left.
    pub(crate) fn hand_out(&self, size: Range<u64>) -> (Option<Range<u64>>, u64) {
        let mut handed_out = lock(&self.handed_out);
        let later = self.later();
        let first = later.start + *handed_out;
        let left = later.end - first;
        let count = size_of_part(size, left);
        *handed_out += count.unwrap_or(0);
        (count.map(|count| first..first + count), left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_begins_with_a_part_and_the_rest_is_handed_out_once() {
        let multiprocess = Multiprocess::new(NodeId(0), 3);
        assert_eq!(multiprocess.first(NodeId(0)), None);
        assert!(multiprocess.settle(512..512 + 3 * FIRST_PER_NODE + 4096));
        let parts = [0, 1, 2].map(|node| multiprocess.first(NodeId(node)).unwrap());
        assert_eq!(parts, [512..4608, 4608..8704, 8704..12800]);
        assert_eq!(multiprocess.later(), 12800..16896);
        assert_eq!(multiprocess.hand_out(512..4096), (Some(12800..13312), 4096));
        assert_eq!(
            multiprocess.hand_out(2048..4096),
            (Some(13312..15360), 3584)
        );
        assert_eq!(multiprocess.hand_out(2048..4096), (None, 1536));
        assert_eq!(
            multiprocess.hand_out(1536..4096),
            (Some(15360..16896), 1536)
        );
        assert_eq!(multiprocess.hand_out(512..512), (None, 0));
    }
}
