use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// What ends a park: an eventfd beside a flag, so that a port which nobody waits at is rung
/// without a system call more than once.
pub(crate) struct Bell {
    event: OwnedFd,
    rung: AtomicBool,
}

impl Bell {
    pub fn new() -> io::Result<Bell> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Bell {
            event,
            rung: AtomicBool::new(false),
        })
    }

    /// Ends the wait of whoever is in [`wait`](Bell::wait), or the next.
    pub fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            // The only way to fail is a counter that is full, and then it is readable.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// Whether it was rung since the last time; then it is silent again.
    pub fn heard(&self) -> bool {
        let heard = self.rung.swap(false, Ordering::AcqRel);
        if heard {
            self.silence();
        }
        heard
    }

    /// Waits until the bell is rung, one of `others` is ready, or `at_most` is over.
    pub fn wait<'a>(
        &'a self,
        others: impl IntoIterator<Item = (BorrowedFd<'a>, PollFlags)>,
        at_most: Duration,
    ) {
        if self.heard() {
            return;
        }
        let mut fds = vec![PollFd::from_borrowed_fd(self.event.as_fd(), PollFlags::IN)];
        fds.extend(
            others
                .into_iter()
                .map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)),
        );
        // A signal ends the wait early, which a park may.
        let _ = poll(&mut fds, Some(&timespec(at_most)));
        if !fds[0].revents().is_empty() {
            self.rung.store(false, Ordering::Release);
            self.silence();
        }
    }

    fn silence(&self) {
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// As the kernel wants it; what it cannot say is a very long time.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(Timespec {
        tv_sec: i32::MAX.into(),
        tv_nsec: 0,
    })
}
