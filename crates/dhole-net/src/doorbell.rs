mod flagged_event;
#[cfg(all(test, loom))]
pub(crate) mod model;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dhole_model::unpoisoned::lock;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use self::flagged_event::{Event, FlaggedEvent};
use crate::Owed;

/// A thread to which a ring is owed looks so often whether it is owed still: another thread may do
/// what the ring was for.
const LOOKS: Duration = Duration::from_millis(1);

/// What ends a park: an eventfd beside a flag, so that a port which nobody waits at is rung
/// without a system call more than once.
pub struct Doorbell {
    event: FlaggedEvent<EventFd>,
    owed: Mutex<Option<Owed>>,
    lost: AtomicU64,
}

struct EventFd(OwnedFd);

impl Event for EventFd {
    fn raise(&self) {
        // The only way to fail is a counter that is full, and then it is readable.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    fn lower(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl Doorbell {
    pub fn new() -> io::Result<Doorbell> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let event = FlaggedEvent::new(EventFd(event));
        Ok(Doorbell {
            event,
            owed: Mutex::default(),
            lost: AtomicU64::new(0),
        })
    }

    /// Counts from here on the rings that are owed and do not come.
    pub fn owe(&self, owed: Owed) {
        *lock(&self.owed) = Some(owed);
    }

    /// How many rings were [owed](Doorbell::owe) to a thread whose wait was over by its time, and
    /// did not come.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Ends the wait of whoever is in [`wait`](Doorbell::wait), or the next. Of two who are, one.
    pub fn ring(&self) {
        self.event.ring();
    }

    /// Whether it was rung since the last time; then it is silent again.
    pub fn heard(&self) -> bool {
        self.event.heard()
    }

    /// Waits until the doorbell is rung, one of `others` is ready, or `at_most` is over; whether it
    /// was rung. Where something `has_come` one of them was to end the wait.
    pub fn wait<'a>(
        &'a self,
        others: impl IntoIterator<Item = (BorrowedFd<'a>, PollFlags)>,
        at_most: Duration,
        has_come: impl Fn() -> bool,
    ) -> bool {
        self.wait_looking(others, at_most, (at_most, || true), has_come)
    }

    /// As [`wait`](Doorbell::wait), or until `look` finds something, which is asked `every` so
    /// often.
    pub fn wait_looking<'a>(
        &'a self,
        others: impl IntoIterator<Item = (BorrowedFd<'a>, PollFlags)>,
        at_most: Duration,
        (every, look): (Duration, impl Fn() -> bool),
        has_come: impl Fn() -> bool,
    ) -> bool {
        self.event.wait(|| {
            let mut fds = vec![PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN)];
            fds.extend(
                others
                    .into_iter()
                    .map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)),
            );
            let mut left = at_most;
            loop {
                let next = left.min(every);
                left -= next;
                // A signal ends the wait early, which a park may.
                let timed_out = poll(&mut fds, Some(&timespec(next))) == Ok(0);
                if timed_out && left.is_zero() {
                    self.awaits_ring(&mut fds, &has_come);
                }
                if !timed_out || left.is_zero() || look() {
                    return !fds[0].revents().is_empty();
                }
            }
        })
    }
}

impl Doorbell {
    /// A wait is over by its time. If a ring is owed it is on its way, or lost.
    fn awaits_ring(&self, fds: &mut [PollFd<'_>], has_come: &dyn Fn() -> bool) {
        let owed = lock(&self.owed);
        let Some(owed) = &*owed else {
            return;
        };
        let mut left = owed.within;
        while (owed.is_owed)() || has_come() {
            if left.is_zero() {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let next = left.min(LOOKS);
            left -= next;
            if poll(fds, Some(&timespec(next))).is_ok_and(|ready| ready > 0) {
                return;
            }
        }
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.event().0.as_fd()
    }
}

/// As the kernel wants it; what it cannot say is a very long time.
pub fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(Timespec {
        tv_sec: i32::MAX.into(),
        tv_nsec: 0,
    })
}
