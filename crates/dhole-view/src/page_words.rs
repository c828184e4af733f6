//! An atomic for each page of each view: of this node, or of all nodes of its domain.

use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32};

use dhole_protocol::memory::{MINIPAGE_PAGE, VIEW_BITS};
use dhole_space::{DomainFile, DomainLocks};

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
    at: NonNull<W>,
    /// Pages of a view.
    pages: usize,
    views: usize,
}

// SAFETY: an address of atomics, which are this value's own, or its domain's.
unsafe impl<W: PageWord> Send for PageWords<W> {}
// SAFETY: as above.
unsafe impl<W: PageWord> Sync for PageWords<W> {}

impl<W: PageWord> PageWords<W> {
    /// Those of a memory of so many bytes; in a domain all nodes have the same.
    ///
    /// # Errors
    /// The system's own.
    pub fn new(bytes: u64, views: usize, domain: Option<&DomainFile>) -> io::Result<PageWords<W>> {
        let pages = (bytes / MINIPAGE_PAGE) as usize;
        let (flags, file, from) = match domain {
            Some(file) => (libc::MAP_SHARED, file.as_raw_fd(), W::AT),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
        };
        let flags = flags | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (all, from) = (pages * views * size_of::<W>(), from as libc::off_t);
        // SAFETY: at an address of the system's choice, so it touches nothing else.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), all, access, flags, file, from) };
        let Some(at) = NonNull::new(at.cast()).filter(|_| at != libc::MAP_FAILED) else {
            return Err(io::Error::last_os_error());
        };
        Ok(PageWords { at, pages, views })
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
        (first..behind).map(move |page| {
            // SAFETY: one of the atomics that `new` has mapped, by the test above. Zeros are one.
            unsafe { self.at.add(view * self.pages + page).as_ref() }
        })
    }
}

impl<W: PageWord> Drop for PageWords<W> {
    fn drop(&mut self) {
        let all = self.pages * self.views * size_of::<W>();
        // SAFETY: `new` mapped so many bytes there, and whoever refers to them borrows this.
        unsafe { libc::munmap(self.at.as_ptr().cast(), all) };
    }
}
