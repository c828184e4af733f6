//! The diffs of pages that nodes keep.
//!
//! Whoever fetches a diff keeps it until the next collection, for others may ask for it in turn. Of
//! nodes in one process only its writer has the bytes: the others find them among those that were
//! [made here](MadeDiffs), and keep what came to them only if it is something else. The writer
//! forgets them in a collection, which comes after a barrier behind which nobody wants them.

use std::sync::{Arc, Mutex};

use dhole_model::unpoisoned::lock;
use dhole_model::{NodeId, PageId};
use rustc_hash::FxHashMap;

/// A diff's page, writer and number.
pub(crate) type DiffKey = (PageId, NodeId, u32);

/// The bytes of a diff.
pub(crate) type Diff = Arc<[u8]>;

/// The diffs of one page whose bytes a node has, by writer and number.
#[derive(Default)]
pub(crate) struct PageDiffs(Vec<(NodeId, u32, Diff)>);

impl PageDiffs {
    fn place(&self, node: NodeId, number: u32) -> Result<usize, usize> {
        let key = |kept: &(NodeId, u32, Diff)| (kept.0, kept.1);
        self.0.binary_search_by_key(&(node, number), key)
    }

    /// Keeps a diff, in place of one of the same number.
    pub(crate) fn keep(&mut self, node: NodeId, number: u32, diff: Diff) {
        match self.place(node, number) {
            Ok(place) => self.0[place].2 = diff,
            Err(place) => self.0.insert(place, (node, number, diff)),
        }
    }

    /// The diff of this number.
    pub(crate) fn get(&self, node: NodeId, number: u32) -> Option<&Diff> {
        let place = self.place(node, number).ok()?;
        self.0.get(place).map(|kept| &kept.2)
    }

    /// Forgets all of them, and returns the numbers of those of one writer.
    pub(crate) fn forget(&mut self, node: NodeId) -> impl Iterator<Item = u32> {
        let all = std::mem::take(&mut self.0).into_iter();
        all.filter(move |kept| kept.0 == node).map(|kept| kept.1)
    }
}

/// The diffs that nodes of this process have made and keep.
#[derive(Default)]
pub(crate) struct MadeDiffs(Mutex<FxHashMap<DiffKey, Diff>>);

impl MadeDiffs {
    /// A node keeps a diff that it has made.
    pub(crate) fn made(&self, key: DiffKey, diff: &Diff) {
        lock(&self.0).insert(key, Arc::clone(diff));
    }

    /// The diff, if its writer is in this process.
    pub(crate) fn get(&self, key: DiffKey) -> Option<Diff> {
        lock(&self.0).get(&key).cloned()
    }

    /// Whether this is what its writer made here.
    pub(crate) fn has(&self, key: DiffKey, bytes: &[u8]) -> bool {
        lock(&self.0).get(&key).is_some_and(|made| **made == *bytes)
    }

    /// A node keeps diffs no longer that it has made.
    pub(crate) fn forget(&self, keys: impl Iterator<Item = DiffKey>) {
        let mut made = lock(&self.0);
        keys.for_each(|key| drop(made.remove(&key)));
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        lock(&self.0).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cluster, Monitor, Paged};

    fn on<R>(node: &Monitor<()>, f: impl FnOnce(&mut Paged<'_>) -> R) -> R {
        f(&mut node.lock().split().0.paged().unwrap())
    }

    #[test]
    fn diffs_are_found_by_writer_and_number_whatever_order_they_came_in() {
        let mut kept = PageDiffs::default();
        let diff = |byte: u8| Diff::from([byte]);
        for (node, number) in [(2, 5), (1, 9), (2, 1), (1, 3)] {
            kept.keep(NodeId(node), number, diff(node as u8 * 10 + number as u8));
        }
        kept.keep(NodeId(1), 9, diff(1));
        let found = |node, number| kept.get(NodeId(node), number).map(|diff| diff[0]);
        assert_eq!([found(1, 3), found(1, 9)], [Some(13), Some(1)]);
        assert_eq!([found(2, 1), found(2, 5)], [Some(21), Some(25)]);
        assert_eq!([found(1, 5), found(0, 1), found(3, 1)], [None; 3]);
        assert_eq!(kept.forget(NodeId(2)).collect::<Vec<_>>(), [1, 5]);
        assert!(kept.get(NodeId(1), 3).is_none(), "all are forgotten");
    }

    #[test]
    fn who_fetches_a_diff_keeps_bytes_only_if_they_are_not_its_writers() {
        let cluster = Cluster::paged(3).unwrap();
        let nodes = [0, 1, 2].map(|node| Monitor::new(&cluster, NodeId(node), ()));
        let key = (PageId(3), NodeId(0), 7);
        let made = Diff::from(&b"made"[..]);
        on(&nodes[0], |heap| {
            heap.on.heap.keep_made_diff(key, Arc::clone(&made))
        });
        on(&nodes[1], |heap| heap.keep_page_diff(key, b"made"));
        on(&nodes[2], |heap| heap.keep_page_diff(key, b"else"));
        let kept = |node: &Monitor<()>| on(node, |heap| heap.page_diff(key));
        assert!(kept(&nodes[1]).is_some_and(|diff| Arc::ptr_eq(&diff, &made)));
        assert_eq!(kept(&nodes[2]).as_deref(), Some(&b"else"[..]));
        assert_eq!(Arc::strong_count(&made), 3, "here, by its writer, by all");
        on(&nodes[1], |heap| heap.forget_page_diffs());
        assert_eq!(cluster.made_diffs.len(), 1, "its writer keeps it");
        on(&nodes[0], |heap| heap.forget_page_diffs());
        assert_eq!((cluster.made_diffs.len(), Arc::strong_count(&made)), (0, 1));
        assert_eq!([kept(&nodes[0]), kept(&nodes[1])], [None, None]);
        assert_eq!(kept(&nodes[2]).as_deref(), Some(&b"else"[..]));
    }
}
