//! Waiting for sockets, never for longer than was said.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Waits until one of them is ready; which are stands in their answers.
pub(crate) fn any(sockets: &mut [PollFd<'_>], at_most: Duration) -> io::Result<()> {
    let at_most = Timespec {
        tv_sec: at_most.as_secs().min(1 << 20) as i64,
        tv_nsec: i64::from(at_most.subsec_nanos()),
    };
    match poll(sockets, Some(&at_most)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Waits until it takes bytes.
pub(crate) fn writable(socket: &impl AsFd, at_most: Duration) -> io::Result<()> {
    any(&mut [PollFd::new(socket, PollFlags::OUT)], at_most)
}
