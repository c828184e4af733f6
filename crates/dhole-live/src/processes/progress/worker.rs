//! How a worker waits: a state machine without clock or thread.

use std::time::Duration;

use dhole_net::Waiting;

use crate::crowd::Crowd;

/// What a worker does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    /// It does not wait.
    Computing,
    /// It polls again and again.
    Spinning,
    /// It polls, and yields its core in between.
    Yielding,
    /// It sleeps in the port, and polls when something ends that.
    Parked,
}

/// What a worker that has polled in vain does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// It polls again.
    Spin,
    /// It yields, and polls.
    Yield,
    /// It notifies all nodes to which it owes that, and polls.
    Notify,
    /// It parks for so long at most, and polls.
    Park(Duration),
    /// It goes on, for its time is over.
    GiveUp,
}

/// The adaptive spin before a notification is at least this part of the whole: about as long as a
/// worker computes that polls often, between two rows of a grid say.
const LEAST_PATIENCE: u32 = 12;
/// It is doubled so many times at most: then it is about as long as it takes to wake a thread.
const MOST_DOUBLED: u8 = 2;
/// A parked worker polls by itself once in so many sleeps of a service thread: for what no frame
/// brings, as the loss of a peer. Nothing else relies on it.
pub(super) const BACKSTOP: u32 = 25;

/// How long a worker that owes notifications spins before it gives them. It learns from wait to
/// wait: longer where the answer came unasked, shorter where it did not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Patience {
    doubled: u8,
}

impl Patience {
    /// One that was doubled so many times.
    pub fn doubled(times: u8) -> Patience {
        let doubled = times.min(MOST_DOUBLED);
        Patience { doubled }
    }

    /// How often it is doubled.
    pub fn doublings(self) -> u8 {
        self.doubled
    }

    /// After a node answered by itself, or only when it was notified.
    pub fn learns(self, answered: bool) -> Patience {
        match answered {
            true => Patience::doubled(self.doubled + 1),
            false => Patience::doubled(self.doubled.saturating_sub(1)),
        }
    }

    /// How long the worker spins for it.
    pub fn lasts(self, how: &Waiting) -> Duration {
        how.spin / LEAST_PATIENCE * (1 << self.doubled)
    }
}

/// One wait of a worker.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Wait {
    state: State,
    how: Waiting,
    /// There is a core for each process.
    spins: bool,
    at_most: Option<Duration>,
    /// After this time the worker notifies, unless it has.
    patience: Option<Duration>,
    /// It owed notifications when it began.
    owes: bool,
    /// When it began.
    began: Option<Duration>,
    /// When something came last, or the worker began to yield.
    since: Duration,
    /// When it yielded last.
    yielded: Duration,
    /// It has yielded since it polled last.
    has_yielded: bool,
    /// Until then another thread wants its core.
    crowded_until: Duration,
    /// It has notified since it polled last.
    notified: bool,
    /// Whether the node that was asked answered by itself, once that is known.
    answered: Option<bool>,
}

impl Wait {
    /// A wait begins, of a time at most. Where notifications are owed, the worker has so much
    /// patience before it gives them; others may become owed while it waits.
    pub fn new(
        how: Waiting,
        spins: bool,
        at_most: Option<Duration>,
        owes: Option<Duration>,
    ) -> Wait {
        let spins = spins && !how.spin.is_zero();
        Wait {
            state: Wait::first(spins),
            how,
            spins,
            at_most,
            patience: Some(owes.unwrap_or(how.spin)),
            owes: owes.is_some(),
            began: None,
            since: Duration::ZERO,
            yielded: Duration::ZERO,
            has_yielded: false,
            crowded_until: Duration::ZERO,
            notified: false,
            answered: None,
        }
    }

    /// Until then the worker takes its core for crowded, as it learned in waits before.
    pub fn crowded_until(mut self, until: Duration) -> Wait {
        self.crowded_until = until;
        self
    }

    /// Until when the core is crowded, as far as is known now.
    pub fn is_crowded_until(&self) -> Duration {
        self.crowded_until
    }

    fn first(spins: bool) -> State {
        if spins {
            State::Spinning
        } else {
            State::Yielding
        }
    }

    /// When it began, if it has looked at the clock.
    pub fn began(&self) -> Option<Duration> {
        self.began
    }

    /// Whether the node that was asked answered by itself; `None` where that is not known.
    pub fn answered(&self) -> Option<bool> {
        self.answered
    }

    /// What came back from a yield only after as long as a spin had to wait for its core. Only
    /// where there is a core for each process: else the other thread is most often another node,
    /// whose answer the yield brings.
    fn learns_of_yield(&mut self, now: Duration) {
        let long = std::mem::take(&mut self.has_yielded) && now - self.yielded >= self.how.spin;
        if long && self.spins {
            self.crowded_until = Crowd::after(self.how, now);
        }
    }

    /// The worker yields.
    fn yields(&mut self, now: Duration) -> Next {
        (self.yielded, self.has_yielded) = (now, true);
        Next::Yield
    }

    /// The worker has polled, and its wait is over.
    pub fn done(&mut self, now: Duration) {
        self.learns_of_yield(now);
        // What is there already when the notification is out did not come of it: that takes longer.
        if self.owes && (self.patience.is_some() || self.notified) {
            self.answered = Some(true);
        }
        self.state = State::Computing;
    }

    /// The worker has polled, something has come or nothing, and its wait is not over. It began at
    /// `began` at the latest.
    pub fn polled(&mut self, came: bool, began: Duration, now: Duration) -> Next {
        if self.began.is_none() {
            (self.since, self.yielded) = (began, began);
        }
        let began = *self.began.get_or_insert(began);
        self.learns_of_yield(now);
        if came {
            // What has come is often followed by more.
            self.since = now;
            self.state = Wait::first(self.spins);
        }
        self.notified = false;
        let is_late = self.at_most.is_some_and(|at_most| now - began >= at_most);
        // Where another thread wants the core, polling keeps it from the node that has the answer,
        // perhaps, and a yield gives it away for long: then the worker parks soon.
        let crowded = now < self.crowded_until;
        let least = self.how.spin / LEAST_PATIENCE;
        let spin = if crowded { least } else { self.how.spin };
        let spun = now - self.since >= spin;
        let gives_up_spinning = spun || self.state != State::Spinning;
        // What else comes makes no worker wait longer for the node that it asked.
        if let Some(patience) = self.patience
            && (gives_up_spinning || (self.owes && (is_late || now - began >= patience)))
        {
            (self.patience, self.notified) = (None, true);
            self.answered = self.owes.then_some(false);
            return Next::Notify;
        }
        if is_late {
            self.state = State::Computing;
            return Next::GiveUp;
        }
        if self.state == State::Spinning && spun {
            (self.state, self.since) = (State::Yielding, now);
        } else if self.state == State::Yielding && spun {
            self.state = State::Parked;
        }
        if self.state == State::Yielding && crowded {
            self.state = State::Parked;
        }
        match self.state {
            State::Computing | State::Spinning => {
                // What is waited for may be done by a thread that has no core.
                match !crowded && now - self.yielded >= least {
                    true => self.yields(now),
                    false => Next::Spin,
                }
            }
            State::Yielding => self.yields(now),
            State::Parked => {
                let backstop = self.how.sleep * BACKSTOP;
                let left = self.at_most.map(|at_most| at_most - (now - began));
                Next::Park(left.map_or(backstop, |left| left.min(backstop)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    /// What a worker does that polls in vain every microsecond, until it parks or gives up; and
    /// when.
    fn does(wait: &mut Wait) -> Vec<(u32, Next)> {
        let mut all: Vec<(u32, Next)> = Vec::new();
        for time in 0..10_000 {
            let next = wait.polled(false, Duration::ZERO, US * time);
            if next != Next::Spin && all.last().is_none_or(|(_, last)| *last != next) {
                all.push((time, next));
            }
            if matches!(next, Next::Park(_) | Next::GiveUp) {
                return all;
            }
        }
        panic!("it goes on for ever: {all:?}");
    }

    #[test]
    fn a_worker_spins_then_yields_then_parks() {
        let how = Waiting::default();
        let backstop = how.sleep * BACKSTOP;
        let mut wait = Wait::new(how, true, None, None);
        assert_eq!(wait.state, State::Spinning);
        let notifies = |time| (time, Next::Notify);
        let yields = |time| (time, Next::Yield);
        let expected = [
            yields(9),
            notifies(100),
            yields(101),
            (201, Next::Park(backstop)),
        ];
        assert_eq!(does(&mut wait), expected);
        assert_eq!(wait.state, State::Parked);
        // Without a core for each it does not spin, and with no time to spin it parks at once.
        let mut wait = Wait::new(how, false, None, None);
        let expected = [notifies(0), yields(1), (100, Next::Park(backstop))];
        assert_eq!(does(&mut wait), expected);
        let spin = Duration::ZERO;
        let mut wait = Wait::new(Waiting { spin, ..how }, true, None, None);
        assert_eq!(does(&mut wait), [notifies(0), (1, Next::Park(backstop))]);
    }

    #[test]
    fn what_comes_has_a_worker_spin_again() {
        let mut wait = Wait::new(Waiting::default(), true, None, None);
        does(&mut wait);
        let next = wait.polled(true, Duration::ZERO, 1_000 * US);
        assert_eq!((next, wait.state), (Next::Yield, State::Spinning));
        let next = wait.polled(false, Duration::ZERO, 1_001 * US);
        assert_eq!((next, wait.state), (Next::Spin, State::Spinning));
    }

    #[test]
    fn a_worker_notifies_once_after_its_patience_and_before_it_is_over() {
        let how = Waiting::default();
        for (spins, at_most, notifies) in [
            (true, None, 9),
            (true, Some(5 * US), 5),
            (false, None, 0),
            (false, Some(5 * US), 0),
        ] {
            let owes = Patience::default().lasts(&how);
            let mut wait = Wait::new(how, spins, at_most, Some(owes));
            let done = does(&mut wait);
            let at: Vec<_> = done
                .iter()
                .filter(|(_, next)| *next == Next::Notify)
                .collect();
            assert_eq!(at, [&(notifies, Next::Notify)], "{done:?}");
            assert_eq!(wait.answered(), Some(false));
        }
        // Something else that comes makes it wait no longer for the node that it asked.
        let mut wait = Wait::new(how, true, None, Some(8 * US));
        for time in 0..8 {
            assert_ne!(wait.polled(true, Duration::ZERO, US * time), Next::Notify);
        }
        assert_eq!(wait.polled(true, Duration::ZERO, 8 * US), Next::Notify);
    }

    #[test]
    fn a_worker_whose_yield_took_long_parks_soon_from_then_on() {
        let how = Waiting::default();
        let at = |time| US * time;
        for is_done in [false, true] {
            let mut wait = Wait::new(how, true, None, None);
            assert_eq!(wait.polled(false, at(0), at(9)), Next::Yield);
            // Another thread had its core.
            match is_done {
                true => wait.done(at(3_009)),
                false => assert_eq!(wait.polled(false, at(0), at(3_009)), Next::Notify),
            }
            let until = wait.is_crowded_until();
            assert_eq!(until, Crowd::after(how, at(3_009)));
            if !is_done {
                let next = wait.polled(false, at(0), at(3_010));
                assert!(matches!(next, Next::Park(_)), "{next:?}");
            }
            // It spins for the least patience, and gives its core to no other by a yield.
            let mut wait = Wait::new(how, true, None, None).crowded_until(until);
            let next = does(&mut wait);
            let backstop = how.sleep * BACKSTOP;
            assert_eq!(next, [(9, Next::Notify), (10, Next::Park(backstop))]);
            // Then it looks whether that is so still.
            let mut wait = Wait::new(how, true, None, None).crowded_until(until);
            let later = until + US;
            assert_eq!(wait.polled(false, later, later + 9 * US), Next::Yield);
            assert_eq!(wait.polled(false, later, later + 10 * US), Next::Spin);
            assert_eq!(wait.is_crowded_until(), until);
        }
        // Without a core for each process, other nodes have the core meanwhile.
        let mut wait = Wait::new(how, false, None, None);
        assert_eq!(wait.polled(false, at(0), at(0)), Next::Notify);
        assert_eq!(wait.polled(false, at(0), at(0)), Next::Yield);
        wait.done(at(3_000));
        assert_eq!(wait.is_crowded_until(), at(0));
    }

    #[test]
    fn a_worker_learns_how_long_it_is_patient() {
        let how = Waiting::default();
        let lasts = |patience: Patience| patience.lasts(&how).as_micros();
        let mut patience = Patience::default();
        let mut all = vec![lasts(patience)];
        for answered in [false, true, true, true, false] {
            patience = patience.learns(answered);
            all.push(lasts(patience));
        }
        assert_eq!(all, [8, 8, 16, 33, 33, 16]);
        assert_eq!(Patience::doubled(patience.doublings()), patience);
        // An answer that lies there when the notification is out came by itself.
        for (late, answered) in [(0, true), (1, false)] {
            let mut wait = Wait::new(how, true, None, Some(US));
            assert_eq!(wait.polled(false, Duration::ZERO, US), Next::Notify);
            for time in 0..late {
                wait.polled(false, Duration::ZERO, US * (2 + time));
            }
            wait.done(US * (2 + late));
            assert_eq!(wait.answered(), Some(answered));
        }
        // A wait that owes nothing teaches nothing.
        let mut wait = Wait::new(how, true, None, None);
        wait.done(US);
        assert_eq!(wait.answered(), None);
    }
}
