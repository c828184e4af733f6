//! Descriptors that the process that started this one has left open for it.
#![expect(
    unsafe_code,
    reason = "whose a descriptor is, the environment alone says"
)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// A descriptor of this process's own for what `number` stands for, which children do not inherit.
///
/// # Errors
/// The system's own, where there is no such descriptor.
pub(crate) fn descriptor(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call reads and writes no memory of this process, and looks up `number` itself:
    // where it is not open, nothing happens and an error comes back.
    let own = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if own < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for this call, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(own) })
}
