//! When the service thread keeps away from the port, though the worker does not rest there.

use std::time::Duration;

/// How long the service thread keeps away from the port after the worker was in the runtime.
const NAP: Duration = Duration::from_micros(100);
/// A worker that waited or took something so often during a nap, or in each nap's time of a sleep,
/// takes what comes soon enough: the service thread naps once more, twice as long, and looks for
/// twice as much of it then.
const OFTEN: u64 = 2;
/// A nap is doubled so many times at most.
const DOUBLINGS: u32 = 3;
/// After so many naps in a row during which the worker took nothing it serves all the same.
const MOST_NAPS: u32 = 64;

/// How long the service thread keeps away from the port.
#[derive(Default)]
pub(super) struct Naps {
    /// How often the worker had waited when it was last looked.
    seen: u64,
    /// There was nothing to take when it last served.
    in_vain: bool,
    /// Naps in a row during which the worker took nothing.
    alone: u32,
    /// The last nap was doubled so many times.
    doubled: u32,
    /// So many naps would have been over in the sleep since it was looked how often the worker had
    /// waited.
    slept: u64,
}

impl Naps {
    /// For how long a worker that has waited so often, and is inside or not, needs nobody to serve;
    /// `None` where it does.
    pub fn next(&mut self, waits: u64, inside: bool) -> Option<Duration> {
        let came = waits.wrapping_sub(self.seen);
        let often = came >= (OFTEN << self.doubled).max(OFTEN.saturating_mul(self.slept));
        self.slept = 0;
        self.doubled = if often {
            DOUBLINGS.min(self.doubled + 1)
        } else {
            0
        };
        let takes_soon = inside || often || (self.in_vain && came > 0);
        if !takes_soon {
            return None;
        }
        // A call in which the program computes may be long: then the others still hear of this
        // process.
        self.alone = if came == 0 { self.alone + 1 } else { 0 };
        self.seen = waits;
        (self.alone < MOST_NAPS).then_some(NAP * (1 << self.doubled))
    }

    /// The service thread has taken so much after it slept, of a worker that had waited so often
    /// before that.
    pub fn served(&mut self, waits: u64, taken: usize, slept: Duration) {
        self.seen = waits;
        self.slept = (slept.as_nanos() / NAP.as_nanos()) as u64;
        self.in_vain = taken == 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_takes_what_comes_needs_no_service_thread() {
        let mut naps = Naps::default();
        // It waits, and takes something now and then.
        for waits in 1..10 * u64::from(MOST_NAPS) {
            assert!(naps.next(waits, true).is_some());
        }
        // Nothing comes, or it computes in a call.
        let waits = 10 * u64::from(MOST_NAPS) - 1;
        for _ in 1..MOST_NAPS {
            assert_eq!(naps.next(waits, true), Some(NAP));
        }
        assert_eq!(naps.next(waits, true), None);
    }

    #[test]
    fn a_worker_that_waits_often_is_left_alone_longer() {
        let mut naps = Naps::default();
        let mut waits = 0;
        for doubled in [1, 2, 3, 3] {
            waits += OFTEN << DOUBLINGS;
            assert_eq!(naps.next(waits, false), Some(NAP * (1 << doubled)));
        }
        // It has to wait as often in a longer nap.
        assert_eq!(naps.next(waits + OFTEN, false), None);
        let mut naps = Naps::default();
        assert_eq!(naps.next(OFTEN - 1, false), None);
    }

    #[test]
    fn a_worker_that_computes_is_served_at_once() {
        let mut naps = Naps::default();
        assert_eq!(naps.next(0, false), None);
        naps.served(0, 0, NAP);
        assert_eq!(naps.next(0, false), None, "it has not waited since");
        assert_eq!(
            naps.next(1, false),
            Some(NAP),
            "it took what came, and may again"
        );
        naps.served(1, 1, NAP);
        assert_eq!(naps.next(2, false), None, "it did not take what came");
    }

    #[test]
    fn who_waited_now_and_then_in_a_long_sleep_does_not_wait_often() {
        let mut naps = Naps::default();
        let waits = 10 * OFTEN - 1;
        naps.served(0, 1, 10 * NAP);
        assert_eq!(naps.next(waits, false), None);
        naps.served(0, 1, 10 * NAP);
        assert_eq!(naps.next(waits + 1, false), Some(2 * NAP));
        // How long the sleep was counts once.
        assert_eq!(naps.next(waits + 1 + 2 * OFTEN, false), Some(4 * NAP));
    }

    #[test]
    fn within_a_call_that_is_long_it_is_served_all_the_time() {
        let mut naps = Naps::default();
        let many = (0..10 * MOST_NAPS).take_while(|_| naps.next(0, true).is_some());
        assert_eq!(many.count() as u32, MOST_NAPS - 1);
        for _ in 0..10 {
            naps.served(0, 0, NAP);
            assert_eq!(naps.next(0, true), None);
        }
        naps.served(0, 1, NAP);
        assert!(
            naps.next(1, true).is_some(),
            "the call after it may be short"
        );
    }
}
