//! What one node knows of one page.

use std::sync::Arc;

use dhole_model::{IntervalIndex, NodeId, VectorTime};
use smallvec::SmallVec;

use crate::page_command::{Applied, WrittenPages};

/// One node's state of a page.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Page {
    /// There is a copy, with the changes that `writers` tells of.
    pub here: bool,
    /// Who has written the page since the last collection, in ascending order.
    pub writers: SmallVec<[Writer; 2]>,
    pub twin: Option<Twin>,
    /// Who has a valid copy since the last collection, if the page was written before it.
    pub keeper: Option<NodeId>,
    /// The diffs that are kept here, in the order in which they came.
    pub diffs: Vec<Kept>,
}

/// A node that has written the page, perhaps this one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Writer {
    pub node: NodeId,
    /// The copy here contains its changes up to this interval of it.
    pub applied: IntervalIndex,
    /// What the worker waits for has come up to this interval.
    pub fetched: IntervalIndex,
    /// All of its diffs are kept here that were announced after this interval, as far as they are
    /// applied.
    pub kept_after: IntervalIndex,
    /// Its newest announcement that this node has heard of.
    pub known: Option<Known>,
}

/// An interval that announced the page.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Known {
    pub index: IntervalIndex,
    pub lamport: u64,
    pub pages: Arc<WrittenPages>,
}

/// The copy of a page from before this node's first write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Twin {
    /// The interval of the first write.
    pub index: IntervalIndex,
    /// Its Lamport time, once it has ended and announced the page.
    pub lamport: Option<u64>,
    /// The worker may write the page now.
    pub writable: bool,
}

/// A diff that is kept here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Kept {
    pub lamport: u64,
    pub node: NodeId,
    pub index: IntervalIndex,
}

impl Writer {
    /// Whether it has announced changes that the copy here does not contain.
    pub fn is_ahead(&self) -> bool {
        self.newest()
            .is_some_and(|known| known.index > self.applied)
    }

    fn newest(&self) -> Option<&Known> {
        self.known.as_ref()
    }

    /// Whether its newest announced changes happened before those of `other`.
    pub fn precedes(&self, other: &Writer) -> bool {
        let (Some(mine), Some(theirs)) = (self.newest(), other.newest()) else {
            return false;
        };
        self.node != other.node && theirs.pages.seen.of(self.node) >= mine.index
    }
}

impl Page {
    /// The state of a writer, made at first sight; the copy here contains what was written up to
    /// the last collection.
    pub fn writer(&mut self, node: NodeId, floor: &VectorTime) -> &mut Writer {
        let found = self
            .writers
            .binary_search_by_key(&node, |writer| writer.node);
        let at = found.unwrap_or_else(|at| {
            let applied = floor.of(node);
            let writer = Writer {
                node,
                applied,
                fetched: applied,
                kept_after: applied,
                known: None,
            };
            self.writers.insert(at, writer);
            at
        });
        &mut self.writers[at]
    }

    /// Whether the copy here contains everything that is known to have been written.
    pub fn is_valid(&self) -> bool {
        self.here && !self.writers.iter().any(Writer::is_ahead)
    }

    /// Whether somebody is known to have written the page.
    pub fn was_written(&self) -> bool {
        self.keeper.is_some() || self.writers.iter().any(|writer| writer.known.is_some())
    }

    /// The last of the known writers, but for `me`.
    pub fn last_writer_but(&self, me: NodeId) -> Option<NodeId> {
        let others = self.writers.iter().filter(|writer| writer.node != me);
        let last = others.filter_map(|writer| Some((writer.known.as_ref()?.lamport, writer.node)));
        last.max().map(|(_, node)| node)
    }

    /// Whose changes the copy contains.
    pub fn applied(&self) -> Applied {
        let all = self.writers.iter().filter(|writer| writer.applied > 0);
        all.map(|writer| (writer.node, writer.applied)).collect()
    }

    /// Those writers that are ahead of the copy here, each beside the one to ask for its changes:
    /// itself, or one that had seen them when it wrote. So no node is asked whose announced
    /// changes all precede another's.
    pub fn ahead(&self) -> SmallVec<[(NodeId, Writer); 2]> {
        let ahead = || self.writers.iter().filter(|writer| writer.is_ahead());
        let last_after = |writer: &Writer| {
            let after = ahead().filter(|other| writer.precedes(other));
            // What nobody precedes in turn knows all that came before.
            after.max_by_key(|other| other.newest().map(|known| (known.lamport, other.node)))
        };
        let all = ahead().map(|writer| (last_after(writer).unwrap_or(writer).node, writer.clone()));
        let mut all: SmallVec<_> = all.collect();
        all.sort_by_key(|(ask, writer): &(NodeId, Writer)| (*ask, writer.node));
        all
    }
}
