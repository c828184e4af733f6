//! Which objects lie on which page of a node's store, in the order of their first access: what is
//! fetched, or becomes writable, together (DOSA, sections 3.2, 3.5 and 3.6).

use dhole_model::{Oid, OidRange};

use crate::geometry::PAGE_BYTES;
use crate::{HeapMut, InstallError};

/// The objects smaller than a page, by the page that they lie on.
#[derive(Default)]
pub(crate) struct Residents {
    /// By page; of what was freed, until its page is empty.
    pages: Vec<Vec<OidRange>>,
}

impl Residents {
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

    fn of(&self, page: u64) -> &[OidRange] {
        self.pages.get(page as usize).map_or(&[], Vec::as_slice)
    }
}

impl HeapMut<'_> {
    /// Gives an object that is accessed here for the first time its storage, before its bytes are
    /// here: pages are filled in the order of first access.
    ///
    /// # Errors
    /// [`InstallError`]: the id names no object of this cluster, or the store is full.
    pub fn make_room(&mut self, oid: Oid) -> Result<(), InstallError> {
        let node = self.heap.node;
        let seen = self.heap.see(oid);
        let at = seen.map_err(|foreign| InstallError::Foreign { node, foreign })?;
        self.storage(oid, at).map(drop)
    }

    /// The other objects that lie on the page of `oid`, in the order of their first access, each
    /// with whether a valid copy of it is here. None where `oid` is not smaller than a page.
    pub fn beside(&self, oid: Oid) -> impl Iterator<Item = (Oid, bool)> {
        let storage = |oid| {
            let at = self.heap.place(oid)?;
            Some((at, self.heap.chunks[at.chunk].storage(at.slot)?))
        };
        let page = storage(oid).map(|(_, storage)| storage / PAGE_BYTES);
        let residents = page.map_or(&[][..], |page| self.heap.residents.of(page));
        // A large object may begin where small ones lay once.
        let is_small = residents.iter().any(|range| range.contains(oid));
        let ranges = residents.iter().filter(move |_| is_small);
        let others = ranges.flat_map(|range| range.iter());
        others
            .filter(move |other| *other != oid)
            .filter_map(move |other| {
                let (at, storage) = storage(other)?;
                let here = Some(storage / PAGE_BYTES) == page;
                here.then(|| (other, self.heap.chunks[at.chunk].is_present(at.slot)))
            })
    }
}
