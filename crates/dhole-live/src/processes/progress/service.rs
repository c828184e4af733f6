//! When the service thread serves: a state machine without clock or thread.

use std::time::Duration;

use dhole_net::Waiting;

/// What a service thread does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum State {
    /// It sleeps in the port until something comes, and takes that.
    Attached,
    /// It stays away from the port for so long, for the worker polls often.
    BackingOff(Duration),
    /// It sleeps until it is told, for the worker is parked in the port.
    Sleeping,
}

/// What a service thread knows of its worker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Seen {
    /// The worker is parked in the port.
    pub parked: bool,
    /// It is in the runtime.
    pub inside: bool,
    /// How often it has waited, or taken something while it did.
    pub waits: u64,
}

/// The service thread stays away at first for the longest time halved so many times, which is a
/// tenth of a millisecond unless set: ten times as long as it takes to wake it.
const DOUBLINGS: u32 = 3;
/// A worker that waited so often for each of the shortest times takes what comes soon enough: the
/// service thread stays away once more, twice as long, and expects twice as many waits.
const OFTEN: u64 = 2;

/// A service thread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Service {
    how: Waiting,
    /// How often the worker had waited when that was last asked.
    waits: u64,
    /// There was nothing to take when it last served.
    in_vain: bool,
    /// How long it has stayed away in a row, while the worker took nothing.
    alone: Duration,
    /// Its last time away was doubled so many times.
    doubled: u32,
    /// How long it was attached since it last asked how often the worker had waited.
    slept: Duration,
}

impl Service {
    /// One of a node that waits so.
    pub fn new(how: Waiting) -> Service {
        Service {
            how,
            waits: 0,
            in_vain: false,
            alone: Duration::ZERO,
            doubled: 0,
            slept: Duration::ZERO,
        }
    }

    /// The shortest time away.
    fn least(&self) -> Duration {
        self.how.backoff / (1 << DOUBLINGS)
    }

    /// What it does next, of a worker that does this.
    pub fn next(&mut self, seen: Seen) -> State {
        if seen.parked {
            return State::Sleeping;
        }
        let came = seen.waits.wrapping_sub(self.waits);
        let each = self.least().as_nanos().max(1);
        let times = (std::mem::take(&mut self.slept).as_nanos() / each) as u64;
        let often = came >= (OFTEN << self.doubled).max(OFTEN.saturating_mul(times));
        self.doubled = if often {
            DOUBLINGS.min(self.doubled + 1)
        } else {
            0
        };
        let polls_soon = seen.inside || often || (self.in_vain && came > 0);
        if !polls_soon {
            return State::Attached;
        }
        let away = self.least() * (1 << self.doubled);
        // A call in which the program computes may be long: then the others still hear of this
        // process, and what was sent lazily is taken.
        self.alone = match came {
            0 => self.alone + away,
            _ => Duration::ZERO,
        };
        self.waits = seen.waits;
        if self.alone > self.how.sleep {
            return State::Attached;
        }
        State::BackingOff(away)
    }

    /// It has taken so much after it was attached for a time, of a worker that had waited so often
    /// before that.
    pub fn served(&mut self, waits: u64, taken: usize, slept: Duration) {
        self.waits = waits;
        self.slept = slept;
        self.in_vain = taken == 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_micros(100);

    fn service() -> Service {
        let service = Service::new(Waiting::default());
        assert_eq!(service.least(), LEAST);
        service
    }

    /// Of a worker that is not parked.
    fn seen(waits: u64, inside: bool) -> Seen {
        Seen {
            parked: false,
            inside,
            waits,
        }
    }

    #[test]
    fn a_worker_that_takes_what_comes_needs_no_service_thread() {
        let mut service = service();
        // It waits, and takes something now and then.
        for waits in 1..400 {
            let next = service.next(seen(waits, true));
            assert!(matches!(next, State::BackingOff(_)), "{next:?}");
        }
        // Nothing comes, or it computes in a call, for as long as a sleep.
        for _ in 0..40 {
            let next = service.next(seen(399, true));
            assert_eq!(next, State::BackingOff(LEAST));
        }
        assert_eq!(service.next(seen(399, true)), State::Attached);
    }

    #[test]
    fn a_worker_that_waits_often_is_left_alone_longer() {
        let mut service = service();
        let mut waits = 0;
        for doubled in [1, 2, 3, 3] {
            waits += OFTEN << DOUBLINGS;
            let away = LEAST * (1 << doubled);
            assert_eq!(service.next(seen(waits, false)), State::BackingOff(away));
            assert!(away <= Waiting::default().backoff);
        }
        // It has to wait as often in a longer time.
        assert_eq!(service.next(seen(waits + OFTEN, false)), State::Attached);
        assert_eq!(
            self::service().next(seen(OFTEN - 1, false)),
            State::Attached
        );
    }

    #[test]
    fn a_worker_that_computes_is_served_at_once() {
        let mut service = service();
        assert_eq!(service.next(seen(0, false)), State::Attached);
        service.served(0, 0, LEAST);
        let next = service.next(seen(0, false));
        assert_eq!(next, State::Attached, "it has not waited since");
        let next = service.next(seen(1, false));
        assert_eq!(next, State::BackingOff(LEAST), "it took what came");
        service.served(1, 1, LEAST);
        let next = service.next(seen(2, false));
        assert_eq!(next, State::Attached, "it did not take what came");
    }

    #[test]
    fn who_waited_now_and_then_in_a_long_sleep_does_not_wait_often() {
        let mut service = service();
        let waits = 10 * OFTEN - 1;
        service.served(0, 1, 10 * LEAST);
        assert_eq!(service.next(seen(waits, false)), State::Attached);
        service.served(0, 1, 10 * LEAST);
        let next = service.next(seen(waits + 1, false));
        assert_eq!(next, State::BackingOff(2 * LEAST));
        // How long the sleep was counts once.
        let next = service.next(seen(waits + 1 + 2 * OFTEN, false));
        assert_eq!(next, State::BackingOff(4 * LEAST));
    }

    #[test]
    fn within_a_call_that_is_long_it_is_served_all_the_time() {
        let mut service = service();
        let away = |service: &mut Service| service.next(seen(0, true)) != State::Attached;
        let many = (0..1_000).take_while(|_| away(&mut service)).count();
        assert_eq!(many, 40);
        for _ in 0..10 {
            service.served(0, 0, LEAST);
            assert_eq!(service.next(seen(0, true)), State::Attached);
        }
        service.served(0, 1, LEAST);
        let next = service.next(seen(1, true));
        assert_ne!(next, State::Attached, "the call after it may be short");
    }

    #[test]
    fn it_sleeps_while_its_worker_is_parked() {
        let mut service = service();
        let parked = Seen {
            parked: true,
            ..Seen::default()
        };
        assert_eq!(service.next(parked), State::Sleeping);
        assert_eq!(service.next(seen(0, false)), State::Attached);
    }
}
