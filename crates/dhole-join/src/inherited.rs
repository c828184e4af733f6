//! Descriptors that the process that started this one has left open for it.
//!
//! A number in the environment does not prove whose a descriptor is: a library may have opened a
//! file under that number before, and other programs pass numbers on that mean nothing any more. So
//! this process uses a duplicate of its own. It closes the number itself only where the launcher
//! has said as well which file that is, by device and inode, and it still is that file.
#![expect(
    unsafe_code,
    reason = "duplicates of descriptors, and the numbers of those that a launcher hands over"
)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::str::FromStr;

use rustix::fs::fstat;

/// The numbers of the standard streams, which belong to everybody.
const STANDARD: std::ops::Range<i32> = 0..3;

/// The descriptors that a launcher hands over, and which file each of them is. As text,
/// `NUMBER:DEVICE:INODE` of each, with spaces between.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct HandedOver(Vec<(i32, u64, u64)>);

impl FromStr for HandedOver {
    type Err = std::num::ParseIntError;

    fn from_str(said: &str) -> Result<HandedOver, Self::Err> {
        let named = said.split_ascii_whitespace().map(|one| {
            let mut words = one.splitn(3, ':');
            let mut word = || words.next().unwrap_or_default();
            Ok((word().parse()?, word().parse()?, word().parse()?))
        });
        named.collect::<Result<_, _>>().map(HandedOver)
    }
}

impl HandedOver {
    /// Whether `file`, found under this number, is what the launcher hands over.
    fn names(&self, number: i32, file: &OwnedFd) -> io::Result<bool> {
        let is = fstat(file)?;
        Ok(self.0.contains(&(number, is.st_dev, is.st_ino)))
    }
}

/// A descriptor of the file under `number`, which this process has inherited: the caller's alone.
/// No child inherits either of the two. The number is closed if the launcher hands it over, and
/// stays open for whoever else may use it otherwise, as standard streams do.
///
/// # Errors
/// The system's own, where there is no such descriptor, or one that was not inherited: one that
/// this process has opened itself, or that was asked for before.
pub(crate) fn descriptor(number: i32, handed_over: &HandedOver) -> io::Result<OwnedFd> {
    let asked = |answer: i32| match answer {
        0.. => Ok(answer),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: the call reads and writes no memory of this process, and looks up `number` itself:
    // where it is not open, nothing happens and an error comes back.
    let flags = asked(unsafe { libc::fcntl(number, libc::F_GETFD) })?;
    let is_standard = STANDARD.contains(&number);
    if flags & libc::FD_CLOEXEC != 0 && !is_standard {
        let why = "a descriptor that this process has not inherited";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    // SAFETY: as of the call above.
    let own = asked(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, STANDARD.end) })?;
    // SAFETY: the kernel has just made this descriptor for this call, so nobody else owns it.
    let own = unsafe { OwnedFd::from_raw_fd(own) };
    if is_standard {
        return Ok(own);
    }
    // SAFETY: as of the first call.
    asked(unsafe { libc::fcntl(number, libc::F_SETFD, flags | libc::FD_CLOEXEC) })?;
    if handed_over.names(number, &own)? {
        // SAFETY: the number is that of the very file which the launcher names for it, as was just
        // found, so it came with exec and is this process's to close. It is closed once: it was
        // not closed on exec before, and is from here on.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::{AsRawFd, IntoRawFd};

    use rustix::io::{FdFlags, fcntl_getfd};
    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    /// What a launcher says of this descriptor.
    fn named(number: i32, file: &impl std::os::fd::AsFd) -> HandedOver {
        let is = fstat(file).expect("it is open");
        let said = format!("9:1:1 {number}:{}:{}", is.st_dev, is.st_ino);
        said.parse().expect("numbers")
    }

    /// As a C library may open one.
    fn inheritable_pipe() -> (OwnedFd, File) {
        let (reads, writes) = pipe_with(PipeFlags::empty()).expect("a pipe");
        (reads, File::from(writes))
    }

    #[test]
    fn what_is_inherited_is_taken_once_passed_to_no_child_and_closed_at_the_end() {
        let (reads, mut writes) = inheritable_pipe();
        let handed_over = named(reads.as_raw_fd(), &reads);
        let number = reads.into_raw_fd();
        let own = descriptor(number, &handed_over).expect("it is open");
        assert!(fcntl_getfd(&own).expect("flags").contains(FdFlags::CLOEXEC));
        assert!(descriptor(number, &handed_over).is_err(), "it was taken");
        let mut own = File::from(own);
        writes.write_all(b"x").expect("somebody reads");
        own.read_exact(&mut [0]).expect("a byte");
        drop(own);
        let nobody = writes.write_all(b"x").expect_err("nobody reads");
        assert_eq!(nobody.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn what_no_launcher_hands_over_stays_open_for_who_else_has_it() {
        let (reads, mut writes) = inheritable_pipe();
        let number = reads.as_raw_fd();
        let another = named(number, &File::open("/dev/null").expect("a file"));
        for handed_over in [HandedOver::default(), another] {
            rustix::io::fcntl_setfd(&reads, FdFlags::empty()).expect("it is open");
            drop(descriptor(number, &handed_over).expect("it may be inherited"));
            let again = descriptor(number, &handed_over).expect_err("it was taken");
            assert_eq!(again.kind(), io::ErrorKind::InvalidInput);
            let flags = fcntl_getfd(&reads).expect("it is still open");
            assert!(flags.contains(FdFlags::CLOEXEC));
        }
        writes.write_all(b"x").expect("somebody reads");
        let mut reads = File::from(reads);
        reads.read_exact(&mut [0]).expect("a byte");
    }

    #[test]
    fn what_this_process_has_opened_is_not_taken_from_it() {
        let file = File::open("/dev/null").expect("a file");
        let number = file.as_raw_fd();
        let refused = descriptor(number, &named(number, &file));
        let refused = refused.expect_err("it was not inherited");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        assert!(file.metadata().is_ok());
        let none = HandedOver::default();
        assert!(descriptor(987_654, &none).is_err());
        // Standard streams stay.
        let standard_error = named(2, &std::io::stderr());
        drop(descriptor(2, &standard_error).expect("the standard error"));
        drop(descriptor(2, &standard_error).expect("the standard error"));
    }

    #[test]
    fn what_a_launcher_says_of_descriptors_is_numbers() {
        let said: HandedOver = " 3:1:77  4:18446744073709551615:0".parse().unwrap();
        assert_eq!(said, HandedOver(vec![(3, 1, 77), (4, u64::MAX, 0)]));
        assert_eq!("".parse(), Ok(HandedOver::default()));
        for wrong in ["3", "3:1", "3:1:x", "3:1:2:4", ":1:2"] {
            assert!(wrong.parse::<HandedOver>().is_err(), "{wrong}");
        }
    }
}
