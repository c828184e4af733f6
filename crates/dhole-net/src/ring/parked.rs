use std::sync::PoisonError;

use super::{Planted, Ring, planted};
use crate::atomic::{AtomicU64, Mutex, Ordering};
use crate::parker::Park;

/// Said to the peers: a thread is parked finely.
const FINE: u64 = 1;
/// A thread is parked coarsely.
const COARSE: u64 = 2;

/// The threads of this process that are parked until a peer rings, as its peers see them in the
/// rings.
///
/// More than one may be parked at a port for a moment. A thread that wakes then says to the peers
/// that another is still parked.
pub(crate) struct ParkedThreads {
    threads: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    fine: u32,
    coarse: u32,
}

impl ParkedThreads {
    pub fn new() -> Self {
        ParkedThreads {
            threads: Mutex::new(Threads::default()),
        }
    }

    /// One more thread parks: those who write into `incoming` are to ring. A barrier must follow,
    /// and then a look whether something is there already.
    pub fn prepare_park<'a>(&self, park: Park, incoming: impl Iterator<Item = Ring<'a>>) {
        self.say(park, 1, incoming);
    }

    /// One wakes, and has heard the rings so far. Whether others are still parked: then a barrier
    /// must follow, before what has come is taken.
    pub fn finish_park<'a>(&self, park: Park, incoming: impl Iterator<Item = Ring<'a>>) -> bool {
        self.say(park, -1, incoming)
    }

    /// Does something unless a thread is parked; none parks meanwhile.
    pub fn unless_any(&self, does: impl FnOnce()) {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.fine == 0 && threads.coarse == 0 {
            does();
        }
    }

    /// Under the lock, so that no thread parks between the count and what is said of it.
    fn say<'a>(&self, park: Park, by: i32, incoming: impl Iterator<Item = Ring<'a>>) -> bool {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let alike = match park {
            Park::Fine => &mut threads.fine,
            Park::Coarse => &mut threads.coarse,
        };
        *alike = alike.saturating_add_signed(by);
        let said = |threads: u32, flag| if threads > 0 { flag } else { 0 };
        let flags = said(threads.fine, FINE) | said(threads.coarse, COARSE);
        for ring in incoming {
            // Read as well as written, as by who rings: so it is what was written last that is
            // changed, and what is said here is never older than a flag that was taken before.
            ring.reader_parked().swap(flags, Ordering::Relaxed);
        }
        flags != 0
    }
}

impl Ring<'_> {
    /// After something was written, and a barrier: whether the reader is parked, at most so
    /// coarsely, and is to be rung.
    #[inline]
    pub fn notifies_reader(&self, at_most: Park) -> bool {
        let asks = match at_most {
            Park::Fine => FINE,
            Park::Coarse => FINE | COARSE,
        };
        notifies(self.reader_parked(), asks)
    }

    /// After something was read, and a barrier: whether the writer is parked for want of room and
    /// is to be rung.
    #[inline]
    pub fn notifies_writer(&self) -> bool {
        notifies(self.writer_waits(), u64::MAX)
    }
}

/// Takes all that is said where some of it asks for a ring: who has taken it is to ring, also
/// where another thread parked meanwhile.
#[inline]
fn notifies(parked: &AtomicU64, asks: u64) -> bool {
    if parked.load(Ordering::Relaxed) & asks == 0 {
        return false;
    }
    let taken = parked.swap(0, Ordering::Relaxed);
    match planted(Planted::TakenInSilence) {
        true => taken & asks != 0,
        false => taken != 0,
    }
}
