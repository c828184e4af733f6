//! The memory that two processes share: two rings in a memfd.
#![expect(unsafe_code, reason = "mapping a file and looking at it as words")]

use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::{Resource, getrlimit};

use super::error::ShmError;
use crate::atomic::AtomicU64;
use crate::ring::{CONTROL, Ring};

/// Who cut the file short would have us killed (SIGBUS) when we touch it; who made it longer would
/// only waste memory.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// The least and the most words of a ring.
const LEAST: usize = 1 << 9;
const MOST: usize = 1 << 24;

/// A file that cannot shrink any more, so that what is measured of it stays true.
struct Sealed(OwnedFd);

impl Sealed {
    fn new(file: OwnedFd) -> Result<Sealed, ShmError> {
        let looking = ShmError::os("looking at the seals of shared memory");
        let seals = fcntl_get_seals(&file).map_err(looking)?;
        if seals.contains(SealFlags::SHRINK) {
            return Ok(Sealed(file));
        }
        let what = "memory that it can take away again";
        Err(ShmError::Unsound(what.into()))
    }

    fn bytes(&self) -> Result<i64, ShmError> {
        let measuring = ShmError::os("measuring the peer's shared memory");
        Ok(fstat(&self.0).map_err(measuring)?.st_size)
    }
}

/// Two rings of the same size, mapped.
pub(super) struct Segment {
    words: NonNull<AtomicU64>,
    /// Words of each ring, with its control words.
    ring: usize,
}

// SAFETY: `words` gives the memory out as atomics alone, which any thread may use, and borrowed
// from the segment, whose one owner unmaps it.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Memory with rings of at least `bytes` bytes, and the file that shares it.
    pub fn make(bytes: usize) -> Result<(Segment, OwnedFd), ShmError> {
        let words = bytes.div_ceil(8).clamp(LEAST, MOST).next_power_of_two();
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let making = ShmError::os("making shared memory");
        let file = rustix::fs::memfd_create("dhole", flags).map_err(&making)?;
        let bytes = size(words) as u64;
        if getrlimit(Resource::Fsize)
            .current
            .is_some_and(|most| most < bytes)
        {
            // Making it so long would end the process (SIGXFSZ).
            let limited = "making shared memory, a file of more bytes than `ulimit -f` allows";
            return Err(ShmError::os(limited)(Errno::FBIG));
        }
        ftruncate(&file, bytes).map_err(&making)?;
        fcntl_add_seals(&file, SEALS).map_err(&making)?;
        let file = Sealed::new(file)?;
        Ok((Segment::map(&file, words)?, file.0))
    }

    /// The memory that another process made, if it is what [`make`](Segment::make) makes.
    pub fn open(file: OwnedFd) -> Result<Segment, ShmError> {
        let file = Sealed::new(file)?;
        let bytes = file.bytes()?;
        let words = (usize::try_from(bytes).unwrap_or(0) / 16).saturating_sub(CONTROL);
        if !words.is_power_of_two()
            || !(LEAST..=MOST).contains(&words)
            || size(words) as i64 != bytes
        {
            return Err(ShmError::Unsound(format!("{bytes} bytes of shared memory")));
        }
        Segment::map(&file, words)
    }

    /// Maps a file of `size(words)` bytes.
    fn map(Sealed(file): &Sealed, words: usize) -> Result<Segment, ShmError> {
        let (bytes, both) = (size(words), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a new mapping, wherever the kernel likes: no memory of this process is replaced.
        let mapped = unsafe { mmap(ptr::null_mut(), bytes, both, MapFlags::SHARED, file, 0) };
        let mapped = mapped.map_err(ShmError::os("mapping shared memory"))?;
        let words_at = NonNull::new(mapped.cast()).ok_or(ShmError::Unsound("nothing".into()))?;
        Ok(Segment {
            words: words_at,
            ring: CONTROL + words,
        })
    }

    /// All words of both rings.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has two rings of `ring` words, is page-aligned, lives as long as
        // `self`, and its file cannot shrink: `map` takes a `Sealed` file, which has been measured
        // since it was sealed. Atomics may be written by anybody at any time, other processes
        // included.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), 2 * self.ring) }
    }

    /// The ring of one direction: 0 from who made the memory, 1 to it.
    #[inline]
    pub fn ring(&self, direction: usize) -> Ring<'_> {
        let (from, to) = self.words().split_at(self.ring);
        Ring::new(if direction == 0 { from } else { to })
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this size, and no ring borrowed from `self` lives on.
        // An error would say that it is not mapped.
        let _ = unsafe { munmap(self.words.as_ptr().cast(), 2 * self.ring * 8) };
    }
}

/// Bytes of a file with two rings of `words` words.
fn size(words: usize) -> usize {
    2 * (CONTROL + words) * 8
}
