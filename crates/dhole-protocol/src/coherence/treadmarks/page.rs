//! What one node knows of one page.

use std::sync::Arc;

use dhole_model::{IntervalIndex, NodeId, VectorTime};
use smallvec::SmallVec;

use crate::page_command::Applied;
use crate::sync::written_pages::WrittenPages;

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
    /// Its diffs that are kept here.
    pub diffs: KeptDiffs,
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

/// A diff that is kept here: the interval that announced it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Kept {
    pub index: IntervalIndex,
    pub lamport: u64,
}

/// The diffs of a page by one writer that are kept here, in its order. They lie with what is known
/// of the writer: many nodes write a page many times before a collection, and what is asked for is
/// one's.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct KeptDiffs(Vec<Kept>);

impl KeptDiffs {
    fn place(&self, index: IntervalIndex) -> Result<usize, usize> {
        self.0.binary_search_by_key(&index, |kept| kept.index)
    }

    /// Keeps a diff; false if it is kept already.
    pub fn keep(&mut self, kept: Kept) -> bool {
        let place = self.place(kept.index);
        let is_new = place.is_err();
        if let Err(place) = place {
            // There are many such lists, so that room for twice as many would be much.
            if self.0.len() == self.0.capacity() {
                self.0.reserve_exact(2 + self.0.len() / 4);
            }
            self.0.insert(place, kept);
        }
        is_new
    }

    /// Those that were announced after one interval and up to another, in order.
    pub fn of(&self, after: IntervalIndex, up_to: IntervalIndex) -> &[Kept] {
        let end = |index| match self.place(index) {
            Ok(last) => last + 1,
            Err(next) => next,
        };
        self.0.get(end(after)..end(up_to)).unwrap_or_default()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Writer {
    /// Whether it has announced changes that the copy here does not contain.
    pub fn is_ahead(&self) -> bool {
        self.newest()
            .is_some_and(|known| known.index > self.applied)
    }

    pub fn newest(&self) -> Option<&Known> {
        self.known.as_ref()
    }

    /// Whether its newest announced changes happened before those of `other`, whose Lamport time is
    /// the greater one then: of many writers between the same two barriers no other is looked at.
    pub fn precedes(&self, other: &Writer) -> bool {
        let (Some(mine), Some(theirs)) = (self.newest(), other.newest()) else {
            return false;
        };
        let later = self.node != other.node && theirs.lamport > mine.lamport;
        later && theirs.pages.seen.of(self.node) >= mine.index
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
                diffs: KeptDiffs::default(),
            };
            if self.writers.len() == self.writers.capacity() {
                self.writers.reserve_exact(4 + self.writers.len() / 4);
            }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_diffs_are_found_by_interval_whatever_order_they_came_in() {
        let all = (0..60_u32).map(|i| Kept {
            index: i * 11 % 17,
            lamport: u64::from(i),
        });
        let mut kept = KeptDiffs::default();
        let mut expected: Vec<Kept> = Vec::new();
        for one in all {
            let is_new = !expected.iter().any(|other| other.index == one.index);
            assert_eq!(kept.keep(one), is_new, "{one:?}");
            expected.extend(is_new.then_some(one));
        }
        expected.sort_by_key(|kept| kept.index);
        assert_eq!(kept.len(), expected.len());
        for (after, up_to) in (0..18).flat_map(|a| (0..18).map(move |b| (a, b))) {
            let within = |one: &&Kept| one.index > after && one.index <= up_to;
            let expected: Vec<Kept> = expected.iter().filter(within).copied().collect();
            assert_eq!(kept.of(after, up_to), expected, "{after} to {up_to}");
        }
    }
}
