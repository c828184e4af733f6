//! An atomic for each page of each view: of this node, or of all nodes of its domain.

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicU32};

use dhole_protocol::memory::{MINIPAGE_PAGE, VIEW_BITS};
use dhole_space::{DomainFile, DomainLocks, Mapping};

use crate::settings::MemorySettings;

/// An atomic of which zeros are one.
pub(crate) trait PageWord: Sync {
    /// Where the domain's begin in its file: behind its memory.
    const AT: u64;
}

/// The most atomics: one for each page of each view.
const MOST: u64 = MemorySettings::MOST_BYTES / MINIPAGE_PAGE * MemorySettings::MOST_VIEWS as u64;

impl PageWord for AtomicU8 {
    const AT: u64 = MemorySettings::MOST_BYTES;
}

impl PageWord for AtomicU32 {
    const AT: u64 = AtomicU8::AT + MOST;
}

/// Where the locks of a domain's threads begin in its file: behind all of these.
pub(crate) const LOCKS_AT: u64 = AtomicU32::AT + 4 * MOST;

const _: () = assert!(LOCKS_AT + DomainLocks::BYTES <= DomainFile::BYTES);

/// An atomic for each page of each view.
pub(crate) struct PageWords<W: PageWord> {
    /// This value's own, or its domain's.
    words: Mapping,
    /// Pages of a view.
    pages: usize,
    views: usize,
    of: PhantomData<W>,
}

impl<W: PageWord> PageWords<W> {
    /// Those of a memory of so many bytes; in a domain all nodes have the same.
    ///
    /// # Errors
    /// The system's own.
    pub fn new(bytes: u64, views: usize, domain: Option<&DomainFile>) -> io::Result<PageWords<W>> {
        let pages = (bytes / MINIPAGE_PAGE) as usize;
        let all = pages * views * size_of::<W>();
        let words = match domain {
            Some(domain) => Mapping::of_part(domain.file(), W::AT..W::AT + all as u64)?,
            None => Mapping::new(all)?,
        };
        Ok(PageWords {
            words,
            pages,
            views,
            of: PhantomData,
        })
    }

    /// Those of all pages that have some of `bytes` bytes from an address of the protocol's on,
    /// in their order.
    ///
    /// # Panics
    /// Unless the bytes are in a view.
    pub fn of(&self, address: u64, bytes: usize) -> impl Iterator<Item = &W> {
        let view = (address >> VIEW_BITS) as usize;
        let offset = address & ((1 << VIEW_BITS) - 1);
        let first = (offset / MINIPAGE_PAGE) as usize;
        let behind = (offset + bytes as u64).div_ceil(MINIPAGE_PAGE) as usize;
        assert!(view < self.views && behind <= self.pages);
        let words = self.words.start().cast::<W>();
        (first..behind).map(move |page| {
            // SAFETY: one of the atomics that `new` has mapped, by the test above. Zeros are one.
            unsafe { words.add(view * self.pages + page).as_ref() }
        })
    }
}
