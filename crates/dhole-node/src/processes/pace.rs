//! How a worker waits, and when the service thread serves.
//!
//! A worker that waits takes what comes: first it spins, if there are as many cores as processes,
//! then it yields, then it *rests* in the port. While the worker computes, the service thread
//! sleeps in the port; while the worker is in the runtime, or waits so often that it takes soon
//! what is there, it naps, or sleeps until the worker has rested. Both may be at the port at once
//! for a moment, which costs time and nothing else.

#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::Thread;
use std::time::Duration;

use dhole_model::NodeId;
use dhole_net::{Handover, Outbox, Port, Waiting};
use dhole_protocol::Message;

use super::naps::Naps;
use super::{Processes, lock};
use crate::machine::Receivers;

/// Looks between two at the clock, which takes as long as some of them.
const LOOKS: u32 = 64;
/// Looks between two yields of a worker that spins: while it yields, it is deaf for as long as an
/// answer takes.
const LOOKS_A_YIELD: u32 = 256;
/// Where there are more processes than cores, a worker looks so long before each time that it
/// yields: as long as an answer takes of who has a core. Yielding at once would have it handed over
/// for every one; and who has no core is waited for no longer than this.
const BRIEFLY: Duration = Duration::from_micros(1);
/// Looks between two at the clock meanwhile, and while an answer is patiently waited for. With some
/// ports a look is a system call.
const FEW_LOOKS: u32 = 4;
/// Where the port shows what comes, a look costs a few loads, and who spins polls once in so many.
const GLANCES: u32 = 16;
/// About how long one of them takes, by which waits are counted that are over before the clock is
/// looked at.
const GLANCE: Duration = Duration::from_nanos(30);
/// The service thread looks whether it is needed this often at the latest.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// A worker that waits looks for an answer of who computes, and may look by itself, before it wakes
/// somebody there: so long at first, twice as long after each answer that came by itself, half as
/// long after each that did not. At most about as long as it takes to wake somebody; at least as
/// long as a worker computes that looks often, between two rows of a grid say.
const PATIENCE: Duration = Duration::from_micros(10);
const MOST_PATIENCE: Duration = Duration::from_micros(40);
const LEAST_PATIENCE: Duration = Duration::from_micros(8);

/// What worker and service thread know of each other.
pub(super) struct Pace {
    spins: bool,
    /// How the worker waits: nanoseconds of spinning, yields, and nanoseconds of rest.
    spin_ns: AtomicU64,
    yields: AtomicU32,
    rest_ns: AtomicU64,
    handover: Handover,
    /// The worker is in the runtime.
    inside: AtomicBool,
    /// It waits, or does so next.
    awaits: AtomicBool,
    /// Processes were started on this node beside the program.
    several: AtomicBool,
    /// To whom something was sent that it was not woken for, though it is waited for: its number,
    /// and one; or 0.
    owed: AtomicU32,
    /// Something has come from there since.
    heard: AtomicBool,
    /// How long it is waited for that, in nanoseconds.
    patience_ns: AtomicU64,
    /// Something else is waited for: who is owed is woken when the worker has spun in vain.
    in_no_hurry: AtomicBool,
    /// How often it waited, looking at the port itself, or took something then. That it comes is
    /// not enough: most calls take nothing.
    waits: AtomicU64,
    /// How long it waited, in nanoseconds.
    waited_ns: AtomicU64,
    /// The port shows what comes.
    glances: bool,
    service: Mutex<Option<Thread>>,
    /// No run is on, and none is about to begin.
    idle: AtomicBool,
    /// Whoever takes what comes while no run is on has this.
    between: Mutex<()>,
    keeper: Mutex<Option<Thread>>,
}

impl Pace {
    pub fn new(neighbours: usize, port: &dyn Port) -> Pace {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let pace = Pace {
            spins: neighbours <= cores,
            spin_ns: AtomicU64::new(0),
            yields: AtomicU32::new(0),
            rest_ns: AtomicU64::new(0),
            handover: Handover::default(),
            inside: AtomicBool::new(true),
            awaits: AtomicBool::new(false),
            several: AtomicBool::new(false),
            owed: AtomicU32::new(0),
            heard: AtomicBool::new(false),
            patience_ns: AtomicU64::new(PATIENCE.as_nanos() as u64),
            in_no_hurry: AtomicBool::new(false),
            waits: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            glances: port.can_peek(),
            service: Mutex::new(None),
            idle: AtomicBool::new(true),
            between: Mutex::new(()),
            keeper: Mutex::new(None),
        };
        pace.waits(Waiting::default());
        pace
    }

    /// From here on the worker waits so.
    pub fn waits(&self, how: Waiting) {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.spin_ns.store(ns(how.spin), Ordering::Relaxed);
        self.yields.store(how.yields, Ordering::Relaxed);
        self.rest_ns.store(ns(how.park), Ordering::Relaxed);
    }

    fn spin(&self) -> Duration {
        Duration::from_nanos(self.spin_ns.load(Ordering::Relaxed))
    }

    /// A worker that rests looks at the time this often at the latest.
    fn longest_rest(&self) -> Duration {
        Duration::from_nanos(self.rest_ns.load(Ordering::Relaxed))
    }

    /// A run begins: nothing of the one before is left.
    pub fn begin(&self) {
        self.handover.begin();
        self.inside.store(true, Ordering::SeqCst);
        self.several.store(false, Ordering::SeqCst);
    }

    /// A process begins beside the program: from here on somebody may wait for what comes while
    /// another computes.
    pub fn has_several(&self, port: &dyn Port) {
        if !self.several.swap(true, Ordering::SeqCst) {
            port.unpark();
        }
    }

    /// Whether a worker that waits can look for an answer before it has somebody woken: it has a
    /// core to itself, and nobody else goes on here meanwhile.
    pub fn may_be_patient(&self) -> bool {
        self.spins && self.spin() > self.patience() && !self.several.load(Ordering::SeqCst)
    }

    fn patience(&self) -> Duration {
        Duration::from_nanos(self.patience_ns.load(Ordering::Relaxed))
    }

    /// Whoever was not woken has looked by itself, or had to be woken.
    fn learns_patience(&self, looked: bool) {
        let patience = match looked {
            true => MOST_PATIENCE.min(2 * self.patience()),
            false => LEAST_PATIENCE.max(self.patience() / 2),
        };
        let ns = patience.as_nanos() as u64;
        self.patience_ns.store(ns, Ordering::Relaxed);
    }

    /// The worker waits, or does so next; or goes on.
    pub fn set_awaiting(&self, awaits: bool) {
        self.awaits.store(awaits, Ordering::Relaxed);
    }

    /// Whether a worker of this node may wait, or does so next.
    pub fn may_be_awaiting(&self) -> bool {
        self.awaits.load(Ordering::Relaxed) || self.several.load(Ordering::Relaxed)
    }

    /// `to` is not woken for what goes to it, and the worker waits for just that, or for something
    /// else. Whom it owed before in a hurry, and has not heard from.
    #[must_use = "another may have to be woken now"]
    pub fn owes(&self, to: NodeId, just_that: bool) -> Option<NodeId> {
        let before = self.settle();
        self.in_no_hurry.store(!just_that, Ordering::Relaxed);
        self.heard.store(false, Ordering::Relaxed);
        self.owed.store(u32::from(to.0) + 1, Ordering::Relaxed);
        before.filter(|before| *before != to)
    }

    /// Nothing is owed any more. Who was waited for in a hurry, was not woken, and did not answer.
    fn settle(&self) -> Option<NodeId> {
        let owed = self.take_owed().filter(|_| !self.is_in_no_hurry())?;
        match self.heard.load(Ordering::Relaxed) {
            true => {
                self.learns_patience(true);
                None
            }
            false => Some(owed),
        }
    }

    /// Whether something else is waited for than what is owed.
    fn is_in_no_hurry(&self) -> bool {
        self.in_no_hurry.load(Ordering::Relaxed)
    }

    /// Something has come from there.
    #[inline]
    pub fn has_heard(&self, from: NodeId) {
        if self.owed.load(Ordering::Relaxed) == u32::from(from.0) + 1 {
            self.heard.store(true, Ordering::Relaxed);
        }
    }

    /// What was to be owed was not sent.
    pub fn owes_nothing(&self) {
        self.owed.store(0, Ordering::Relaxed);
    }

    fn owes_somebody(&self) -> bool {
        self.owed.load(Ordering::Relaxed) != 0
    }

    /// Who is to be woken now for what was sent there.
    fn take_owed(&self) -> Option<NodeId> {
        // There is one worker, and most waits owe nothing.
        let owed = self.owed.load(Ordering::Relaxed).checked_sub(1)?;
        self.owed.store(0, Ordering::Relaxed);
        Some(NodeId(owed as u16))
    }

    /// A run is about to begin: from here on its own threads take what comes, and no other.
    pub fn wake_up(&self, port: &dyn Port) {
        self.idle.store(false, Ordering::SeqCst);
        port.unpark();
        drop(lock(&self.between));
    }

    /// No run is on any more.
    pub fn idle(&self) {
        self.idle.store(true, Ordering::SeqCst);
        if let Some(keeper) = &*lock(&self.keeper) {
            keeper.unpark();
        }
    }

    /// This is the service thread.
    pub fn serves(&self, thread: Thread) {
        *lock(&self.service) = Some(thread);
    }

    /// The worker has come to its end: nobody need serve while it computes.
    pub fn end(&self, port: &dyn Port) {
        self.handover.end(|| port.unpark());
        if let Some(service) = lock(&self.service).take() {
            service.unpark();
        }
    }

    pub fn enter(&self) {
        self.inside.store(true, Ordering::Relaxed);
    }

    /// The worker takes what comes.
    fn serves_itself(&self) {
        // There is one worker, so nobody else counts.
        let waits = self.waits.load(Ordering::Relaxed);
        self.waits.store(waits + 1, Ordering::Relaxed);
    }

    /// How long the worker waited, in nanoseconds.
    pub fn waited(&self) -> u64 {
        self.waited_ns.load(Ordering::Relaxed)
    }

    fn has_waited(&self, time: Duration) {
        let ns = self.waited() + time.as_nanos() as u64;
        self.waited_ns.store(ns, Ordering::Relaxed);
    }

    pub fn leave(&self) {
        // It waits no longer for what it asked.
        let _answered_or_not = self.settle();
        self.awaits.store(false, Ordering::Relaxed);
        self.inside.store(false, Ordering::Relaxed);
    }

    /// Whether the worker was woken since the last time.
    pub fn take_wake(&self) -> bool {
        self.handover.take_wake()
    }

    pub fn wake(&self, port: &dyn Port) {
        self.handover.wake(|| port.unpark());
    }

    fn is_over(&self) -> bool {
        self.handover.is_over()
    }
}

/// A wait of the worker: when it began, once the clock was looked at, which one that is soon over
/// never does; and how often it looked for what it waits for without sleeping.
#[derive(Default)]
struct Wait {
    began: Option<Duration>,
    looks: u32,
}

impl Wait {
    /// When it began, at the latest at this moment.
    fn began(&mut self, now: impl FnOnce() -> Duration) -> Duration {
        let looked = GLANCE * self.looks.min(LOOKS);
        *self
            .began
            .get_or_insert_with(|| now().saturating_sub(looked))
    }
}

/// What a look at the port found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// What was waited for.
    Done,
    /// Something else.
    Something,
    Nothing,
}

impl Processes {
    /// Takes what comes until `done`, or for a time; whether it is done. In ever milder ways,
    /// as long as nothing comes: what has come is often followed by more.
    pub(super) fn serve_until(
        &self,
        receivers: &Receivers<'_>,
        at_most: Option<Duration>,
        done: &dyn Fn() -> bool,
    ) -> bool {
        self.pace.set_awaiting(true);
        let done = self.serve_and_wait(receivers, at_most, done);
        self.pace.set_awaiting(false);
        // Where something has come from there, and ends the wait, it looked by itself: unless the
        // worker waits again. What else was waited for may have come from anywhere.
        let heard = self.pace.heard.load(Ordering::Relaxed) || self.pace.is_in_no_hurry();
        if !(done && heard) {
            self.notify_owed();
        }
        done
    }

    /// Notes that `to` was sent something lazily, and that the worker waits for just that, or
    /// for something else.
    pub(super) fn owes(&self, to: NodeId, just_that: bool) {
        if let Some(before) = self.pace.owes(to, just_that) {
            self.port.notify(before);
        }
    }

    /// Has whoever was sent something lazily woken for it, where that has not been done.
    pub(super) fn notify_owed(&self) {
        if let Some(owed) = self.pace.take_owed() {
            self.port.notify(owed);
        }
    }

    fn serve_and_wait(
        &self,
        receivers: &Receivers<'_>,
        at_most: Option<Duration>,
        done: &dyn Fn() -> bool,
    ) -> bool {
        let mut out = Outbox::default();
        let mut look = || {
            let taken = self.poll(receivers, &mut out) > 0;
            if taken {
                self.post_all(receivers, &mut out);
            }
            match (done(), taken) {
                (true, _) => Found::Done,
                (false, true) => Found::Something,
                (false, false) => Found::Nothing,
            }
        };
        if done() {
            return true;
        }
        self.pace.serves_itself();
        let mut wait = Wait::default();
        let done = loop {
            let found = match self.spin(&mut wait, &mut look) {
                Found::Nothing => {
                    let began = wait.began(|| self.since_made());
                    let left = || match at_most {
                        Some(at_most) => (began + at_most).saturating_sub(self.since_made()),
                        None => self.pace.longest_rest(),
                    };
                    self.rest(&left, &mut look)
                }
                found => found,
            };
            match found {
                Found::Done => break true,
                Found::Something => self.pace.serves_itself(),
                Found::Nothing => break false,
            }
        };
        self.pace.has_waited(match wait.began {
            Some(began) => self.since_made() - began,
            None => GLANCE * wait.looks,
        });
        done
    }

    /// Takes what has come, of a worker that goes on at once.
    pub(super) fn take_what_came(&self, receivers: &Receivers<'_>) {
        let mut out = Outbox::default();
        self.poll(receivers, &mut out);
        self.post_all(receivers, &mut out);
    }

    /// Looks without sleeping, until nothing has come for a while.
    fn spin(&self, wait: &mut Wait, look: &mut dyn FnMut() -> Found) -> Found {
        let pace = &self.pace;
        let (mut looks, mut since, mut patient_since) = (0_u32, None, None);
        let mut notified = false;
        let few_looks = if pace.glances { GLANCES } else { FEW_LOOKS };
        while pace.spins && !pace.spin().is_zero() {
            let glances = pace.glances && !looks.is_multiple_of(GLANCES) && !notified;
            let found = match glances && !self.port.peek_lazy() {
                true => Found::Nothing,
                false => look(),
            };
            wait.looks = wait.looks.saturating_add(1);
            if std::mem::take(&mut notified) {
                // What is there already came of no waking as a rule, for that takes longer.
                pace.learns_patience(found == Found::Done);
            }
            match found {
                Found::Done => return Found::Done,
                Found::Something => {
                    pace.serves_itself();
                    (looks, since) = (0, None);
                }
                Found::Nothing => std::hint::spin_loop(),
            }
            looks += 1;
            let owes = pace.owes_somebody();
            // What else comes makes nobody wait longer for who was not woken.
            let owes_on = owes && found == Found::Something;
            if owes_on || looks.is_multiple_of(if owes { few_looks } else { LOOKS }) {
                let now = self.since_made();
                wait.began(|| now);
                let looked = now - *since.get_or_insert(now);
                let patient = now - *patient_since.get_or_insert(now);
                if owes && !pace.is_in_no_hurry() && patient >= pace.patience() {
                    self.notify_owed();
                    notified = true;
                }
                if looked >= pace.spin() && !notified {
                    break;
                }
                if looks.is_multiple_of(LOOKS_A_YIELD) {
                    // What is waited for may be done by a service thread that has no core.
                    std::thread::yield_now();
                }
            }
        }
        self.notify_owed();
        // From here on looks take their time.
        wait.began(|| self.since_made());
        for _ in 0..pace.yields.load(Ordering::Relaxed) {
            match self.look_briefly(look) {
                Found::Nothing => std::thread::yield_now(),
                found => return found,
            }
        }
        Found::Nothing
    }

    /// Looks once, or for a moment where it has not spun before.
    fn look_briefly(&self, look: &mut dyn FnMut() -> Found) -> Found {
        let spin = self.pace.spin().min(BRIEFLY);
        if self.pace.spins || spin.is_zero() {
            return look();
        }
        let mut since = None;
        loop {
            for _ in 0..FEW_LOOKS {
                match look() {
                    Found::Nothing => std::hint::spin_loop(),
                    found => return found,
                }
            }
            let now = self.since_made();
            if now - *since.get_or_insert(now) >= spin {
                return Found::Nothing;
            }
        }
    }

    /// Sleeps in the port until something has come, or no time is left.
    fn rest(&self, left: &dyn Fn() -> Duration, look: &mut dyn FnMut() -> Found) -> Found {
        let pace = &self.pace;
        let sleep = || loop {
            match look() {
                Found::Nothing => {}
                found => return found,
            }
            let left = left();
            if left.is_zero() {
                return Found::Nothing;
            }
            self.port.park(left.min(pace.longest_rest()));
        };
        let serve = || {
            if let Some(service) = &*lock(&pace.service) {
                service.unpark();
            }
        };
        pace.handover.rest(|| self.port.unpark(), sleep, serve)
    }

    /// Sees to it that the others hear that this process lives, until `over`: takes what comes
    /// while no run is on, and [attends](Processes::attend) to those that are. One thread of the
    /// process is to do so, if the program may be slow between two runs, or within a call.
    pub fn keep(&self, over: &dyn Fn() -> bool) {
        let pace = &self.pace;
        *lock(&pace.keeper) = Some(std::thread::current());
        let mut out = Outbox::default();
        while !over() {
            if !pace.idle.load(Ordering::SeqCst) {
                std::thread::park_timeout(self.attend().min(LONGEST_SLEEP));
                continue;
            }
            let between = lock(&pace.between);
            if pace.idle.load(Ordering::SeqCst) {
                self.port.park(LONGEST_SLEEP);
                self.poll(&[], &mut out);
                self.post_all(&[], &mut out);
            }
            drop(between);
        }
    }

    /// The service thread of a run. What unwinds there is a mistake of ours; it ends the run.
    pub(super) fn serve(&self, receivers: &Receivers<'_>) {
        let served = catch_unwind(AssertUnwindSafe(|| self.serve_while_computing(receivers)));
        if served.is_err() {
            let mut out = Outbox::default();
            self.fail_here(receivers, "its service thread panicked", &mut out);
            self.post_all(receivers, &mut out);
        }
    }

    fn serve_while_computing(&self, receivers: &Receivers<'_>) {
        let pace = &self.pace;
        let mut out: Outbox<Message> = Outbox::default();
        let mut naps = Naps::default();
        while !pace.is_over() {
            if pace.handover.is_resting() {
                std::thread::park_timeout(LONGEST_SLEEP);
                continue;
            }
            let waits = pace.waits.load(Ordering::Relaxed);
            if let Some(nap) = naps.next(waits, pace.inside.load(Ordering::Relaxed)) {
                std::thread::park_timeout(nap);
                continue;
            }
            // Of several processes one may wait while another computes; and where nodes may be
            // lost, what comes is confirmed. Asked where nobody else can be unparked any more.
            let park = || match pace.several.load(Ordering::SeqCst) || self.survives() {
                true => self.port.park(LONGEST_SLEEP),
                false => self.port.park_coarse(LONGEST_SLEEP),
            };
            let began = self.since_made();
            if !pace.handover.sleep(park) {
                continue;
            }
            if pace.is_over() {
                return;
            }
            let slept = self.since_made() - began;
            let taken = self.poll(receivers, &mut out);
            self.post_all(receivers, &mut out);
            naps.served(waits, taken, slept);
        }
    }
}
