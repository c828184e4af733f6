//! How large the numbers are that a program sees on each page of its views.
//!
//! Atomics of different sizes must not meet at one place. Each page of a view has one minipage, and
//! a minipage numbers of one size; but a reference that another node has made up may say anything.
//! So the first size that a node uses on a page stays, for all nodes of its domain.
//!
//! Where all nodes have the same memory, no access faults, and all views show the same bytes. There
//! a page of a view is used only if this run has allocated it: a reference of an earlier run leads
//! nowhere.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

use dhole_space::DomainFile;

use crate::page_words::PageWords;

/// A byte for each page of each view: the size of its numbers, or 0.
pub(crate) struct Sizes {
    words: PageWords<AtomicU8>,
    /// What is in the byte of a page that may be used.
    mark: u8,
}

/// The page is allocated.
const ALLOCATED: u8 = 1 << 6;

impl Sizes {
    /// With `marked`, only pages that are [allocated](Sizes::allocated) can be claimed.
    ///
    /// # Errors
    /// The system's own.
    pub fn new(
        bytes: u64,
        views: usize,
        domain: Option<&DomainFile>,
        marked: bool,
    ) -> io::Result<Sizes> {
        let words = PageWords::new(bytes, views, domain)?;
        let mark = if marked { ALLOCATED } else { 0 };
        Ok(Sizes { words, mark })
    }

    /// The pages of `bytes` bytes from an address of the protocol's on, which are in a view, may be
    /// claimed.
    pub fn allocated(&self, address: u64, bytes: usize) {
        for known in self.words.of(address, bytes) {
            known.fetch_or(self.mark, Ordering::Relaxed);
        }
    }

    /// All pages of `bytes` bytes from an address of the protocol's on, which are in a view, have
    /// numbers of this size from here on, as they had.
    ///
    /// # Errors
    /// The other size that a page has; 0 where it is not allocated.
    pub fn claim(&self, address: u64, bytes: usize, size: u8) -> Result<(), u8> {
        let size = size | self.mark;
        for known in self.words.of(address, bytes) {
            let before = known.load(Ordering::Relaxed);
            if before == size {
                continue;
            }
            let (set, load) = (Ordering::Relaxed, Ordering::Relaxed);
            match known.compare_exchange(self.mark, size, set, load) {
                Err(other) if other != size => return Err(other & !self.mark),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dhole_protocol::memory::VIEW_BITS;

    use super::*;

    #[test]
    fn the_first_size_of_a_page_stays() {
        let sizes = Sizes::new(1 << 20, 2, None, false).unwrap();
        let second = 1 << VIEW_BITS;
        assert_eq!(sizes.claim(4096, 8192, 4), Ok(()));
        assert_eq!(sizes.claim(8191, 1, 4), Ok(()));
        assert_eq!(sizes.claim(8192, 8, 8), Err(4));
        assert_eq!(sizes.claim(0, 4096, 8), Ok(()));
        assert_eq!(sizes.claim(0, 4097, 8), Err(4));
        assert_eq!(sizes.claim(second | 4096, 4096, 8), Ok(()));
        assert_eq!(sizes.claim(second | ((1 << 20) - 8), 8, 1), Ok(()));
        assert_eq!(sizes.claim(4096, 0, 8), Ok(()));
    }

    #[test]
    fn where_pages_are_marked_others_are_not_claimed() {
        let sizes = Sizes::new(1 << 20, 2, None, true).unwrap();
        let second = 1 << VIEW_BITS;
        sizes.allocated(4096, 4097);
        assert_eq!(sizes.claim(4096, 8192, 4), Ok(()));
        assert_eq!(sizes.claim(4096, 8192, 8), Err(4));
        assert_eq!(sizes.claim(0, 1, 4), Err(0));
        assert_eq!(sizes.claim(second | 4096, 1, 4), Err(0));
        assert_eq!(sizes.claim(4096, 8193, 4), Err(0));
    }
}
