//! Whether other threads want the cores of those that wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dhole_net::Waiting;

/// For how long cores are taken for crowded, in sleeps of a service thread.
const LASTS: u32 = 25;

/// What threads that wait have learned from their yields. A yield that has another thread run for
/// as long as a spin gives the core away for long: after one the threads yield no more for a while.
#[derive(Default)]
pub(crate) struct Crowd {
    until_ns: AtomicU64,
}

impl Crowd {
    /// Until when the cores are taken for crowded.
    pub fn until(&self) -> Duration {
        Duration::from_nanos(self.until_ns.load(Ordering::Relaxed))
    }

    /// The cores are taken for crowded until then.
    pub fn is_until(&self, until: Duration) {
        if until != self.until() {
            let ns = until.as_nanos() as u64;
            self.until_ns.store(ns, Ordering::Relaxed);
        }
    }

    /// The time until which they are, after a yield that was too long and ended now.
    pub fn after(how: Waiting, now: Duration) -> Duration {
        now + how.sleep * LASTS
    }

    /// A thread that waits looks until it is `done`, for as long as a spin, and yields in between
    /// unless the cores are crowded. Whether it is done.
    pub fn wait_until(
        &self,
        how: Waiting,
        clock: &dyn Fn() -> Duration,
        done: &mut dyn FnMut() -> bool,
    ) -> bool {
        let began = clock();
        let crowded = began < self.until();
        let mut yielded = None;
        loop {
            if done() {
                return true;
            }
            let now = clock();
            if yielded.is_some_and(|yielded| now - yielded >= how.spin) {
                self.is_until(Crowd::after(how, now));
            }
            if crowded || now - began >= how.spin {
                return false;
            }
            yielded = Some(now);
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const US: Duration = Duration::from_micros(1);

    /// Looks of a thread that waits in vain, of which each takes a microsecond, and each yield so
    /// long.
    fn looks(crowd: &Crowd, time: &Cell<Duration>, a_yield: Duration) -> u32 {
        let looks = Cell::new(0_u32);
        let clock = || {
            let yields = looks.get().saturating_sub(1);
            time.get() + looks.get() * US + yields * a_yield
        };
        let done = crowd.wait_until(Waiting::default(), &clock, &mut || {
            looks.set(looks.get() + 1);
            false
        });
        time.set(clock());
        assert!(!done);
        looks.get()
    }

    #[test]
    fn after_a_long_yield_a_thread_looks_once_and_sleeps_for_a_while() {
        let (crowd, time, how) = (Crowd::default(), Cell::new(US), Waiting::default());
        assert_eq!(looks(&crowd, &time, Duration::ZERO), 100);
        assert_eq!(crowd.until(), Duration::ZERO);
        // Another thread runs for three milliseconds.
        assert_eq!(looks(&crowd, &time, 3_000 * US), 2);
        assert_eq!(crowd.until(), time.get() + how.sleep * LASTS);
        assert_eq!(looks(&crowd, &time, Duration::ZERO), 1);
        time.set(crowd.until());
        assert_eq!(looks(&crowd, &time, Duration::ZERO), 100);
        let clock = || time.get();
        assert!(crowd.wait_until(how, &clock, &mut || true));
    }
}
