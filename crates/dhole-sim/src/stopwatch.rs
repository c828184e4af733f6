//! Measures how long a program computes on this host, without the time for which other programs had
//! its core.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The longest stretch of computation that the clock alone measures. A program that takes a core
/// away keeps it for longer, and reading the processor's clock is a system call.
const SHORT: Duration = Duration::from_micros(20);

/// A moment, on the clock and in processor time of this process.
#[derive(Clone, Copy)]
struct Moment {
    clock: Instant,
    processor: Duration,
}

impl Moment {
    fn now() -> Moment {
        // The process's and not the thread's: scoped threads that a node's program starts compute
        // for it while its own thread waits for them.
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Moment {
            clock: Instant::now(),
            processor: Duration::new(seconds, nanoseconds),
        }
    }
}

/// Starts stopwatches.
pub(crate) struct Stopwatches {
    /// Not longer than [`SHORT`] before the last stopwatch was started.
    last: Moment,
}

/// Runs while a program computes.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch {
    since: Instant,
    /// A moment shortly before.
    before: Moment,
}

impl Stopwatches {
    pub(crate) fn new() -> Stopwatches {
        Stopwatches {
            last: Moment::now(),
        }
    }

    /// Starts a stopwatch.
    pub(crate) fn start(&mut self) -> Stopwatch {
        let mut since = Instant::now();
        if since.duration_since(self.last.clock) > SHORT {
            self.last = Moment::now();
            since = self.last.clock;
        }
        Stopwatch {
            since,
            before: self.last,
        }
    }
}

impl Stopwatch {
    /// The computation since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        let elapsed = self.since.elapsed();
        if elapsed <= SHORT {
            return elapsed;
        }
        let now = Moment::now();
        computed(
            now.clock.duration_since(self.since),
            now.clock.duration_since(self.before.clock),
            now.processor.saturating_sub(self.before.processor),
        )
    }
}

/// Of a stretch of `elapsed` what the program computed, if this process had a processor for
/// `processor` in the time `clock` that began at most [`SHORT`] before it. Never less than what an
/// earlier look showed.
fn computed(elapsed: Duration, clock: Duration, processor: Duration) -> Duration {
    let taken_away = clock.saturating_sub(processor);
    elapsed.saturating_sub(taken_away).max(SHORT.min(elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    #[test]
    fn a_core_that_is_ones_own_charges_what_the_clock_shows() {
        assert_eq!(computed(us(500), us(510), us(510)), us(500));
    }

    #[test]
    fn time_for_which_others_had_the_core_is_not_charged() {
        assert_eq!(computed(us(5_000), us(5_010), us(1_010)), us(1_000));
    }

    #[test]
    fn several_threads_of_the_program_charge_the_clock_and_not_their_sum() {
        assert_eq!(computed(us(5_000), us(5_010), us(10_000)), us(5_000));
    }

    #[test]
    fn a_later_look_never_shows_less() {
        // The core is taken away right after the first look.
        assert_eq!(computed(us(21), us(30), us(9)), us(20));
        assert_eq!(computed(us(4_000), us(4_009), us(9)), us(20));
        assert_eq!(computed(us(4), us(4_009), us(9)), us(4));
    }
}
