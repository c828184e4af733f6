//! Views that `userfaultfd` opens and closes. An access to a page that the view does not show yet
//! is a *missing* or *minor* fault, a write to one that it shows read-only a *write-protection*
//! fault. All of them raise SIGBUS at the thread that faults.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use super::Protection;

const PAGE: usize = 4096;

/// Numbers of `linux/userfaultfd.h`.
mod kernel {
    pub const USER_MODE_ONLY: libc::c_int = 1;
    pub const API_VERSION: u64 = 0xaa;
    pub const FEATURE_PAGEFAULT_FLAG_WP: u64 = 1;
    pub const FEATURE_SIGBUS: u64 = 1 << 7;
    pub const FEATURE_MINOR_SHMEM: u64 = 1 << 10;
    pub const FEATURE_WP_SHMEM: u64 = 1 << 12;
    pub const REGISTER_MISSING: u64 = 1;
    pub const REGISTER_WP: u64 = 1 << 1;
    pub const REGISTER_MINOR: u64 = 1 << 2;
    pub const CONTINUE_WP: u64 = 1 << 1;
    pub const WRITEPROTECT_WP: u64 = 1;
    pub const API: libc::c_ulong = 0xc018_aa3f;
    pub const REGISTER: libc::c_ulong = 0xc020_aa00;
    pub const CONTINUE: libc::c_ulong = 0xc020_aa07;
    pub const WRITEPROTECT: libc::c_ulong = 0xc018_aa06;

    #[repr(C)]
    pub struct Api {
        pub api: u64,
        pub features: u64,
        pub ioctls: u64,
    }

    #[repr(C)]
    pub struct Range {
        pub start: u64,
        pub len: u64,
    }

    #[repr(C)]
    pub struct Register {
        pub range: Range,
        pub mode: u64,
        pub ioctls: u64,
    }

    #[repr(C)]
    pub struct Continue {
        pub range: Range,
        pub mode: u64,
        pub mapped: i64,
    }

    #[repr(C)]
    pub struct WriteProtect {
        pub range: Range,
        pub mode: u64,
    }

    const _: () = assert!(size_of::<Api>() == 24 && size_of::<Register>() == 32);
    const _: () = assert!(size_of::<Continue>() == 32 && size_of::<WriteProtect>() == 24);
}

/// The descriptor by which views are opened and closed.
pub(crate) struct Uffd(OwnedFd);

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
    pub fn new() -> io::Result<Uffd> {
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

    pub fn register(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        let mut register = kernel::Register {
            range: range(at.addr().get(), bytes),
            mode: kernel::REGISTER_MISSING | kernel::REGISTER_WP | kernel::REGISTER_MINOR,
            ioctls: 0,
        };
        self.ask(kernel::REGISTER, &mut register)
    }

    pub fn protect(&self, at: NonNull<u8>, bytes: usize, protection: Protection) -> io::Result<()> {
        if protection != Protection::Closed {
            let first = at.addr().get();
            return self.open(first..first + bytes, protection);
        }
        #[cfg(test)]
        calls::count();
        // SAFETY: the caller names pages of a view (`Arena::protect`), of which every access may
        // fault at any time. The memory object keeps what they show.
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
    // SAFETY: the name is a string; the result is a new descriptor, or -1.
    let file = unsafe { libc::memfd_create(c"dhole-probe".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return last();
    }
    // SAFETY: it is a new descriptor, by the test above, which nobody else has.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    // SAFETY: the call takes an open descriptor and a number.
    if unsafe { libc::ftruncate(file.as_raw_fd(), PAGE as libc::off_t) } != 0 {
        return last();
    }
    // SAFETY: the call takes an open descriptor, a string and a number.
    if unsafe { libc::pwrite(file.as_raw_fd(), c"x".as_ptr().cast(), 1, 0) } != 1 {
        return last();
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: at an address of the system's choice, so it touches nothing else.
    let at = unsafe {
        let none = std::ptr::null_mut();
        libc::mmap(
            none,
            PAGE,
            protection,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    let Some(view) = NonNull::new(at.cast::<u8>()).filter(|_| at != libc::MAP_FAILED) else {
        return last();
    };
    let tried = uffd.register(view, PAGE).and_then(|()| {
        uffd.protect(view, PAGE, Protection::ReadOnly)?;
        uffd.protect(view, PAGE, Protection::Open)?;
        uffd.protect(view, PAGE, Protection::Closed)
    });
    // SAFETY: it was mapped above, and nothing refers to it.
    unsafe { libc::munmap(at, PAGE) };
    tried
}

/// How many calls of the system this thread has made.
#[cfg(test)]
pub(crate) mod calls {
    use std::cell::Cell;

    thread_local! {
        static MADE: Cell<u64> = const { Cell::new(0) };
    }

    pub fn count() {
        MADE.set(MADE.get() + 1);
    }

    pub fn made() -> u64 {
        MADE.get()
    }
}
