//! How large the numbers are that a program sees on each page of its views.
//!
//! Atomics of different sizes must not meet at one place. Each page of a view has one minipage, and
//! a minipage numbers of one size; but a reference that another node has made up may say anything.
//! So the first size that this node uses on a page stays.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

use dhole_protocol::memory::{MINIPAGE_PAGE, VIEW_BITS};

/// A byte for each page of each view: the size of its numbers, or 0.
pub(crate) struct Sizes {
    at: NonNull<AtomicU8>,
    /// Pages of a view.
    pages: usize,
    views: usize,
}

// SAFETY: an address of atomics, which are this value's own.
unsafe impl Send for Sizes {}
// SAFETY: as above.
unsafe impl Sync for Sizes {}

impl Sizes {
    /// # Errors
    /// The system's own.
    pub fn new(bytes: u64, views: usize) -> io::Result<Sizes> {
        let pages = (bytes / MINIPAGE_PAGE) as usize;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: at an address of the system's choice, so it touches nothing else.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), pages * views, access, flags, -1, 0) };
        match NonNull::new(at.cast()) {
            Some(mapped) if at != libc::MAP_FAILED => Ok(Sizes {
                at: mapped,
                pages,
                views,
            }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// All pages of `bytes` bytes from an address of the protocol's on, which are in a view, have
    /// numbers of this size from here on, as they had.
    ///
    /// # Errors
    /// The other size that a page has.
    pub fn claim(&self, address: u64, bytes: usize, size: u8) -> Result<(), u8> {
        let view = (address >> VIEW_BITS) as usize;
        let offset = address & ((1 << VIEW_BITS) - 1);
        let first = (offset / MINIPAGE_PAGE) as usize;
        let behind = (offset + bytes as u64).div_ceil(MINIPAGE_PAGE) as usize;
        assert!(view < self.views && behind <= self.pages);
        for page in first..behind {
            // SAFETY: one of the bytes that `new` has mapped, by the test above. Zeros are atomics.
            let known = unsafe { self.at.add(view * self.pages + page).as_ref() };
            let before = known.load(Ordering::Relaxed);
            if before == size {
                continue;
            }
            let (set, load) = (Ordering::Relaxed, Ordering::Relaxed);
            match known.compare_exchange(0, size, set, load) {
                Err(other) if other != size => return Err(other),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Sizes {
    fn drop(&mut self) {
        // SAFETY: `new` mapped so many bytes there, and whoever refers to them borrows this.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.pages * self.views) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_size_of_a_page_stays() {
        let sizes = Sizes::new(1 << 20, 2).unwrap();
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
}
