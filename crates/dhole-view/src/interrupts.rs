//! What runs on a thread while it waits: handlers of signals that a program has put off, because
//! they have interrupted the thread within a lock of dhole's. A thread that waits has none, between
//! two steps of its wait.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Duration;

/// Where the system's signal comes just before a thread falls asleep, it sleeps for so long at
/// most: so soon it looks again, where there are handlers.
pub(crate) const LOOKS: Duration = Duration::from_millis(20);

/// How a program puts off what interrupts its threads.
#[derive(Clone, Copy, Debug)]
pub struct Interrupts {
    /// Whether the program has handlers of signals at all.
    pub are_on: fn() -> bool,
    /// Whether something has been put off on this thread.
    pub is_due: fn() -> bool,
    /// Runs what has been put off on this thread. It takes no locks of [`sync`](crate::sync) for
    /// which it would wait.
    pub run: fn(),
}

static INTERRUPTS: OnceLock<Interrupts> = OnceLock::new();

thread_local! {
    /// How often something was run on this thread while it waited.
    static RUN: Cell<u64> = const { Cell::new(0) };
}

/// Has what a program puts off run while its threads wait. Whether it is the first to ask.
pub fn interrupt_by(interrupts: Interrupts) -> bool {
    INTERRUPTS.set(interrupts).is_ok()
}

/// Whether the program has handlers of signals.
pub(crate) fn are_on() -> bool {
    INTERRUPTS.get().is_some_and(|it| (it.are_on)())
}

/// Whether something is to be run on this thread, which waits.
pub(crate) fn is_due() -> bool {
    INTERRUPTS.get().is_some_and(|it| (it.is_due)())
}

/// Runs what was put off on this thread, if something was. The thread has no lock of dhole's.
pub fn run_interrupts() {
    if let Some(interrupts) = INTERRUPTS.get()
        && (interrupts.is_due)()
    {
        RUN.set(RUN.get() + 1);
        (interrupts.run)();
    }
}

/// How often something was run on this thread while it waited.
pub(crate) fn count() -> u64 {
    RUN.get()
}
