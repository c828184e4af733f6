use crate::atomic::{AtomicBool, Ordering};

/// What threads sleep at, as at an eventfd: once raised it is up, and lets nobody sleep, until it
/// is lowered.
pub(super) trait Event {
    fn raise(&self);
    fn lower(&self);
}

/// An event beside a flag, so that one which is up already is not raised again.
pub(super) struct FlaggedEvent<E> {
    event: E,
    rung: AtomicBool,
}

impl<E: Event> FlaggedEvent<E> {
    pub fn new(event: E) -> Self {
        FlaggedEvent {
            event,
            rung: AtomicBool::new(false),
        }
    }

    pub fn event(&self) -> &E {
        &self.event
    }

    /// Ends the sleep of one who sleeps, or the next.
    pub fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.event.raise();
        }
    }

    /// Whether it was rung since the last time; then it is silent again.
    pub fn heard(&self) -> bool {
        let heard = self.rung.load(Ordering::Acquire);
        if heard {
            self.silence();
        }
        heard
    }

    /// Sleeps as `sleep` does, which says whether the event is up; whether it was rung.
    pub fn wait(&self, sleep: impl FnOnce() -> bool) -> bool {
        if self.heard() {
            return true;
        }
        let up = sleep();
        if up {
            self.silence();
        }
        up
    }

    /// The event goes down before the flag says so. The other way round it could take down with it
    /// what was raised in between; then the flag would say that it is up, nobody would raise it
    /// again, and who sleeps at it beside this thread would sleep on.
    fn silence(&self) {
        if planted_flag_first() {
            self.rung.swap(false, Ordering::AcqRel);
            self.event.lower();
        } else {
            self.event.lower();
            self.rung.swap(false, Ordering::AcqRel);
        }
    }
}

#[cfg(all(test, loom))]
std::thread_local! {
    /// Whether this test's model, all of whose threads loom runs on this one, has the error.
    pub(super) static FLAG_FIRST: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// An error that the model checker must find, where it plants it.
#[cfg(all(test, loom))]
fn planted_flag_first() -> bool {
    FLAG_FIRST.get()
}

#[cfg(not(all(test, loom)))]
const fn planted_flag_first() -> bool {
    false
}
