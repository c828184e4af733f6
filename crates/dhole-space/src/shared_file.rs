//! Files without a name that several processes map.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Nobody can make such a file shorter or longer, nor forbid to write it.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A file in memory that keeps its length: who touches a page of it is never killed (`SIGBUS`)
/// because another process has cut it short.
#[derive(Debug)]
pub struct SharedFile {
    file: OwnedFd,
    bytes: u64,
}

impl AsRawFd for SharedFile {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
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
            return Err(io::Error::from_raw_os_error(libc::EFBIG));
        }
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a string; the result is a new descriptor, or -1.
        let file =
            unsafe { OwnedFd::from_raw_fd(asked(libc::memfd_create(name.as_ptr(), flags))?) };
        // SAFETY: both calls take an open descriptor and numbers.
        unsafe {
            asked(libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t))?;
            asked(libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS))?;
        }
        SharedFile::check(file, bytes)
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
        Ok(SharedFile { file, bytes })
    }

    /// Its bytes, for ever.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives all of its memory back to the system: it holds zeros.
    pub(crate) fn clear(&self) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (file, bytes) = (self.as_raw_fd(), self.bytes as libc::off_t);
        // SAFETY: the call takes an open descriptor and numbers.
        let cleared = asked(unsafe { libc::fallocate(file, mode, 0, bytes) });
        cleared.expect("a file that this process made, and nobody seals");
    }

    /// A descriptor of the same file, for another process.
    pub(crate) fn to_write(&self) -> io::Result<OwnedFd> {
        self.file.try_clone()
    }

    /// The same, through which the file can only be read, nor mapped to be written.
    pub(crate) fn to_read(&self) -> io::Result<OwnedFd> {
        let name = format!("/proc/self/fd/{}", self.as_raw_fd());
        Ok(std::fs::File::open(name)?.into())
    }
}
