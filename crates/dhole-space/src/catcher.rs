//! How views of a file are opened and closed, page by page: for raw memory, whose faults a handler
//! of its own takes.

mod mappings;
#[cfg(test)]
mod tests;
mod uffd;

use std::io;
use std::ptr::NonNull;

use crate::protection::Protection;
use crate::store_fence;
use crate::variable::variable;

use self::mappings::Mappings;
use self::uffd::Uffd;

/// Which way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CatcherKind {
    /// `userfaultfd`: faults of a view that the system knows apart from its mapping. A fault is a
    /// SIGBUS.
    Uffd,
    /// `mprotect`: works everywhere, and splits mappings, of which a process has 65,530. A fault is
    /// a SIGSEGV.
    Mprotect,
}

/// Why pages cannot be opened, or closed.
#[derive(Debug)]
pub enum ProtectionError {
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
pub struct Catcher(Way);

enum Way {
    Uffd(Uffd),
    Mprotect(Mappings),
    Nothing,
}

/// Which way the environment asks for.
const VARIABLE: &str = "DHOLE_FAULTS";

impl CatcherKind {
    /// The way that `DHOLE_FAULTS` names, or else the first that works: it is tried.
    ///
    /// # Errors
    /// The system's own; that the variable names no way.
    pub fn choose() -> io::Result<CatcherKind> {
        match variable(VARIABLE).as_deref() {
            Some("uffd") => uffd::probe().map(|()| CatcherKind::Uffd),
            Some("mprotect") => Ok(CatcherKind::Mprotect),
            Some(other) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{VARIABLE} is `{other}`: `uffd` or `mprotect` is expected"),
            )),
            None if uffd::probe().is_ok() => Ok(CatcherKind::Uffd),
            None => Ok(CatcherKind::Mprotect),
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
    /// None: views are open, for ever.
    pub const NOTHING: Catcher = Catcher(Way::Nothing);

    /// For the views of one node.
    ///
    /// # Errors
    /// The system's own, where it refuses this way.
    pub fn new(kind: CatcherKind) -> io::Result<Catcher> {
        store_fence::prepare()?;
        Ok(Catcher(match kind {
            CatcherKind::Uffd => Way::Uffd(Uffd::new()?),
            CatcherKind::Mprotect => Way::Mprotect(Mappings::new()?),
        }))
    }

    /// Whether views are opened and closed at all.
    #[inline]
    pub fn catches(&self) -> bool {
        !matches!(self.0, Way::Nothing)
    }

    /// What it is called in reports.
    pub fn name(&self) -> &'static str {
        match self.0 {
            Way::Uffd(_) => "userfaultfd",
            Way::Mprotect(_) => "mprotect",
            Way::Nothing => "none",
        }
    }

    /// With which protection a view is mapped.
    pub fn closed(&self) -> Protection {
        match self.0 {
            Way::Uffd(_) | Way::Nothing => Protection::Open,
            Way::Mprotect(_) => Protection::Closed,
        }
    }

    /// A view is mapped here: from here on it is closed.
    ///
    /// # Errors
    /// The system's own.
    ///
    /// # Safety
    /// It is a mapping of a file, with this [protection](Catcher::closed), of which every access
    /// may fault from here on.
    pub unsafe fn watch(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        match &self.0 {
            // SAFETY: as the caller promises.
            Way::Uffd(uffd) => unsafe { uffd.register(at, bytes) },
            Way::Mprotect(mappings) => {
                let first = at.addr().get();
                mappings.add(first..first + bytes);
                Ok(())
            }
            Way::Nothing => Ok(()),
        }
    }

    /// No view is mapped any more that was.
    pub fn forget(&self) {
        if let Way::Mprotect(mappings) = &self.0 {
            mappings.clear();
        }
    }

    /// How many mappings the views have, if `mprotect` splits them.
    #[cfg(test)]
    fn mappings(&self) -> Option<usize> {
        match &self.0 {
            Way::Mprotect(mappings) => Some(mappings.count()),
            _ => None,
        }
    }

    /// Opens or closes pages of a view, for all threads, before it returns. The pages exist in the
    /// memory object if it opens them.
    ///
    /// # Errors
    /// [`ProtectionError`]; nothing is changed where there would be too many mappings.
    ///
    /// # Safety
    /// They are pages of a view that is [watched](Catcher::watch).
    pub unsafe fn protect(
        &self,
        at: NonNull<u8>,
        bytes: usize,
        protection: Protection,
    ) -> Result<(), ProtectionError> {
        match &self.0 {
            // SAFETY: as the caller promises.
            Way::Uffd(uffd) => unsafe { uffd.protect(at, bytes, protection)? },
            Way::Mprotect(mappings) => {
                let first = at.addr().get();
                // SAFETY: as the caller promises.
                let act = || unsafe { mprotect(at, bytes, protection) };
                mappings.change(first..first + bytes, protection, act)?;
            }
            Way::Nothing => return Ok(()),
        }
        match protection {
            Protection::Open => Ok(()),
            Protection::Closed | Protection::ReadOnly => Ok(store_fence::after_revocation()?),
        }
    }
}

/// # Safety
/// They are pages of a view, of which every access may fault at any time.
unsafe fn mprotect(at: NonNull<u8>, bytes: usize, protection: Protection) -> io::Result<()> {
    // SAFETY: as the caller promises.
    match unsafe { libc::mprotect(at.as_ptr().cast(), bytes, protection.flags()) } {
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
