//! `mmap` and its kin: what the program maps is shared memory, as what it allocates.
//!
//! A mapping of a file is a copy of what the file holds when it is mapped. The node that maps it
//! reads the file; the others get the pages that they touch. A file is never written by a mapping:
//! one that would be is refused. Libraries and the C library itself map private memory as ever.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};

use libc::off_t;

use crate::deferred::Inside;
use crate::failure::{refused, set_errno};
use crate::heap;

const PAGE: usize = 4096;

/// Bytes of a file that are read at once.
const CHUNK: usize = 1 << 20;

/// What a mapping shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    /// Zeros at first.
    Zeros,
    /// A copy of a file, which the program may write.
    File,
    /// A copy of a file that all mappings share, which the program only reads.
    SharedFile,
}

/// The mappings that this node has made, by their addresses: bytes, and what they show.
static MAPPED: Mutex<BTreeMap<usize, (usize, Shows)>> = Mutex::new(BTreeMap::new());

fn mapped() -> MutexGuard<'static, BTreeMap<usize, (usize, Shows)>> {
    MAPPED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The mapping of this node in which so many bytes lie: where it begins, and what it shows.
fn find(at: usize, bytes: usize) -> Option<(usize, Shows)> {
    let mapped = mapped();
    let (start, (all, shows)) = mapped.range(..=at).next_back()?;
    let end = at.checked_add(bytes)?;
    (end <= start + all).then_some((*start, *shows))
}

/// Why a call does nothing: a number, and words where dhole alone says so.
struct Refusal(c_int, Option<&'static str>);

type Mapped<T> = Result<T, Refusal>;

/// As the system says it.
fn wrong<T>(errno: c_int) -> Mapped<T> {
    Err(Refusal(errno, None))
}

/// What works without dhole.
fn unsupported<T>(why: &'static str) -> Mapped<T> {
    Err(Refusal(libc::ENOTSUP, Some(why)))
}

/// Says why a call does nothing, and keeps that for `dh_error`.
fn say(call: &str, Refusal(errno, why): Refusal) {
    match why {
        None => set_errno(errno),
        Some(why) => {
            let words = format!("{call}: {why}");
            eprintln!("dhole: {words}");
            refused(&words, errno);
        }
    }
}

/// What a call returns: 0, or -1 where it does nothing.
fn returned(call: &str, done: Mapped<()>) -> c_int {
    match done {
        Ok(()) => 0,
        Err(refusal) => {
            say(call, refusal);
            -1
        }
    }
}

/// What a call returns: an address, or `MAP_FAILED`.
fn address(call: &str, done: Mapped<*mut c_void>) -> *mut c_void {
    done.unwrap_or_else(|refusal| {
        say(call, refusal);
        libc::MAP_FAILED
    })
}

/// Whole pages.
fn pages(bytes: usize) -> Mapped<usize> {
    match bytes.checked_next_multiple_of(PAGE) {
        Some(pages) if pages > 0 => Ok(pages),
        Some(_) => wrong(libc::EINVAL),
        None => wrong(libc::ENOMEM),
    }
}

/// What a mapping of a file shows, if it can be.
fn shown(file: c_int, protection: c_int, is_shared: bool) -> Mapped<Shows> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: zeros are such a structure, which the call fills in; the other takes numbers.
    let (status, flags) = unsafe {
        if libc::fstat(file, status.as_mut_ptr()) != 0 {
            return wrong(libc::EBADF);
        }
        (status.assume_init(), libc::fcntl(file, libc::F_GETFL))
    };
    if flags & libc::O_ACCMODE == libc::O_WRONLY {
        return wrong(libc::EACCES);
    }
    match status.st_mode & libc::S_IFMT {
        libc::S_IFREG => {}
        libc::S_IFCHR if status.st_rdev == libc::makedev(1, 5) => return Ok(Shows::Zeros),
        libc::S_IFDIR => return wrong(libc::ENODEV),
        _ => return unsupported("a device cannot be mapped on several nodes"),
    }
    match (is_shared, protection & libc::PROT_WRITE != 0) {
        (false, _) => Ok(Shows::File),
        (true, false) => Ok(Shows::SharedFile),
        (true, true) if flags & libc::O_ACCMODE == libc::O_RDONLY => wrong(libc::EACCES),
        (true, true) => unsupported(
            "a file that is written by its mapping (MAP_SHARED with PROT_WRITE): nodes get copies \
             of what it holds. Map it MAP_PRIVATE, and write it with pwrite",
        ),
    }
}

/// Copies what a file holds from there on. What is behind its end becomes zeros.
///
/// # Safety
/// So many bytes may be written there.
unsafe fn read_file(at: *mut u8, bytes: usize, file: c_int, from: off_t) -> Mapped<()> {
    let mut room = Vec::new();
    if room.try_reserve_exact(CHUNK.min(bytes)).is_err() {
        return wrong(libc::ENOMEM);
    }
    room.resize(CHUNK.min(bytes), 0_u8);
    let mut done = 0;
    while done < bytes {
        let most = room.len().min(bytes - done);
        // SAFETY: the room has so many bytes, and the memory too (the caller's).
        unsafe {
            match libc::pread(file, room.as_mut_ptr().cast(), most, from + done as off_t) {
                ..0 if *libc::__errno_location() == libc::EINTR => continue,
                ..0 => return wrong(*libc::__errno_location()),
                0 => break,
                read => {
                    let read = read as usize;
                    std::ptr::copy_nonoverlapping(room.as_ptr(), at.add(done), read);
                    done += read;
                }
            }
        }
    }
    // SAFETY: the caller's.
    unsafe { clear(at.add(done), bytes - done) };
    Ok(())
}

/// Makes bytes zero. Pages that are zero already are only read: nothing is stored there.
///
/// # Safety
/// So many bytes may be written there.
unsafe fn clear(at: *mut u8, bytes: usize) {
    let mut from = 0;
    while from < bytes {
        let part = (PAGE - (at.addr() + from) % PAGE).min(bytes - from);
        // SAFETY: the caller's, and within the bytes.
        unsafe {
            let place = at.add(from);
            let is_zero = (0..part).all(|byte| place.add(byte).read() == 0);
            if !is_zero {
                place.write_bytes(0, part);
            }
        }
        from += part;
    }
}

/// What is to be mapped.
struct Wanted {
    bytes: usize,
    shows: Shows,
    file: c_int,
    from: off_t,
}

impl Wanted {
    fn new(
        bytes: usize,
        protection: c_int,
        flags: c_int,
        (file, from): (c_int, off_t),
    ) -> Mapped<Wanted> {
        let bytes = pages(bytes)?;
        let is_shared = match flags & libc::MAP_TYPE {
            libc::MAP_PRIVATE => false,
            libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE => true,
            _ => return wrong(libc::EINVAL),
        };
        if from < 0 || !(from as usize).is_multiple_of(PAGE) {
            return wrong(libc::EINVAL);
        }
        if protection & libc::PROT_EXEC != 0 {
            return unsupported("code in memory that nodes share (PROT_EXEC)");
        }
        if flags & (libc::MAP_GROWSDOWN | libc::MAP_32BIT) != 0 {
            return unsupported("MAP_GROWSDOWN and MAP_32BIT");
        }
        let shows = match flags & libc::MAP_ANONYMOUS {
            0 => shown(file, protection, is_shared)?,
            _ => Shows::Zeros,
        };
        Ok(Wanted {
            bytes,
            shows,
            file,
            from,
        })
    }

    /// Puts what is wanted into memory, which may hold something.
    ///
    /// # Safety
    /// So many bytes may be written there.
    unsafe fn fill(&self, at: *mut u8, is_zero: bool) -> Mapped<()> {
        // SAFETY: the caller's.
        unsafe {
            match self.shows {
                Shows::Zeros if is_zero => {}
                Shows::Zeros => clear(at, self.bytes),
                Shows::File | Shows::SharedFile => {
                    read_file(at, self.bytes, self.file, self.from)?;
                }
            }
        }
        Ok(())
    }

    /// Maps it at an address of dhole's choice.
    fn map(&self) -> Mapped<*mut c_void> {
        let Some((block, is_zero)) = heap::map_pages(self.bytes) else {
            return wrong(libc::ENOMEM);
        };
        // SAFETY: the block was allocated just now, with so many bytes.
        if let Err(refusal) = unsafe { self.fill(block, is_zero) } {
            heap::unmap_pages(block);
            return Err(refusal);
        }
        mapped().insert(block.addr(), (self.bytes, self.shows));
        Ok(block.cast())
    }

    /// Maps it in place of a part of a mapping of this node.
    fn map_over(&self, at: *mut c_void) -> Mapped<*mut c_void> {
        if !at.addr().is_multiple_of(PAGE) {
            return wrong(libc::EINVAL);
        }
        let is_alike = |shows: Shows| (shows == Shows::Zeros) == (self.shows == Shows::Zeros);
        match find(at.addr(), self.bytes) {
            // SAFETY: a part of a mapping, which the program wants replaced.
            Some((_, shows)) if is_alike(shows) => unsafe { self.fill(at.cast(), false)? },
            _ => {
                return unsupported(
                    "an address that the program chooses (MAP_FIXED), but in a mapping of its \
                     own of the same kind: other nodes may have something there",
                );
            }
        }
        Ok(at)
    }
}

/// `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_mmap(
    at: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    from: off_t,
) -> *mut c_void {
    let _inside = Inside::enter();
    if !heap::is_on() {
        // SAFETY: the caller's, here and below as of the function in the C library.
        return unsafe { libc::mmap(at, bytes, protection, flags, file, from) };
    }
    let wanted = Wanted::new(bytes, protection, flags, (file, from));
    let fixed = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE;
    let done = wanted.and_then(|wanted| match flags & fixed {
        0 => wanted.map(),
        _ => wanted.map_over(at),
    });
    address("mmap", done)
}

/// `mmap64`, which is `mmap` on x86-64.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_mmap64(
    at: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    from: off_t,
) -> *mut c_void {
    let _inside = Inside::enter();
    // SAFETY: as above.
    unsafe { dh_mmap(at, bytes, protection, flags, file, from) }
}

/// `munmap`. A part of a mapping stays where it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_munmap(at: *mut c_void, bytes: usize) -> c_int {
    let _inside = Inside::enter();
    if !heap::is_shared(at, bytes) {
        // SAFETY: as above.
        return unsafe { libc::munmap(at, bytes) };
    }
    let unmap = || {
        let bytes = pages(bytes)?;
        if !at.addr().is_multiple_of(PAGE) {
            return wrong(libc::EINVAL);
        }
        // SAFETY: whole pages of shared memory, in front of which a header may stand.
        if unsafe { heap::mapped_bytes(at) }.is_some_and(|all| all <= bytes) {
            mapped().remove(&at.addr());
            heap::unmap_pages(at.cast());
        }
        Ok(())
    };
    returned("munmap", unmap())
}

/// `mremap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_mremap(
    at: *mut c_void,
    bytes: usize,
    wanted: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    let _inside = Inside::enter();
    if !heap::is_shared(at, bytes) {
        // SAFETY: as above.
        return unsafe { libc::mremap(at, bytes, wanted, flags, to) };
    }
    let remap = || {
        let (bytes, wanted) = (pages(bytes)?, pages(wanted)?);
        if flags & !libc::MREMAP_MAYMOVE != 0 {
            return unsupported("an address that the program chooses (MREMAP_FIXED)");
        }
        let own = mapped().get(&at.addr()).copied();
        let Some((_, shows)) = own.filter(|(all, _)| *all == bytes) else {
            return unsupported("a part of a mapping, or one that another node has made");
        };
        if wanted > bytes && shows != Shows::Zeros {
            return unsupported("a mapping of a file that grows");
        }
        if wanted <= bytes {
            // SAFETY: within the mapping. What grows into it again finds zeros.
            unsafe { clear(at.cast::<u8>().add(wanted), bytes - wanted) };
        } else if wanted > heap::capacity_of_pages(at) {
            if flags & libc::MREMAP_MAYMOVE == 0 {
                return wrong(libc::ENOMEM);
            }
            let grown = Wanted {
                bytes: wanted,
                shows,
                file: -1,
                from: 0,
            };
            let new = grown.map()?;
            // SAFETY: both have so many bytes, and nobody has the new one.
            unsafe { std::ptr::copy_nonoverlapping(at.cast::<u8>(), new.cast(), bytes) };
            mapped().remove(&at.addr());
            heap::unmap_pages(at.cast());
            return Ok(new);
        }
        heap::set_mapped_bytes(at, wanted);
        mapped().insert(at.addr(), (wanted, shows));
        Ok(at)
    };
    address("mremap", remap())
}

/// `mprotect`. What it forbids stays allowed: pages of shared memory are closed and opened as nodes
/// need them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_mprotect(at: *mut c_void, bytes: usize, protection: c_int) -> c_int {
    let _inside = Inside::enter();
    if !heap::is_shared(at, bytes) {
        // SAFETY: as above.
        return unsafe { libc::mprotect(at, bytes, protection) };
    }
    let protect = || {
        if !at.addr().is_multiple_of(PAGE) {
            return wrong(libc::EINVAL);
        }
        if protection & libc::PROT_EXEC != 0 {
            return unsupported("code in memory that nodes share (PROT_EXEC)");
        }
        let shows = find(at.addr(), bytes).map(|(_, shows)| shows);
        match (protection & libc::PROT_WRITE, shows) {
            (1.., Some(Shows::SharedFile)) => wrong(libc::EACCES),
            _ => Ok(()),
        }
    };
    returned("mprotect", protect())
}

/// `msync`: no mapping of shared memory writes a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_msync(at: *mut c_void, bytes: usize, flags: c_int) -> c_int {
    let _inside = Inside::enter();
    if !heap::is_shared(at, bytes) {
        // SAFETY: as above.
        return unsafe { libc::msync(at, bytes, flags) };
    }
    let both = libc::MS_ASYNC | libc::MS_SYNC;
    let is_right = at.addr().is_multiple_of(PAGE) && flags & both != both;
    let done = if is_right {
        Ok(())
    } else {
        wrong(libc::EINVAL)
    };
    returned("msync", done)
}

/// `madvise`. What gives pages back makes them zero; other advice does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_madvise(at: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    let _inside = Inside::enter();
    if !heap::is_shared(at, bytes) {
        // SAFETY: as above.
        return unsafe { libc::madvise(at, bytes, advice) };
    }
    let advise = || {
        if !at.addr().is_multiple_of(PAGE) {
            return wrong(libc::EINVAL);
        }
        if ![libc::MADV_DONTNEED, libc::MADV_REMOVE].contains(&advice) {
            return Ok(());
        }
        match find(at.addr(), bytes) {
            // SAFETY: a part of a mapping, which the program wants to be zeros.
            Some((_, Shows::Zeros)) => unsafe { clear(at.cast(), pages(bytes)?) },
            // It shows the file again, and nobody has written it.
            Some((_, Shows::SharedFile)) => {}
            _ => {
                return unsupported(
                    "giving back pages that this node has not mapped, or that show a private file \
                     (MADV_DONTNEED)",
                );
            }
        }
        Ok(())
    };
    returned("madvise", advise())
}

/// `posix_madvise`: advice alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_posix_madvise(at: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    let _inside = Inside::enter();
    match heap::is_shared(at, bytes) {
        true => 0,
        // SAFETY: as above.
        false => unsafe { libc::posix_madvise(at, bytes, advice) },
    }
}

/// `mlock`: shared memory stays where nodes need it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_mlock(at: *const c_void, bytes: usize) -> c_int {
    let _inside = Inside::enter();
    match heap::is_shared(at, bytes) {
        true => 0,
        // SAFETY: as above.
        false => unsafe { libc::mlock(at, bytes) },
    }
}

/// `munlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_munlock(at: *const c_void, bytes: usize) -> c_int {
    let _inside = Inside::enter();
    match heap::is_shared(at, bytes) {
        true => 0,
        // SAFETY: as above.
        false => unsafe { libc::munlock(at, bytes) },
    }
}
