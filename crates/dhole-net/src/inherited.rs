//! Descriptors that the process that started this one has left open for it.
#![expect(
    unsafe_code,
    reason = "whose a descriptor is, the environment alone says"
)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// The numbers of the standard streams, which belong to everybody.
const STANDARD: std::ops::Range<i32> = 0..3;

/// The descriptor `number`, which this process has inherited: from here on it is the caller's
/// alone, who closes it, and children do not inherit it. One that may be a standard stream stays
/// open; the caller gets another for it.
///
/// # Errors
/// The system's own, where there is no such descriptor, or one that was not inherited: one that
/// this process has opened itself, or that was asked for before.
pub(crate) fn descriptor(number: i32) -> io::Result<OwnedFd> {
    let asked = |answer: i32| match answer {
        0.. => Ok(answer),
        _ => Err(io::Error::last_os_error()),
    };
    if STANDARD.contains(&number) {
        // SAFETY: the call reads and writes no memory of this process, and looks up `number`
        // itself: where it is not open, nothing happens and an error comes back.
        let own = asked(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, STANDARD.end) })?;
        // SAFETY: the kernel has just made this descriptor for this call, so nobody else owns it.
        return Ok(unsafe { OwnedFd::from_raw_fd(own) });
    }
    // SAFETY: as above.
    let flags = asked(unsafe { libc::fcntl(number, libc::F_GETFD) })?;
    if flags & libc::FD_CLOEXEC != 0 {
        let why = "a descriptor that this process has not inherited";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    // SAFETY: as above.
    asked(unsafe { libc::fcntl(number, libc::F_SETFD, flags | libc::FD_CLOEXEC) })?;
    // SAFETY: whatever is opened within a Rust process is closed on exec, and was turned down
    // above, as is what was taken here before. So this one came with exec, for whom the
    // environment names it to; and nobody else learns of it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::{AsRawFd, IntoRawFd};

    use rustix::io::{FdFlags, fcntl_getfd};
    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    #[test]
    fn what_is_inherited_is_taken_once_passed_to_no_child_and_closed_at_the_end() {
        let (reads, writes) = pipe_with(PipeFlags::empty()).expect("a pipe");
        let number = reads.into_raw_fd();
        let own = descriptor(number).expect("it is open");
        assert!(fcntl_getfd(&own).expect("flags").contains(FdFlags::CLOEXEC));
        let again = descriptor(number).expect_err("it was taken");
        assert_eq!(again.kind(), io::ErrorKind::InvalidInput);
        let (mut own, mut writes) = (File::from(own), File::from(writes));
        writes.write_all(b"x").expect("somebody reads");
        own.read_exact(&mut [0]).expect("a byte");
        drop(own);
        let nobody = writes.write_all(b"x").expect_err("nobody reads");
        assert_eq!(nobody.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn what_this_process_has_opened_is_not_taken_from_it() {
        let file = File::open("/dev/null").expect("a file");
        let refused = descriptor(file.as_raw_fd()).expect_err("it was not inherited");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        assert!(file.metadata().is_ok());
        assert!(descriptor(987_654).is_err());
        // Standard streams stay.
        drop(descriptor(2).expect("the standard error"));
        drop(descriptor(2).expect("the standard error"));
    }
}
