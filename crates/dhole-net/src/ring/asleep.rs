use std::sync::PoisonError;

use super::Ring;
use crate::atomic::{AtomicU64, Mutex, Ordering};

/// The threads of this process that sleep until a peer rings, as its peers see them in the rings.
///
/// More than one may sleep at a port for a moment. Who gets up then says to the peers that somebody
/// sleeps on.
pub(crate) struct Asleep {
    threads: Mutex<u32>,
}

impl Asleep {
    pub fn new() -> Self {
        Asleep {
            threads: Mutex::new(0),
        }
    }

    /// One more lies down: those who write into `incoming` are to ring. A barrier must follow, and
    /// then a look whether something is there already.
    pub fn lie_down<'a>(&self, incoming: impl Iterator<Item = Ring<'a>>) {
        self.say(1, incoming);
    }

    /// One gets up, and has heard the rings so far. Whether others sleep on: then a barrier must
    /// follow, before what has come is taken.
    pub fn get_up<'a>(&self, incoming: impl Iterator<Item = Ring<'a>>) -> bool {
        self.say(-1, incoming)
    }

    /// Under the lock, so that nobody lies down between the count and what is said of it.
    fn say<'a>(&self, by: i32, incoming: impl Iterator<Item = Ring<'a>>) -> bool {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        *threads = threads.saturating_add_signed(by);
        let anybody = *threads > 0;
        for ring in incoming {
            // Read as well as written, as by who rings: so it is what was written last that is
            // changed, and what is said here is never older than a flag that was taken before.
            ring.reader_parked()
                .swap(u64::from(anybody), Ordering::Relaxed);
        }
        anybody
    }
}

impl Ring<'_> {
    /// After something was written, and a barrier: whether the reader sleeps and is to be rung.
    pub fn rouses_reader(&self) -> bool {
        rouses(self.reader_parked())
    }

    /// After something was read, and a barrier: whether the writer sleeps for want of room and is
    /// to be rung.
    pub fn rouses_writer(&self) -> bool {
        rouses(self.writer_waits())
    }
}

fn rouses(sleeps: &AtomicU64) -> bool {
    sleeps.load(Ordering::Relaxed) != 0 && sleeps.swap(0, Ordering::Relaxed) != 0
}
