//! The processor's clock.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of processor time by this clock.
pub(crate) fn processor_ns(clock: ClockId) -> Option<u64> {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let ns = u64::try_from(time.tv_nsec).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}
