use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::PollFlags;

/// A port whose park may be shared with that of another port: one wait for the descriptors of
/// both.
pub(crate) trait Parker {
    /// Begins a park, and adds what may end it to `wakers`; how long it may last, or none where
    /// there is something to do.
    fn prepare_park<'a>(
        &'a self,
        park: Park,
        at_most: Duration,
        wakers: &mut Wakers<'a>,
    ) -> Option<Duration>;

    /// Ends the park, also one that was over at once.
    fn finish_park(&self, park: Park);
}

/// How a thread parks in a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Park {
    /// Every frame wakes it.
    Fine,
    /// A frame that is [sent lazily](crate::Port::send_with) does not.
    Coarse,
}

/// Descriptors, and what of each is waited for.
pub(crate) type Wakers<'a> = Vec<(BorrowedFd<'a>, PollFlags)>;
