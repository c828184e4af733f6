use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::PollFlags;

/// A port whose sleep may be shared with that of another port: one wait for the descriptors of
/// both.
pub(crate) trait Sleeper {
    /// Begins a sleep, and adds what may end it to `wakers`; how long it may last, or none where
    /// there is something to do.
    fn lie_down<'a>(
        &'a self,
        sleep: Sleep,
        at_most: Duration,
        wakers: &mut Wakers<'a>,
    ) -> Option<Duration>;

    /// Ends the sleep, also one that was over at once.
    fn get_up(&self, sleep: Sleep);
}

/// How a thread sleeps in a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sleep {
    /// Whatever comes wakes it.
    Light,
    /// What is [sent at leisure](crate::Port::send_lazy) does not.
    Sound,
}

/// Who sleeps soundly looks this often whether something has come at leisure: a sleep that goes on
/// costs the time of a system call.
const SOON: Duration = Duration::from_millis(4);

impl Sleep {
    /// How often who sleeps so looks for what does not wake it.
    pub fn looks_every(self) -> Duration {
        match self {
            Sleep::Light => Duration::MAX,
            Sleep::Sound => SOON,
        }
    }
}

/// Descriptors, and what of each is waited for.
pub(crate) type Wakers<'a> = Vec<(BorrowedFd<'a>, PollFlags)>;
