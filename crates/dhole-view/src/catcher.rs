//! How the views of a program are opened and closed, page by page.

pub(crate) mod uffd;

use std::io;
use std::ptr::NonNull;

use crate::store_fence;

use self::uffd::Uffd;

/// What threads may do with pages of a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Protection {
    /// Every access faults.
    Closed,
    /// Writes fault.
    ReadOnly,
    /// None faults.
    Open,
}

/// Which way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CatcherKind {
    /// `userfaultfd`: faults of a view that the system knows apart from its mapping. A fault is a
    /// SIGBUS.
    Uffd,
    /// `mprotect`: works everywhere, and splits mappings, of which a process has 65,530. A fault is
    /// a SIGSEGV.
    Mprotect,
}

/// The way that is used, and what it needs.
pub(crate) enum Catcher {
    Uffd(Uffd),
    Mprotect,
    /// None: views are open, for ever.
    Nothing,
}

/// Which way the environment asks for.
const VARIABLE: &str = "DHOLE_FAULTS";

impl CatcherKind {
    /// The way that `DHOLE_FAULTS` names, or else the first that works: it is tried.
    pub fn choose() -> io::Result<CatcherKind> {
        let named = std::env::var(VARIABLE);
        match named.as_deref() {
            Ok("uffd") => uffd::probe().map(|()| CatcherKind::Uffd),
            Ok("mprotect") => Ok(CatcherKind::Mprotect),
            Ok(other) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{VARIABLE} is `{other}`: `uffd` or `mprotect` is expected"),
            )),
            Err(_) if uffd::probe().is_ok() => Ok(CatcherKind::Uffd),
            Err(_) => Ok(CatcherKind::Mprotect),
        }
    }

    /// The signal that an access to a closed view raises.
    pub fn signal(self) -> libc::c_int {
        match self {
            CatcherKind::Uffd => libc::SIGBUS,
            CatcherKind::Mprotect => libc::SIGSEGV,
        }
    }
}

impl Catcher {
    pub fn new(kind: CatcherKind) -> io::Result<Catcher> {
        store_fence::prepare()?;
        Ok(match kind {
            CatcherKind::Uffd => Catcher::Uffd(Uffd::new()?),
            CatcherKind::Mprotect => Catcher::Mprotect,
        })
    }

    /// What it is called in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Catcher::Uffd(_) => "userfaultfd",
            Catcher::Mprotect => "mprotect",
            Catcher::Nothing => "none",
        }
    }

    /// With which protection a view is mapped.
    pub fn closed(&self) -> libc::c_int {
        match self {
            Catcher::Uffd(_) | Catcher::Nothing => libc::PROT_READ | libc::PROT_WRITE,
            Catcher::Mprotect => libc::PROT_NONE,
        }
    }

    /// A view is mapped here: from here on it is closed.
    pub fn watch(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        match self {
            Catcher::Uffd(uffd) => uffd.register(at, bytes),
            Catcher::Mprotect | Catcher::Nothing => Ok(()),
        }
    }

    /// Opens or closes pages of a view, for all threads, before it returns. The pages exist in the
    /// memory object if it opens them.
    pub fn protect(&self, at: NonNull<u8>, bytes: usize, protection: Protection) -> io::Result<()> {
        match self {
            Catcher::Uffd(uffd) => uffd.protect(at, bytes, protection)?,
            Catcher::Mprotect => mprotect(at, bytes, protection)?,
            Catcher::Nothing => return Ok(()),
        }
        match protection {
            Protection::Open => Ok(()),
            Protection::Closed | Protection::ReadOnly => store_fence::after_revocation(),
        }
    }
}

fn mprotect(at: NonNull<u8>, bytes: usize, protection: Protection) -> io::Result<()> {
    let flags = match protection {
        Protection::Closed => libc::PROT_NONE,
        Protection::ReadOnly => libc::PROT_READ,
        Protection::Open => libc::PROT_READ | libc::PROT_WRITE,
    };
    // SAFETY: the caller names pages of a view (`Arena::protect`), of which every access may fault
    // at any time.
    match unsafe { libc::mprotect(at.as_ptr().cast(), bytes, flags) } {
        0 => Ok(()),
        _ => {
            let cause = io::Error::last_os_error();
            let many = cause.raw_os_error() == Some(libc::ENOMEM);
            Err(match many {
                true => io::Error::new(cause.kind(), format!("{cause}: {TOO_MANY}")),
                false => cause,
            })
        }
    }
}

const TOO_MANY: &str = "the process has too many mappings (sysctl vm.max_map_count), for mprotect \
                        splits them: allow it userfaultfd, or allocate in larger pieces";
