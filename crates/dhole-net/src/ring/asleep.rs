use std::sync::PoisonError;

use super::{Planted, Ring, planted};
use crate::atomic::{AtomicU64, Mutex, Ordering};
use crate::sleeper::Sleep;

/// Said to the peers: somebody sleeps lightly.
const LIGHT: u64 = 1;
/// Somebody sleeps soundly.
const SOUND: u64 = 2;

/// The threads of this process that sleep until a peer rings, as its peers see them in the rings.
///
/// More than one may sleep at a port for a moment. Who gets up then says to the peers that somebody
/// sleeps on.
pub(crate) struct Asleep {
    threads: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    light: u32,
    sound: u32,
}

impl Asleep {
    pub fn new() -> Self {
        Asleep {
            threads: Mutex::new(Threads::default()),
        }
    }

    /// One more lies down: those who write into `incoming` are to ring. A barrier must follow, and
    /// then a look whether something is there already.
    pub fn lie_down<'a>(&self, sleep: Sleep, incoming: impl Iterator<Item = Ring<'a>>) {
        self.say(sleep, 1, incoming);
    }

    /// One gets up, and has heard the rings so far. Whether others sleep on: then a barrier must
    /// follow, before what has come is taken.
    pub fn get_up<'a>(&self, sleep: Sleep, incoming: impl Iterator<Item = Ring<'a>>) -> bool {
        self.say(sleep, -1, incoming)
    }

    /// Under the lock, so that nobody lies down between the count and what is said of it.
    fn say<'a>(&self, sleep: Sleep, by: i32, incoming: impl Iterator<Item = Ring<'a>>) -> bool {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let alike = match sleep {
            Sleep::Light => &mut threads.light,
            Sleep::Sound => &mut threads.sound,
        };
        *alike = alike.saturating_add_signed(by);
        let said = |threads: u32, flag| if threads > 0 { flag } else { 0 };
        let flags = said(threads.light, LIGHT) | said(threads.sound, SOUND);
        for ring in incoming {
            // Read as well as written, as by who rings: so it is what was written last that is
            // changed, and what is said here is never older than a flag that was taken before.
            ring.reader_parked().swap(flags, Ordering::Relaxed);
        }
        flags != 0
    }
}

impl Ring<'_> {
    /// After something was written, and a barrier: whether the reader sleeps, at most so soundly,
    /// and is to be rung.
    #[inline]
    pub fn notifies_reader(&self, at_most: Sleep) -> bool {
        let asks = match at_most {
            Sleep::Light => LIGHT,
            Sleep::Sound => LIGHT | SOUND,
        };
        notifies(self.reader_parked(), asks)
    }

    /// After something was read, and a barrier: whether the writer sleeps for want of room and is
    /// to be rung.
    #[inline]
    pub fn notifies_writer(&self) -> bool {
        notifies(self.writer_waits(), u64::MAX)
    }
}

/// Takes all that is said where some of it asks for a ring: who has taken it is to ring, also
/// where somebody else lay down meanwhile.
#[inline]
fn notifies(sleeps: &AtomicU64, asks: u64) -> bool {
    if sleeps.load(Ordering::Relaxed) & asks == 0 {
        return false;
    }
    let taken = sleeps.swap(0, Ordering::Relaxed);
    match planted(Planted::TakenInSilence) {
        true => taken & asks != 0,
        false => taken != 0,
    }
}
