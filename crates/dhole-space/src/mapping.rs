//! Memory that is mapped as a whole: nothing behind it, or a file that several processes map.

use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use crate::geometry::HUGE_BYTES;
use crate::reservation;
use crate::shared_file::SharedFile;
use crate::space;

/// Memory of this process that nobody else maps or unmaps.
pub struct Mapping {
    at: NonNull<u8>,
    bytes: usize,
    /// Whether a file is behind it.
    is_file: bool,
    is_writable: bool,
}

// SAFETY: an address; what may be done with the memory there is for the holder to argue.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` or `of` mapped as many bytes there, and who refers to them borrows this.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}

impl Mapping {
    /// Memory that holds zeros, and takes none before it is touched; `None` where the system gives
    /// no address space for it.
    pub fn new(bytes: usize) -> Option<Mapping> {
        Some(Mapping {
            at: reservation::map(bytes, libc::PROT_READ | libc::PROT_WRITE)?,
            bytes,
            is_file: false,
            is_writable: true,
        })
    }

    /// All of a file, to be read, or also written. Huge pages of the file are huge here too.
    pub(crate) fn of(file: &SharedFile, is_writable: bool) -> io::Result<Mapping> {
        let refused = || io::Error::from_raw_os_error(libc::ENOMEM);
        let (bytes, huge) = (file.bytes() as usize, HUGE_BYTES as usize);
        let reserved = reservation::map(bytes + huge, libc::PROT_NONE).ok_or_else(refused)?;
        let before = reserved.addr().get().next_multiple_of(huge) - reserved.addr().get();
        // SAFETY: a huge page more than the file has was reserved just now, and nobody knows of it;
        // what is given back is what lies before and behind the file's place, whole pages.
        unsafe {
            let at = reserved.add(before);
            libc::munmap(reserved.as_ptr().cast(), before);
            libc::munmap(at.add(bytes).as_ptr().cast(), huge - before);
            // From here on the mapping owns its place.
            let mapping = Mapping {
                at,
                bytes,
                is_file: true,
                is_writable,
            };
            map_at(at, file, 0..bytes as u64, is_writable)?;
            Ok(mapping)
        }
    }

    /// Where it begins. It is mapped as long as this lives.
    pub fn start(&self) -> NonNull<u8> {
        self.at
    }

    /// Whether what is there may be written.
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Gives memory back to the system, in all processes that map it: it reads as zeros.
    ///
    /// # Safety
    /// Whole pages, of which every reader expects that they become zeros.
    ///
    /// # Panics
    /// If it is not within the mapping.
    pub unsafe fn discard(&self, from: usize, bytes: usize) {
        assert!(from <= self.bytes && bytes <= self.bytes - from, "beyond");
        // SAFETY: within the mapping, by the test above; the rest the caller promises.
        unsafe {
            let at = self.at.add(from);
            match self.is_file {
                true => space::punch(at, bytes as u64),
                false => space::release(at, bytes as u64),
            }
        }
    }
}

/// Maps a part of a file at `at`. What is there is left out of what a crash writes down: it can be
/// larger than all memory, and holes that were read would become pages.
///
/// # Safety
/// So many bytes from `at` on are the caller's to map, and nothing refers to what is there.
pub(crate) unsafe fn map_at(
    at: NonNull<u8>,
    file: &SharedFile,
    part: std::ops::Range<u64>,
    is_writable: bool,
) -> io::Result<()> {
    let protection = match is_writable {
        true => libc::PROT_READ | libc::PROT_WRITE,
        false => libc::PROT_READ,
    };
    let bytes = (part.end - part.start) as usize;
    // SAFETY: as the caller promises.
    let mapped = unsafe {
        libc::mmap(
            at.as_ptr().cast(),
            bytes,
            protection,
            libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED,
            file.as_raw_fd(),
            part.start as libc::off_t,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the advice changes no byte and no right of what was just mapped.
    let _hint = unsafe { libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_DONTDUMP) };
    Ok(())
}
