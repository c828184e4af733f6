//! How a worker waits, and when the service thread serves.
//!
//! A worker that waits takes what comes: first it spins, if there are as many cores as processes,
//! then it yields, then it *rests* in the port. While the worker computes, the service thread
//! sleeps in the port; while the worker is in the runtime, it naps, or sleeps until the worker has
//! rested. Both may be at the port at once for a moment, which costs time and nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;
use std::time::Duration;

use dhole_net::{Outbox, Port};
use dhole_protocol::Message;

use super::{Processes, lock};
use crate::machine::Receivers;

/// How long a worker spins.
const SPIN: Duration = Duration::from_micros(100);
/// How often it yields before it rests.
const YIELDS: u32 = 100;
/// A worker that rests looks at the time this often at the latest.
const LONGEST_REST: Duration = Duration::from_millis(100);
/// How long the service thread keeps away from the port after the worker was in the runtime.
const NAP: Duration = Duration::from_micros(100);
/// After so many naps during one call of the worker it serves all the same.
const MOST_NAPS: u32 = 64;
/// The service thread looks whether it is needed this often at the latest.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// What worker and service thread know of each other.
pub(super) struct Pace {
    spins: bool,
    woken: AtomicBool,
    /// The worker is in the runtime.
    inside: AtomicBool,
    /// How often it came.
    entries: AtomicU64,
    /// The worker rests in the port.
    resting: AtomicBool,
    /// Whoever sleeps in the port has this.
    bed: Mutex<()>,
    over: AtomicBool,
    service: Mutex<Option<Thread>>,
    /// No run is on, and none is about to begin.
    idle: AtomicBool,
    /// Whoever takes what comes while no run is on has this.
    between: Mutex<()>,
    keeper: Mutex<Option<Thread>>,
}

impl Pace {
    pub fn new(neighbours: usize) -> Pace {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Pace {
            spins: neighbours <= cores,
            woken: AtomicBool::new(false),
            inside: AtomicBool::new(true),
            entries: AtomicU64::new(0),
            resting: AtomicBool::new(false),
            bed: Mutex::new(()),
            over: AtomicBool::new(false),
            service: Mutex::new(None),
            idle: AtomicBool::new(true),
            between: Mutex::new(()),
            keeper: Mutex::new(None),
        }
    }

    /// A run begins: nothing of the one before is left.
    pub fn begin(&self) {
        self.woken.store(false, Ordering::SeqCst);
        self.over.store(false, Ordering::SeqCst);
        self.inside.store(true, Ordering::SeqCst);
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
        self.over.store(true, Ordering::SeqCst);
        port.unpark();
        if let Some(service) = lock(&self.service).take() {
            service.unpark();
        }
    }

    pub fn enter(&self) {
        // There is one worker, so nobody else counts.
        let entries = self.entries.load(Ordering::Relaxed);
        self.entries.store(entries + 1, Ordering::Relaxed);
        self.inside.store(true, Ordering::Relaxed);
    }

    pub fn leave(&self) {
        self.inside.store(false, Ordering::Relaxed);
    }

    /// Whether the worker was woken since the last time.
    pub fn take_wake(&self) -> bool {
        self.woken.load(Ordering::SeqCst) && self.woken.swap(false, Ordering::SeqCst)
    }

    pub fn wake(&self, port: &dyn Port) {
        self.woken.store(true, Ordering::SeqCst);
        if self.resting.load(Ordering::SeqCst) {
            port.unpark();
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
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
    /// Takes what comes until `done`, or until a moment; whether it is done. In ever milder ways,
    /// as long as nothing comes: what has come is often followed by more.
    pub(super) fn serve_until(
        &self,
        receivers: &Receivers<'_>,
        until: Option<Duration>,
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
        let left = || match until {
            Some(until) => until.saturating_sub(self.since_made()),
            None => LONGEST_REST,
        };
        loop {
            let found = match self.spin(&mut look) {
                Found::Nothing => self.rest(&left, &mut look),
                found => found,
            };
            match found {
                Found::Done => return true,
                Found::Something => {}
                Found::Nothing => return false,
            }
        }
    }

    /// Looks without sleeping, until nothing has come for a while.
    fn spin(&self, look: &mut dyn FnMut() -> Found) -> Found {
        let mut began = self.since_made();
        while self.pace.spins && self.since_made() - began < SPIN {
            match look() {
                Found::Done => return Found::Done,
                Found::Something => began = self.since_made(),
                Found::Nothing => std::hint::spin_loop(),
            }
        }
        for _ in 0..YIELDS {
            match look() {
                Found::Nothing => std::thread::yield_now(),
                found => return found,
            }
        }
        Found::Nothing
    }

    /// Sleeps in the port until something has come, or no time is left.
    fn rest(&self, left: &dyn Fn() -> Duration, look: &mut dyn FnMut() -> Found) -> Found {
        let pace = &self.pace;
        pace.resting.store(true, Ordering::SeqCst);
        let bed = pace.bed.try_lock().unwrap_or_else(|_taken| {
            self.port.unpark();
            lock(&pace.bed)
        });
        let found = loop {
            match look() {
                Found::Nothing => {}
                found => break found,
            }
            let left = left();
            if left.is_zero() {
                break Found::Nothing;
            }
            self.port.park(left.min(LONGEST_REST));
        };
        drop(bed);
        pace.resting.store(false, Ordering::SeqCst);
        if let Some(service) = &*lock(&pace.service) {
            service.unpark();
        }
        found
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
        let (mut seen, mut in_vain, mut naps) = (0, false, 0);
        while !pace.is_over() {
            if pace.resting.load(Ordering::SeqCst) {
                std::thread::park_timeout(LONGEST_SLEEP);
                continue;
            }
            let entries = pace.entries.load(Ordering::Relaxed);
            let came_in = in_vain && entries != seen;
            if came_in || pace.inside.load(Ordering::Relaxed) {
                // A call in which the program computes may be long: then the others still hear of
                // this process.
                naps = if entries == seen { naps + 1 } else { 0 };
                seen = entries;
                if naps < MOST_NAPS {
                    std::thread::park_timeout(NAP);
                    continue;
                }
            }
            {
                let _bed = lock(&pace.bed);
                if pace.resting.load(Ordering::SeqCst) || pace.is_over() {
                    continue;
                }
                self.port.park(LONGEST_SLEEP);
            }
            if pace.is_over() {
                return;
            }
            let taken = self.poll(receivers, &mut out);
            self.post_all(receivers, &mut out);
            (seen, in_vain) = (entries, taken == 0);
        }
    }
}
