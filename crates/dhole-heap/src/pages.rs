//! What a node knows of its pages, where whole pages are kept consistent.
//!
//! Only `paged` changes what is said here of a page: its unsafe code relies on it.

use dhole_model::{Oid, PageId};
use rustc_hash::FxHashMap;

use crate::page_diff::Snapshot;
use crate::page_diffs::PageDiffs;

/// Snapshots kept for the next twins.
const SPARE: usize = 64;

/// A node's pages.
#[derive(Default)]
pub(crate) struct Pages {
    pub(crate) known: FxHashMap<PageId, Page>,
    pub(crate) twins: FxHashMap<PageId, Snapshot>,
    pub(crate) spare: Vec<Snapshot>,
}

/// What a node knows of a page.
#[derive(Default)]
pub(crate) struct Page {
    pub(crate) valid: bool,
    pub(crate) writable: bool,
    /// The objects on it whose handles may be set.
    pub(crate) shown: Vec<Oid>,
    /// Of these, those whose write handles may be.
    pub(crate) written: Vec<Oid>,
    /// The arrays on it, by their first blocks.
    pub(crate) arrays: Vec<Oid>,
    /// The padding of objects that were written here: first byte and end.
    pub(crate) holes: Vec<(u16, u16)>,
    /// Parts of values smaller than a word were written here.
    pub(crate) fine: bool,
    pub(crate) diffs: PageDiffs,
}

impl Pages {
    pub(crate) fn recycle(&mut self, snapshot: Snapshot) {
        if self.spare.len() < SPARE {
            self.spare.push(snapshot);
        }
    }
}
