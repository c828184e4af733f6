//! Every order of the steps of a worker, of the service thread beside it, and of another node that
//! sends to them: no message stays unseen, and a node that waits is served in time.
//!
//! The machines are those that run ([`Wait`], [`Service`]). Around them stand a port, a clock that
//! ticks in nanoseconds, and what the threads do in `progress.rs`, step by step. Threads are as
//! fast as can be: the clock ticks when each of them computes, or waits for a time or a ring. The
//! other node begins at any tick. Between two ticks every order of steps is taken.
//!
//! ```text
//! worker:   computes; or waits: polls, spins, yields, parks in the port
//! service:  asks what the worker does; stays away, sleeps, or parks in the port; polls
//! other:    sends; if it asked: polls, spins, notifies, yields, parks, until it is answered
//! ```

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::time::Duration;

use super::service::{self, Seen, Service};
use super::worker::{Next, Patience, Wait};
use dhole_net::Waiting;
use rustc_hash::FxHashMap;

/// The three numbers, in ticks.
const SPIN: u8 = 12;
const BACKOFF: u8 = 8;
const SLEEP: u8 = 10;

fn how() -> Waiting {
    let ticks = |ticks| Duration::from_nanos(u64::from(ticks));
    Waiting {
        spin: ticks(SPIN),
        backoff: ticks(BACKOFF),
        sleep: ticks(SLEEP),
    }
}

/// What is planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    Nothing,
    /// A node waits for an answer and does not notify.
    ForgetsToNotify,
    /// A thread says that it parks, and does not look again.
    ParksWithoutLooking,
    /// The service thread is not told that the worker has left the port.
    SleepsUnattached,
    /// The service thread stays away for as long again from a worker that computes.
    StaysAway,
}

/// What the other node sends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Sends {
    /// What only a node that waits or polls needs.
    Lazily,
    /// What notifies its receiver.
    Now,
    /// A question, for whose answer it waits.
    AQuestion,
}

/// What the worker does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Worker {
    /// It computes all the time.
    Computes,
    /// It has waited often, and computes from now on.
    HasWaitedOften,
    /// It computes within a call.
    ComputesInACall,
    /// It waits for a first message, and then computes.
    Waits,
}

struct Progress {
    bug: Bug,
    worker: Worker,
    sends: Sends,
}

/// Where the doorbell of a node is, and who is parked at it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Port {
    /// When each message was sent that lies there, and whether it ends the worker's wait.
    inbox: Vec<(u8, bool)>,
    rung: bool,
    fine: bool,
    coarse: bool,
}

impl Port {
    fn wakes(&mut self, notify: bool) {
        self.rung |= self.fine || (notify && self.coarse);
    }
}

/// Where a thread is in what it does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    /// It has not begun.
    Before,
    /// It does its next step.
    Next,
    /// It has sent, and rings next where the receiver is parked.
    Rings,
    /// It waits for the slot, to park in the port.
    Slot,
    /// It has the slot, and looks at the port.
    Looks,
    /// It says next that it is parked.
    Says,
    /// It has said so, and looks again.
    LooksAgain,
    /// It is parked, and looks by itself at this time if at all.
    Parked(Option<u8>),
    /// It polls.
    Polls,
    /// It does nothing before this time.
    Until(u8),
    /// It sleeps until it is told.
    Sleeps,
    /// It is over.
    Over,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Cluster {
    now: u8,
    here: Port,
    there: Port,
    /// The worker is parked in the port, or about to be.
    resting: bool,
    /// Whether a thread has the right to park: the worker, or not.
    slot: Option<bool>,
    /// The worker was woken.
    woken: bool,
    /// The service thread was told to go on.
    told: bool,
    waits: u64,
    /// How many messages are to come, of which the first ends the wait of a worker that waits.
    to_come: u8,
    worker: (At, Wait),
    service: (At, Service),
    other: (At, Wait),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Tick,
    Begin,
    Worker,
    Service,
    Other,
}

fn time(now: u8) -> Duration {
    Duration::from_nanos(u64::from(now))
}

impl Cluster {
    fn seen(&self, worker: Worker) -> Seen {
        Seen {
            parked: self.resting,
            inside: self.worker.0 != At::Over || worker == Worker::ComputesInACall,
            waits: self.waits,
        }
    }

    /// Takes what lies at the node; how much that was.
    fn poll(&mut self, model: &Progress) -> usize {
        let taken = std::mem::take(&mut self.here.inbox);
        for (_, ends_wait) in &taken {
            if *ends_wait {
                self.woken = true;
                self.here.rung |= self.resting;
            } else if model.sends == Sends::AQuestion {
                // The answer is lazy: its receiver waits.
                self.there.inbox.push((self.now, true));
                self.there.wakes(false);
            }
        }
        taken.len()
    }

    fn step_other(&mut self, model: &Progress) {
        let at = &mut self.other.0;
        match *at {
            At::Next => {
                self.to_come -= 1;
                let ends_wait = self.to_come > 0;
                self.here.inbox.push((self.now, ends_wait));
                *at = At::Rings;
            }
            At::Rings => {
                let first = self.to_come > 0;
                self.here.wakes(first || model.sends == Sends::Now);
                *at = match (first, model.sends) {
                    // The next at any later time.
                    (true, _) => At::Before,
                    (false, Sends::AQuestion) => {
                        let owes = Patience::doubled(u8::MAX).lasts(&how());
                        self.other.1 = Wait::new(how(), true, None, Some(owes));
                        At::Polls
                    }
                    _ => At::Over,
                };
            }
            At::Polls => {
                if !std::mem::take(&mut self.there.inbox).is_empty() {
                    *at = At::Over;
                    return;
                }
                *at = match self.other.1.polled(false, time(self.now), time(self.now)) {
                    Next::Notify => {
                        if model.bug != Bug::ForgetsToNotify {
                            self.here.wakes(true);
                        }
                        At::Until(self.now + 1)
                    }
                    Next::Spin | Next::Yield => At::Until(self.now + 1),
                    Next::Park(_) => At::Says,
                    Next::GiveUp => At::Over,
                };
            }
            At::Says => {
                self.there.fine = true;
                *at = At::LooksAgain;
            }
            At::LooksAgain => {
                let looks = model.bug != Bug::ParksWithoutLooking;
                *at = match looks && !self.there.inbox.is_empty() {
                    true => At::Parked(Some(self.now)),
                    false => At::Parked(None),
                };
            }
            At::Parked(_) => {
                (self.there.fine, self.there.rung) = (false, false);
                *at = At::Polls;
            }
            At::Until(_) => *at = At::Polls,
            At::Before | At::Slot | At::Looks | At::Sleeps | At::Over => unreachable!(),
        }
    }

    fn step_worker(&mut self, model: &Progress) {
        let at = self.worker.0;
        self.worker.0 = match at {
            At::Next | At::Until(_) | At::Polls => {
                let came = self.poll(model) > 0;
                if std::mem::take(&mut self.woken) {
                    self.worker.1.done(time(self.now));
                    At::Over
                } else {
                    self.waits += u64::from(came || at == At::Next);
                    let next = self.worker.1.polled(came, time(self.now), time(self.now));
                    match next {
                        Next::Park(_) => {
                            self.resting = true;
                            At::Slot
                        }
                        _ => At::Until(self.now + 1),
                    }
                }
            }
            At::Slot => match self.slot {
                None => {
                    self.slot = Some(true);
                    At::Looks
                }
                Some(_) => {
                    self.here.rung = true;
                    At::Slot
                }
            },
            At::Looks => {
                let came = self.poll(model) > 0;
                let is_done = std::mem::take(&mut self.woken);
                match is_done || came {
                    true => {
                        (self.resting, self.slot) = (false, None);
                        self.told = model.bug != Bug::SleepsUnattached;
                        self.worker.1.done(time(self.now));
                        if is_done { At::Over } else { At::Polls }
                    }
                    false => At::Says,
                }
            }
            At::Says => {
                self.here.fine = true;
                At::LooksAgain
            }
            At::LooksAgain => {
                let looks = model.bug != Bug::ParksWithoutLooking;
                match looks && !self.here.inbox.is_empty() {
                    true => At::Parked(Some(self.now)),
                    false => At::Parked(None),
                }
            }
            At::Parked(_) => {
                (self.here.fine, self.here.rung) = (false, false);
                At::Looks
            }
            At::Before | At::Rings | At::Sleeps | At::Over => unreachable!(),
        };
    }

    fn step_service(&mut self, model: &Progress) {
        self.service.0 = match self.service.0 {
            At::Next | At::Until(_) | At::Sleeps => {
                self.told = false;
                let seen = self.seen(model.worker);
                match self.service.1.next(seen) {
                    service::State::Sleeping => At::Sleeps,
                    service::State::BackingOff(away) => {
                        let again = if model.bug == Bug::StaysAway { 4 } else { 1 };
                        At::Until(self.now + again * away.as_nanos() as u8)
                    }
                    service::State::Attached => At::Slot,
                }
            }
            At::Slot => {
                self.slot = Some(false);
                At::Looks
            }
            At::Looks => match self.resting {
                true => {
                    self.slot = None;
                    At::Next
                }
                false => At::Says,
            },
            At::Says => {
                self.here.coarse = true;
                At::LooksAgain
            }
            At::LooksAgain => {
                let looks = model.bug != Bug::ParksWithoutLooking;
                match looks && !self.here.inbox.is_empty() {
                    true => At::Parked(Some(self.now)),
                    false => At::Parked(Some(self.now + SLEEP)),
                }
            }
            At::Parked(_) => {
                (self.here.coarse, self.here.rung) = (false, false);
                self.slot = None;
                At::Polls
            }
            At::Polls => {
                let taken = self.poll(model);
                self.service.1.served(self.waits, taken, Duration::ZERO);
                At::Next
            }
            At::Before | At::Rings | At::Over => unreachable!(),
        };
    }

    /// Whether a thread that is there has a step to take now.
    fn goes_on(&self, at: At, port: &Port) -> bool {
        match at {
            At::Before | At::Over => false,
            At::Until(time) => time <= self.now,
            At::Parked(looks) => port.rung || looks.is_some_and(|time| time <= self.now),
            At::Sleeps => self.told,
            _ => true,
        }
    }

    fn worker_goes_on(&self) -> bool {
        match self.worker.0 {
            // It has rung, and waits for the other to leave.
            At::Slot => self.slot.is_none() || !self.here.rung,
            at => self.goes_on(at, &self.here),
        }
    }

    fn service_goes_on(&self) -> bool {
        match self.service.0 {
            At::Slot => self.slot.is_none(),
            at => self.goes_on(at, &self.here),
        }
    }

    fn is_over(&self) -> bool {
        let over = self.other.0 == At::Over && self.worker.0 == At::Over;
        over && self.here.inbox.is_empty()
    }
}

impl Progress {
    fn first(&self) -> Cluster {
        let wait = || Wait::new(how(), true, None, None);
        let waits = self.worker == Worker::Waits;
        Cluster {
            now: 0,
            here: Port::default(),
            there: Port::default(),
            resting: false,
            slot: None,
            woken: false,
            told: false,
            waits: if self.worker == Worker::HasWaitedOften {
                64
            } else {
                0
            },
            to_come: if waits { 2 } else { 1 },
            worker: (if waits { At::Next } else { At::Over }, wait()),
            service: (At::Next, Service::new(how())),
            other: (At::Before, wait()),
        }
    }

    /// The steps that may be taken next; none where all is over.
    fn steps(&self, state: &Cluster) -> Vec<Step> {
        if state.is_over() {
            return Vec::new();
        }
        let threads = [
            (Step::Worker, state.worker_goes_on()),
            (Step::Service, state.service_goes_on()),
            (Step::Other, state.goes_on(state.other.0, &state.there)),
        ];
        let go_on = threads.iter().filter(|(_, goes)| *goes);
        let mut steps: Vec<Step> = go_on.map(|(step, _)| *step).collect();
        let begins = state.other.0 == At::Before;
        if steps.is_empty() && !(begins && state.now > LATEST) {
            steps.push(Step::Tick);
        }
        if begins {
            steps.push(Step::Begin);
        }
        steps
    }

    fn next(&self, state: &Cluster, step: Step) -> Cluster {
        let mut next = state.clone();
        match step {
            Step::Tick => next.now += 1,
            Step::Begin => next.other.0 = At::Next,
            Step::Worker => next.step_worker(self),
            Step::Service => next.step_service(self),
            Step::Other => next.step_other(self),
        }
        next
    }

    /// Takes every step from every state; or the steps to a state where a message is unseen for
    /// longer than anything may take.
    fn explore(&self) -> Result<Explored, Vec<Step>> {
        let mut found = Explored::default();
        let first = self.first();
        let mut before: FxHashMap<Cluster, Option<(Cluster, Step)>> = FxHashMap::default();
        before.insert(first.clone(), None);
        let mut left = VecDeque::from([first]);
        while let Some(state) = left.pop_front() {
            let oldest = |port: &Port| port.inbox.iter().map(|(sent, _)| state.now - sent).max();
            let unseen = oldest(&state.here).unwrap_or(0);
            let unanswered = oldest(&state.there).unwrap_or(0);
            if unseen.max(unanswered) > FOR_EVER || state.now > 2 * LATEST + FOR_EVER {
                let mut way = Vec::new();
                let mut at = &state;
                while let Some((earlier, step)) = &before[at] {
                    way.push(*step);
                    at = earlier;
                }
                way.reverse();
                return Err(way);
            }
            // A worker that waits takes what comes at its next poll.
            let slot = match state.worker.0 {
                At::Over => &mut found.unseen,
                _ => &mut found.unseen_by_worker,
            };
            *slot = (*slot).max(unseen);
            found.unanswered = found.unanswered.max(unanswered);
            found.ends |= state.is_over();
            for step in self.steps(&state) {
                let next = self.next(&state, step);
                if let Entry::Vacant(entry) = before.entry(next.clone()) {
                    entry.insert(Some((state.clone(), step)));
                    left.push_back(next);
                }
            }
        }
        found.states = before.len();
        Ok(found)
    }
}

/// The other node begins no later than this: by then nothing is left of how it all began.
const LATEST: u8 = 2 * SPIN + SLEEP;
/// Longer than anything may take.
const FOR_EVER: u8 = 2 * SLEEP + 2 * BACKOFF;

/// What an exploration found, in ticks.
#[derive(Default, Debug)]
struct Explored {
    states: usize,
    /// How long a message lay unseen of a worker that computes.
    unseen: u8,
    /// And of one that waits.
    unseen_by_worker: u8,
    /// How long an answer lay there.
    unanswered: u8,
    /// It comes to its end.
    ends: bool,
}

const WORKERS: [Worker; 4] = [
    Worker::Computes,
    Worker::HasWaitedOften,
    Worker::ComputesInACall,
    Worker::Waits,
];
const SENDS: [Sends; 3] = [Sends::Lazily, Sends::Now, Sends::AQuestion];

/// How long a message lay unseen at most, of each worker and each kind of sending.
fn latest(bug: Bug) -> Result<[[u8; 3]; 4], String> {
    let mut latest = [[0; 3]; 4];
    for (worker, latest) in WORKERS.into_iter().zip(&mut latest) {
        for (sends, latest) in SENDS.into_iter().zip(latest) {
            let explored = Progress { bug, worker, sends }.explore();
            let explored = explored.map_err(|way| format!("{worker:?}, {sends:?}: {way:?}"))?;
            println!("{worker:?}, {sends:?}: {explored:?}");
            assert!(explored.ends, "{worker:?}, {sends:?}");
            assert!(explored.unseen_by_worker <= 1 && explored.unanswered <= 1);
            *latest = explored.unseen;
        }
    }
    Ok(latest)
}

#[test]
fn no_message_stays_unseen_and_a_node_that_waits_is_served_in_time() {
    let latest = latest(Bug::Nothing).expect("all is seen");
    assert_eq!(latest, LATEST_SEEN);
}

#[test]
fn what_is_planted_is_caught() {
    for bug in [
        Bug::ForgetsToNotify,
        Bug::ParksWithoutLooking,
        Bug::SleepsUnattached,
        Bug::StaysAway,
    ] {
        assert_ne!(latest(bug), Ok(LATEST_SEEN), "{bug:?} is not caught");
    }
}

/// How long a message lies unseen at most: one that is lazy, one that notifies, and a question. A
/// sleep, no time, and the longest patience; within a long call a sleep.
const LATEST_SEEN: [[u8; 3]; 4] = [
    [SLEEP, 0, 4],
    [SLEEP, 2, 4],
    [SLEEP, SLEEP, SLEEP],
    [SLEEP, 1, 4],
];
