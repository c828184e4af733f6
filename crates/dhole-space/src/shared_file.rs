//! Files without a name that several processes map; and memory of one process that takes their
//! place where the system gives no file.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;

/// Nobody can make such a file shorter or longer, nor forbid to write it.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A file in memory that keeps its length: who touches a page of it is never killed (`SIGBUS`)
/// because another process has cut it short.
#[derive(Debug)]
pub struct SharedFile {
    memory: Memory,
    bytes: u64,
}

#[derive(Debug)]
enum Memory {
    File(OwnedFd),
    /// A shared mapping that nobody may touch, of which others are made.
    Own(NonNull<u8>),
}

// SAFETY: an address, of which mappings are made; nothing is read or written there.
unsafe impl Send for SharedFile {}
// SAFETY: as above.
unsafe impl Sync for SharedFile {}

/// What mappings of a file are made of.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// A descriptor.
    Descriptor(RawFd),
    /// A shared mapping of all of it.
    Mapping(NonNull<u8>),
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        if let Memory::Own(at) = self.memory {
            // SAFETY: `make_own` mapped as many bytes there. Mappings made of them stay.
            unsafe { libc::munmap(at.as_ptr().cast(), self.bytes as usize) };
        }
    }
}

fn asked(answer: libc::c_int) -> io::Result<libc::c_int> {
    match answer {
        0.. => Ok(answer),
        _ => Err(io::Error::last_os_error()),
    }
}

fn unfit(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

impl SharedFile {
    /// A new file of zeros, which takes no memory before it is touched.
    ///
    /// # Errors
    /// The system's own; and where this process may write no file so long (`ulimit -f`).
    pub fn make(name: &CStr, bytes: u64) -> io::Result<SharedFile> {
        let mut limit = libc::rlimit {
            rlim_cur: libc::RLIM_INFINITY,
            rlim_max: libc::RLIM_INFINITY,
        };
        // SAFETY: the call writes into `limit`, and touches no other memory.
        let read = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
        if read && limit.rlim_cur < bytes {
            // Making it so long would end the process (SIGXFSZ).
            let cause = io::Error::from_raw_os_error(libc::EFBIG);
            let allowed = limit.rlim_cur;
            let why = format!("a file of {bytes} bytes: {cause} (`ulimit -f` allows {allowed})");
            return Err(io::Error::new(cause.kind(), why));
        }
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a string; the result is a new descriptor, or -1.
        let made = asked(unsafe { libc::memfd_create(name.as_ptr(), flags) });
        let made = made.map_err(|cause| {
            let why = format!("a file without a name (`memfd_create`): {cause}");
            io::Error::new(cause.kind(), why)
        })?;
        // SAFETY: the descriptor is new, and nobody else's.
        let file = unsafe { OwnedFd::from_raw_fd(made) };
        // SAFETY: both calls take an open descriptor and numbers.
        unsafe {
            asked(libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t))?;
            asked(libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS))?;
        }
        SharedFile::check(file, bytes)
    }

    /// As [`make`](SharedFile::make), for this process alone: where the system gives no file it is
    /// memory, which no other process can map.
    ///
    /// # Errors
    /// The system's own, where it gives neither.
    pub fn make_own(name: &CStr, bytes: u64) -> io::Result<SharedFile> {
        SharedFile::make(name, bytes).or_else(|no_file| SharedFile::of_memory(bytes, &no_file))
    }

    fn of_memory(bytes: u64, no_file: &io::Error) -> io::Result<SharedFile> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        #[cfg(not(miri))]
        let at = crate::apart::hint(bytes as usize);
        #[cfg(miri)]
        let at = std::ptr::null_mut();
        // SAFETY: at an address of the system's choice, so it touches nothing else.
        let at = unsafe { libc::mmap(at, bytes as usize, libc::PROT_NONE, flags, -1, 0) };
        match NonNull::new(at.cast::<u8>()) {
            Some(at) if at.as_ptr().cast() != libc::MAP_FAILED => Ok(SharedFile {
                memory: Memory::Own(at),
                bytes,
            }),
            _ => {
                let cause = io::Error::last_os_error();
                let why = format!("{no_file}; and {bytes} bytes of memory in its place: {cause}");
                Err(io::Error::new(cause.kind(), why))
            }
        }
    }

    /// What mappings of it are made of.
    pub(crate) fn source(&self) -> Source {
        match &self.memory {
            Memory::File(file) => Source::Descriptor(file.as_raw_fd()),
            Memory::Own(at) => Source::Mapping(*at),
        }
    }

    fn file(&self) -> io::Result<&OwnedFd> {
        match &self.memory {
            Memory::File(file) => Ok(file),
            Memory::Own(_) => Err(unfit("memory that no other process can map")),
        }
    }

    /// A file that another process has made, if it is such a file, of so many bytes.
    ///
    /// # Errors
    /// The system's own; [`io::ErrorKind::InvalidData`] where the file is another one than
    /// [`make`](SharedFile::make) makes.
    pub(crate) fn check(file: OwnedFd, bytes: u64) -> io::Result<SharedFile> {
        // SAFETY: the call takes an open descriptor.
        let seals = unsafe { asked(libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS)) };
        if seals.is_ok_and(|seals| seals & libc::F_SEAL_SHRINK != 0) {
            // It is measured after it was found that it cannot become shorter.
            return SharedFile::measured(file, bytes);
        }
        Err(unfit("memory that its owner can take away again"))
    }

    fn measured(file: OwnedFd, bytes: u64) -> io::Result<SharedFile> {
        // SAFETY: plain numbers, of which zeros are some.
        let (mut kind, mut is): (libc::statfs, libc::stat) = unsafe { std::mem::zeroed() };
        // SAFETY: the calls take an open descriptor, and write into what is borrowed.
        unsafe {
            asked(libc::fstatfs(file.as_raw_fd(), &mut kind))?;
            asked(libc::fstat(file.as_raw_fd(), &mut is))?;
        }
        // Huge pages of another kind of file may be wanting when they are touched.
        if kind.f_type != libc::TMPFS_MAGIC {
            return Err(unfit("a file that is not memory of the usual kind"));
        }
        if u64::try_from(is.st_size) != Ok(bytes) {
            return Err(unfit(format!("{} bytes, and not {bytes}", is.st_size)));
        }
        let memory = Memory::File(file);
        Ok(SharedFile { memory, bytes })
    }

    /// Its bytes, for ever.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives all of its memory back to the system: it holds zeros.
    pub(crate) fn clear(&self) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let bytes = self.bytes;
        // SAFETY: the calls take an open descriptor and numbers, or what is mapped as long as this
        // lives, of which the caller clears all mappings.
        let cleared = asked(unsafe {
            match self.source() {
                Source::Descriptor(file) => libc::fallocate(file, mode, 0, bytes as libc::off_t),
                Source::Mapping(at) => {
                    libc::madvise(at.as_ptr().cast(), bytes as usize, libc::MADV_REMOVE)
                }
            }
        });
        cleared.expect("a file that this process made, and nobody seals");
    }

    /// A descriptor of the same file, for another process.
    pub(crate) fn to_write(&self) -> io::Result<OwnedFd> {
        self.file()?.try_clone()
    }

    /// The same, through which the file can only be read, nor mapped to be written.
    pub(crate) fn to_read(&self) -> io::Result<OwnedFd> {
        let name = format!("/proc/self/fd/{}", self.file()?.as_raw_fd());
        Ok(std::fs::File::open(name)?.into())
    }
}
