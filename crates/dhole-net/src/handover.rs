//! One port for two threads of a process: a *worker*, which takes what comes while it waits, and a
//! *service thread*, which does so while the worker computes.
//!
//! One of them sleeps in the port at a time. Who is to be woken there is the one or the other, so
//! the one that keeps away is told when it is its turn again.

#[cfg(all(test, loom))]
mod model;
mod sleep_slot;

use self::sleep_slot::SleepSlot;
use crate::atomic::{AtomicBool, Ordering, fence};

/// What worker and service thread hand their port to each other with.
///
/// `unpark` ends the sleep of who is in the port, or the next, as [`Port::unpark`] does.
///
/// [`Port::unpark`]: crate::Port::unpark
#[derive(Default)]
pub struct Handover {
    woken: AtomicBool,
    /// The worker rests in the port.
    resting: AtomicBool,
    /// The thread that sleeps in the port has this.
    slot: SleepSlot,
    over: AtomicBool,
}

impl Handover {
    /// Nothing of what was before is left: nobody was woken, and it is not over.
    pub fn begin(&self) {
        self.woken.store(false, Ordering::SeqCst);
        self.over.store(false, Ordering::SeqCst);
    }

    /// The worker has come to its end, and nobody is to serve any more. The service thread is to be
    /// unparked as well.
    pub fn end(&self, unpark: impl FnOnce()) {
        self.over.store(true, Ordering::SeqCst);
        if !planted(Planted::EndsInSilence) {
            unpark();
        }
    }

    /// Whether the worker has come to its end.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Wakes the worker: its wait may be over.
    pub fn wake(&self, unpark: impl FnOnce()) {
        self.woken.store(true, Ordering::Release);
        // One of the two sees the other: here that it rests, or there that it is woken.
        if !planted(Planted::NoBarrier) {
            fence(Ordering::SeqCst);
        }
        if self.resting.load(Ordering::Relaxed) {
            unpark();
        }
    }

    /// Whether the worker was woken, and does not know it yet.
    pub fn is_woken(&self) -> bool {
        self.woken.load(Ordering::SeqCst)
    }

    /// Whether the worker was woken since the last time.
    pub fn take_wake(&self) -> bool {
        self.woken.load(Ordering::Acquire) && self.woken.swap(false, Ordering::AcqRel)
    }

    /// Whether the worker rests, and the service thread is to park until it is told.
    pub fn is_resting(&self) -> bool {
        self.resting.load(Ordering::SeqCst)
    }

    /// The worker rests in the port: `sleep` looks whether there is something, or
    /// [it was woken](Handover::take_wake), before each time that it parks there. Afterwards
    /// `serve` tells the service thread, which may have parked meanwhile.
    pub fn rest<R>(
        &self,
        unpark: impl FnOnce(),
        sleep: impl FnOnce() -> R,
        serve: impl FnOnce(),
    ) -> R {
        self.resting.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let slot = self.slot.try_take().unwrap_or_else(|| {
            if !planted(Planted::NobodyUnparks) {
                unpark();
            }
            self.slot.take()
        });
        let slept = sleep();
        drop(slot);
        self.resting.store(false, Ordering::SeqCst);
        if !planted(Planted::NobodyServes) {
            serve();
        }
        slept
    }

    /// The service thread parks in the port, unless the worker rests there or it is over; whether
    /// it did. Then it is to take what has come.
    pub fn sleep(&self, park: impl FnOnce()) -> bool {
        let _slot = self.slot.take();
        let sleeps = !self.is_resting() && !self.is_over();
        if sleeps {
            park();
        }
        sleeps
    }
}

/// Errors that the model checker must find, where it plants them.
#[cfg_attr(
    not(all(test, loom)),
    expect(dead_code, reason = "planted by the model")
)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Planted {
    Nothing,
    /// Who wakes the worker may not see that it rests, nor the worker that it is woken.
    NoBarrier,
    /// The service thread sleeps on where the worker wants to rest.
    NobodyUnparks,
    /// The service thread is not told that the worker has rested.
    NobodyServes,
    /// A service thread that sleeps in the port is not told that it is over.
    EndsInSilence,
}

#[cfg(all(test, loom))]
fn planted(error: Planted) -> bool {
    model::PLANTED.get() == error
}

#[cfg(not(all(test, loom)))]
const fn planted(_error: Planted) -> bool {
    false
}
