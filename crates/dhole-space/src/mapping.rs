//! Memory that is mapped as a whole: nothing behind it, or a file that several processes map.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

use crate::geometry::HUGE_BYTES;
use crate::protection::Protection;
use crate::reservation;
use crate::shared_file::{SharedFile, Source};
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
    /// Memory that holds zeros, and takes none before it is touched.
    ///
    /// # Errors
    /// The system's own, where it gives no address space for it.
    pub fn new(bytes: usize) -> io::Result<Mapping> {
        let mapped = reservation::map(bytes, libc::PROT_READ | libc::PROT_WRITE);
        Ok(Mapping {
            at: mapped.ok_or_else(|| reservation::refused(bytes, io::Error::last_os_error()))?,
            bytes,
            is_file: false,
            is_writable: true,
        })
    }

    /// Addresses that nobody may touch, there if a place is given. A system that does not know how
    /// to leave alone what lies there (Linux before 4.17) gives others.
    ///
    /// # Errors
    /// The system's own, where something lies there, say.
    pub fn reserve(at: Option<usize>, bytes: usize) -> io::Result<Mapping> {
        let fixed = at.map_or(0, |_| libc::MAP_FIXED_NOREPLACE);
        #[cfg(not(miri))]
        let hint = || crate::apart::hint(bytes);
        #[cfg(miri)]
        let hint = std::ptr::null_mut;
        let at = at.map_or_else(hint, std::ptr::without_provenance_mut);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
        // SAFETY: at an address of the system's choice, or where nothing is yet (`NOREPLACE`): it
        // touches nothing else.
        let mapped = unsafe { libc::mmap(at, bytes, libc::PROT_NONE, flags, -1, 0) };
        Ok(Mapping {
            at: place(mapped).map_err(|cause| reservation::refused(bytes, cause))?,
            bytes,
            is_file: false,
            is_writable: false,
        })
    }

    /// A part of a file, to be read and written, from the start of a page on.
    ///
    /// # Errors
    /// The system's own.
    ///
    /// # Panics
    /// If the file has no such part.
    pub fn of_part(file: &SharedFile, part: Range<u64>) -> io::Result<Mapping> {
        let mut mapping = Mapping::reserve(None, (part.end - part.start) as usize)?;
        // SAFETY: nobody knows of what was reserved just now.
        unsafe { mapping.show(0, file, part, Protection::Open)? };
        (mapping.is_file, mapping.is_writable) = (true, true);
        Ok(mapping)
    }

    /// All of a file, to be read, or also written. Huge pages of the file are huge here too.
    pub(crate) fn of(file: &SharedFile, is_writable: bool) -> io::Result<Mapping> {
        let (bytes, huge) = (file.bytes() as usize, HUGE_BYTES as usize);
        let refused = || reservation::refused(bytes + huge, io::Error::last_os_error());
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
            let protection = match is_writable {
                true => Protection::Open,
                false => Protection::ReadOnly,
            };
            map_undumped(at, file, 0..bytes as u64, protection)?;
            Ok(mapping)
        }
    }

    /// Shows a part of a file so many bytes behind the start, in place of what is there. A crash
    /// does not write it down.
    ///
    /// # Errors
    /// The system's own.
    ///
    /// # Panics
    /// If it does not fit here, or the file has no such part.
    ///
    /// # Safety
    /// Nothing refers to what is there.
    pub unsafe fn show(
        &self,
        from: usize,
        file: &SharedFile,
        part: Range<u64>,
        protection: Protection,
    ) -> io::Result<()> {
        let bytes = (part.end - part.start) as usize;
        assert!(from <= self.bytes && bytes <= self.bytes - from, "beyond");
        // SAFETY: within the mapping, by the test above; the rest the caller promises.
        unsafe { map_undumped(self.at.add(from), file, part, protection) }
    }

    /// Children of `fork` have nothing here from now on.
    ///
    /// # Errors
    /// The system's own.
    pub fn keep_from_children(&self) -> io::Result<()> {
        // SAFETY: it is mapped as long as this lives.
        unsafe { keep_from_children(self.at, self.bytes) }
    }

    /// Where it begins. It is mapped as long as this lives.
    #[inline]
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

/// Maps a part of a file at `at`.
///
/// # Errors
/// The system's own.
///
/// # Panics
/// If the file has no such part.
///
/// # Safety
/// So many bytes from `at` on are the caller's to map, and nothing refers to what is there.
pub unsafe fn map_at(
    at: NonNull<u8>,
    file: &SharedFile,
    part: Range<u64>,
    protection: Protection,
) -> io::Result<()> {
    assert!(part.start <= part.end && part.end <= file.bytes(), "beyond");
    let bytes = (part.end - part.start) as usize;
    // SAFETY: as the caller promises; a source is mapped as long as the file lives, and has the
    // part, by the test above.
    let mapped = unsafe {
        match file.source() {
            Source::Descriptor(descriptor) => libc::mmap(
                at.as_ptr().cast(),
                bytes,
                protection.flags(),
                libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED,
                descriptor,
                part.start as libc::off_t,
            ),
            // No byte of a shared mapping is moved: it is mapped once more.
            Source::Mapping(source) => libc::mremap(
                source.add(part.start as usize).as_ptr().cast(),
                0,
                bytes,
                libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
                at.as_ptr(),
            ),
        }
    };
    let at = place(mapped).map_err(|cause| reservation::refused(bytes, cause))?;
    if let Source::Mapping(_) = file.source() {
        // SAFETY: what was mapped just now.
        let opened = unsafe { libc::mprotect(at.as_ptr().cast(), bytes, protection.flags()) };
        if opened != 0 {
            return Err(reservation::refused(bytes, io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// As [`map_at`]. What is there is left out of what a crash writes down: it can be larger than all
/// memory, and holes that were read would become pages.
///
/// # Safety
/// As there.
pub(crate) unsafe fn map_undumped(
    at: NonNull<u8>,
    file: &SharedFile,
    part: Range<u64>,
    protection: Protection,
) -> io::Result<()> {
    let bytes = (part.end - part.start) as usize;
    // SAFETY: as the caller promises.
    unsafe { map_at(at, file, part, protection)? };
    // SAFETY: the advice changes no byte and no right of what was just mapped.
    let _hint = unsafe { libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_DONTDUMP) };
    Ok(())
}

/// Children of `fork` have nothing there from now on.
///
/// # Errors
/// The system's own.
///
/// # Safety
/// So many bytes are mapped there, and are the caller's.
pub unsafe fn keep_from_children(at: NonNull<u8>, bytes: usize) -> io::Result<()> {
    // SAFETY: the advice changes no byte and no right of this process.
    match unsafe { libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_DONTFORK) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What the system has mapped, or why it has not.
fn place(mapped: *mut libc::c_void) -> io::Result<NonNull<u8>> {
    match NonNull::new(mapped.cast()) {
        Some(at) if mapped != libc::MAP_FAILED => Ok(at),
        _ => Err(io::Error::last_os_error()),
    }
}
