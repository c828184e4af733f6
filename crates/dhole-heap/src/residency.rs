//! Which objects lie on which page of a node's store, in the order of their first access: what is
//! fetched, or becomes writable, together (DOSA, sections 3.2, 3.5 and 3.6).

use dhole_model::{Oid, OidRange};
use dhole_space::PAGE_BYTES;

/// The objects smaller than a page, by the page that they lie on.
#[derive(Default)]
pub(crate) struct Residency {
    /// By page; of what was freed, until its page is empty.
    pages: Vec<Vec<OidRange>>,
}

impl Residency {
    /// An object of so many bytes got its storage.
    pub(crate) fn add(&mut self, oid: Oid, storage: u64, bytes: u64) {
        if bytes >= PAGE_BYTES {
            return;
        }
        let page = (storage / PAGE_BYTES) as usize;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, Vec::new);
        }
        OidRange::push(&mut self.pages[page], oid);
    }

    /// No object lies on the page any more.
    pub(crate) fn clear(&mut self, page: u64) {
        if let Some(page) = self.pages.get_mut(page as usize) {
            *page = Vec::new();
        }
    }

    pub(crate) fn of(&self, page: u64) -> &[OidRange] {
        self.pages.get(page as usize).map_or(&[], Vec::as_slice)
    }
}
