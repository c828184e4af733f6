//! How the views of a program are opened and closed, page by page.

mod mappings;
pub(crate) mod uffd;

use std::io;
use std::ptr::NonNull;

use crate::store_fence;

use self::mappings::Mappings;
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

/// Why pages cannot be opened, or closed.
#[derive(Debug)]
pub(crate) enum ProtectionError {
    /// The system's own.
    System(io::Error),
    /// `mprotect` would split the views into too many mappings.
    Mappings {
        /// How many the process would have.
        mappings: usize,
        /// How many it may have.
        most: usize,
        /// How many the system allows it.
        allowed: usize,
    },
}

impl From<io::Error> for ProtectionError {
    fn from(cause: io::Error) -> ProtectionError {
        ProtectionError::System(cause)
    }
}

/// The way that is used, and what it needs.
pub(crate) enum Catcher {
    Uffd(Uffd),
    Mprotect(Mappings),
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
            CatcherKind::Mprotect => Catcher::Mprotect(Mappings::new()?),
        })
    }

    /// What it is called in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Catcher::Uffd(_) => "userfaultfd",
            Catcher::Mprotect(_) => "mprotect",
            Catcher::Nothing => "none",
        }
    }

    /// With which protection a view is mapped.
    pub fn closed(&self) -> libc::c_int {
        match self {
            Catcher::Uffd(_) | Catcher::Nothing => libc::PROT_READ | libc::PROT_WRITE,
            Catcher::Mprotect(_) => libc::PROT_NONE,
        }
    }

    /// A view is mapped here: from here on it is closed.
    pub fn watch(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        match self {
            Catcher::Uffd(uffd) => uffd.register(at, bytes),
            Catcher::Mprotect(mappings) => {
                let first = at.addr().get();
                mappings.add(first..first + bytes);
                Ok(())
            }
            Catcher::Nothing => Ok(()),
        }
    }

    /// No view is mapped any more that was.
    pub fn forget(&self) {
        if let Catcher::Mprotect(mappings) = self {
            mappings.clear();
        }
    }

    /// How many mappings the views have, if `mprotect` splits them.
    #[cfg(test)]
    pub fn mappings(&self) -> Option<usize> {
        match self {
            Catcher::Mprotect(mappings) => Some(mappings.count()),
            _ => None,
        }
    }

    /// Opens or closes pages of a view, for all threads, before it returns. The pages exist in the
    /// memory object if it opens them.
    ///
    /// # Errors
    /// [`ProtectionError`]; nothing is changed where there would be too many mappings.
    pub fn protect(
        &self,
        at: NonNull<u8>,
        bytes: usize,
        protection: Protection,
    ) -> Result<(), ProtectionError> {
        match self {
            Catcher::Uffd(uffd) => uffd.protect(at, bytes, protection)?,
            Catcher::Mprotect(mappings) => {
                let first = at.addr().get();
                let act = || mprotect(at, bytes, protection);
                mappings.change(first..first + bytes, protection, act)?;
            }
            Catcher::Nothing => return Ok(()),
        }
        match protection {
            Protection::Open => Ok(()),
            Protection::Closed | Protection::ReadOnly => Ok(store_fence::after_revocation()?),
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
