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
    pub diffs: KeptDiffs,
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

/// The diffs of a page that are kept here, by writer and interval: many nodes write a page many
/// times before a collection, and each answer looks for those of one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct KeptDiffs(Vec<Kept>);

impl KeptDiffs {
    fn place(&self, node: NodeId, index: IntervalIndex) -> Result<usize, usize> {
        let key = |kept: &Kept| (kept.node, kept.index);
        self.0.binary_search_by_key(&(node, index), key)
    }

    /// Keeps a diff; false if it is kept already.
    pub fn keep(&mut self, kept: Kept) -> bool {
        let place = self.place(kept.node, kept.index);
        let is_new = place.is_err();
        if let Err(place) = place {
            self.0.insert(place, kept);
        }
        is_new
    }

    /// Those of a writer that were announced after one interval and up to another, in order.
    pub fn of(&self, node: NodeId, after: IntervalIndex, up_to: IntervalIndex) -> &[Kept] {
        let end = |index| match self.place(node, index) {
            Ok(last) => last + 1,
            Err(next) => next,
        };
        self.0.get(end(after)..end(up_to)).unwrap_or_default()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets all.
    pub fn forget(&mut self) {
        self.0 = Vec::new();
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_diffs_are_found_by_writer_and_interval_whatever_order_they_came_in() {
        let all: Vec<Kept> = (0..60_u32)
            .map(|i| Kept {
                lamport: u64::from(i),
                node: NodeId((i * 7 % 5) as u16),
                index: i * 11 % 17,
            })
            .collect();
        let mut kept = KeptDiffs::default();
        let mut expected: Vec<Kept> = Vec::new();
        for one in all {
            let same = |other: &Kept| (other.node, other.index) == (one.node, one.index);
            let is_new = !expected.iter().any(same);
            assert_eq!(kept.keep(one), is_new, "{one:?}");
            expected.extend(is_new.then_some(one));
        }
        expected.sort_by_key(|kept| (kept.node, kept.index));
        assert_eq!(kept.len(), expected.len());
        for node in (0..6).map(NodeId) {
            for (after, up_to) in (0..18).flat_map(|a| (0..18).map(move |b| (a, b))) {
                let within =
                    |one: &&Kept| one.node == node && one.index > after && one.index <= up_to;
                let expected: Vec<Kept> = expected.iter().filter(within).copied().collect();
                assert_eq!(
                    kept.of(node, after, up_to),
                    expected,
                    "{node}: {after} to {up_to}"
                );
            }
        }
        kept.forget();
        assert_eq!((kept.len(), kept.of(NodeId(0), 0, 99)), (0, &[][..]));
    }
}
