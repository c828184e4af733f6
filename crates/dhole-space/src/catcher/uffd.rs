//! Views that `userfaultfd` opens and closes. An access to a page that the view does not show yet
//! is a *missing* or *minor* fault, a write to one that it shows read-only a *write-protection*
//! fault. All of them raise SIGBUS at the thread that faults.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

use crate::mapping::Mapping;
use crate::protection::Protection;
use crate::shared_file::SharedFile;

const PAGE: usize = 4096;

/// Numbers of `linux/userfaultfd.h`.
mod kernel {
    pub(super) const USER_MODE_ONLY: libc::c_int = 1;
    pub(super) const API_VERSION: u64 = 0xaa;
    pub(super) const FEATURE_PAGEFAULT_FLAG_WP: u64 = 1;
    pub(super) const FEATURE_SIGBUS: u64 = 1 << 7;
    pub(super) const FEATURE_MINOR_SHMEM: u64 = 1 << 10;
    pub(super) const FEATURE_WP_SHMEM: u64 = 1 << 12;
    pub(super) const REGISTER_MISSING: u64 = 1;
    pub(super) const REGISTER_WP: u64 = 1 << 1;
    pub(super) const REGISTER_MINOR: u64 = 1 << 2;
    pub(super) const CONTINUE_WP: u64 = 1 << 1;
    pub(super) const WRITEPROTECT_WP: u64 = 1;
    pub(super) const API: libc::c_ulong = 0xc018_aa3f;
    pub(super) const REGISTER: libc::c_ulong = 0xc020_aa00;
    pub(super) const CONTINUE: libc::c_ulong = 0xc020_aa07;
    pub(super) const WRITEPROTECT: libc::c_ulong = 0xc018_aa06;

    #[repr(C)]
    pub(super) struct Api {
        pub(super) api: u64,
        pub(super) features: u64,
        pub(super) ioctls: u64,
    }

    #[repr(C)]
    pub(super) struct Range {
        pub(super) start: u64,
        pub(super) len: u64,
    }

    #[repr(C)]
    pub(super) struct Register {
        pub(super) range: Range,
        pub(super) mode: u64,
        pub(super) ioctls: u64,
    }

    #[repr(C)]
    pub(super) struct Continue {
        pub(super) range: Range,
        pub(super) mode: u64,
        pub(super) mapped: i64,
    }

    #[repr(C)]
    pub(super) struct WriteProtect {
        pub(super) range: Range,
        pub(super) mode: u64,
    }

    const _: () = assert!(size_of::<Api>() == 24 && size_of::<Register>() == 32);
    const _: () = assert!(size_of::<Continue>() == 32 && size_of::<WriteProtect>() == 24);
}

/// The descriptor by which views are opened and closed.
pub(super) struct Uffd(OwnedFd);

fn last<T>() -> io::Result<T> {
    Err(io::Error::last_os_error())
}

fn range(at: usize, bytes: usize) -> kernel::Range {
    let (start, len) = (at as u64, bytes as u64);
    kernel::Range { start, len }
}

impl Uffd {
    /// # Errors
    /// The system's own: it has no such call, or refuses it, as some containers do.
    pub(super) fn new() -> io::Result<Uffd> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | kernel::USER_MODE_ONLY;
        // SAFETY: the call takes numbers; the result is a new descriptor, or -1.
        let file = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
        if file < 0 {
            return last();
        }
        // SAFETY: it is a new descriptor, by the test above, which nobody else has.
        let uffd = Uffd(unsafe { OwnedFd::from_raw_fd(file as libc::c_int) });
        let mut api = kernel::Api {
            api: kernel::API_VERSION,
            features: kernel::FEATURE_PAGEFAULT_FLAG_WP
                | kernel::FEATURE_SIGBUS
                | kernel::FEATURE_MINOR_SHMEM
                | kernel::FEATURE_WP_SHMEM,
            ioctls: 0,
        };
        uffd.ask(kernel::API, &mut api)?;
        Ok(uffd)
    }

    /// Has the system do something.
    fn ask<T>(&self, what: libc::c_ulong, with: &mut T) -> io::Result<()> {
        #[cfg(test)]
        calls::count();
        // SAFETY: each of the requests above reads and writes a structure of the type that the
        // number names with it, as long as the one that is borrowed: this module alone calls it.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), what, std::ptr::from_mut(with)) } {
            0 => Ok(()),
            _ => last(),
        }
    }

    /// # Safety
    /// It is a mapping of a file, of which every access may fault from here on.
    pub(super) unsafe fn register(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        let mut register = kernel::Register {
            range: range(at.addr().get(), bytes),
            mode: kernel::REGISTER_MISSING | kernel::REGISTER_WP | kernel::REGISTER_MINOR,
            ioctls: 0,
        };
        self.ask(kernel::REGISTER, &mut register)
    }

    /// # Safety
    /// They are pages that are [registered](Uffd::register).
    pub(super) unsafe fn protect(
        &self,
        at: NonNull<u8>,
        bytes: usize,
        protection: Protection,
    ) -> io::Result<()> {
        if protection != Protection::Closed {
            let first = at.addr().get();
            return self.open(first..first + bytes, protection);
        }
        #[cfg(test)]
        calls::count();
        // SAFETY: pages of which every access may fault at any time, as the caller promises. The
        // file keeps what they show.
        match unsafe { libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_DONTNEED) } {
            0 => Ok(()),
            _ => last(),
        }
    }

    /// Shows pages, or shows them otherwise.
    fn open(&self, pages: Range<usize>, protection: Protection) -> io::Result<()> {
        let read_only = protection == Protection::ReadOnly;
        let (mut at, mut were_shown) = (pages.start, false);
        while at < pages.end {
            let mut shows = kernel::Continue {
                range: range(at, pages.end - at),
                mode: if read_only { kernel::CONTINUE_WP } else { 0 },
                mapped: 0,
            };
            let shown = self.ask(kernel::CONTINUE, &mut shows);
            match shown.map_err(|error| (error.raw_os_error(), error)) {
                Ok(()) => break,
                Err((Some(libc::EEXIST), _)) => {
                    were_shown = true;
                    at += PAGE;
                }
                // A page behind these is shown already, or the space of addresses changes at this
                // moment, as where a thread begins.
                Err((Some(libc::EAGAIN), _)) => {
                    at += usize::try_from(shows.mapped).unwrap_or(0);
                }
                Err((_, error)) => return Err(error),
            }
        }
        if !were_shown {
            return Ok(());
        }
        loop {
            let mut protects = kernel::WriteProtect {
                range: range(pages.start, pages.len()),
                mode: if read_only {
                    kernel::WRITEPROTECT_WP
                } else {
                    0
                },
            };
            match self.ask(kernel::WRITEPROTECT, &mut protects) {
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {}
                protected => return protected,
            }
        }
    }
}

/// Whether all of it works: a page of a file is shown, protected and hidden again.
///
/// # Errors
/// The system's own.
pub(super) fn probe() -> io::Result<()> {
    let uffd = Uffd::new()?;
    let file = SharedFile::make(c"dhole-probe", PAGE as u64)?;
    std::fs::File::from(file.to_write()?).write_all_at(b"x", 0)?;
    let view = Mapping::of_part(&file, 0..PAGE as u64)?;
    let at = view.start();
    // SAFETY: a page of a file, to which nothing refers.
    unsafe {
        uffd.register(at, PAGE)?;
        uffd.protect(at, PAGE, Protection::ReadOnly)?;
        uffd.protect(at, PAGE, Protection::Open)?;
        uffd.protect(at, PAGE, Protection::Closed)
    }
}

/// How many calls of the system this thread has made.
#[cfg(test)]
pub(super) mod calls {
    use std::cell::Cell;

    thread_local! {
        static MADE: Cell<u64> = const { Cell::new(0) };
    }

    pub(in crate::catcher) fn count() {
        MADE.set(MADE.get() + 1);
    }

    pub(in crate::catcher) fn made() -> u64 {
        MADE.get()
    }
}
