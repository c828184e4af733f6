//! How the worker and the service thread of a process make progress: who polls the port, how the
//! worker waits, and when other nodes are notified.
//!
//! | machine | states |
//! |---|---|
//! | [`worker`] | computing, spinning, yielding, parked |
//! | [`service`] | attached to the port, backing off, sleeping |
//!
//! Both machines are pure; here they meet clock, threads and port. `exploration` takes every step
//! of both, of a sender and of a receiver, in every order. One rule holds for notifications: before
//! a worker waits for long, it notifies the nodes to which it sent lazily what they must act on
//! ([`Deferred`]).
//!
//! Three numbers set all times ([`Waiting`]). Worker and service thread may both be at the port for
//! a moment, which costs time and nothing else.

#[cfg(test)]
mod exploration;
mod parks;
mod service;
#[cfg(test)]
mod tests;
mod worker;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Thread;
use std::time::Duration;

use dhole_model::NodeId;
use dhole_net::{Deferred, Outbox, Port, Waiting};
use dhole_node::Receivers;
use dhole_protocol::Message;

use self::parks::{Parks, Who};
use self::service::{Seen, Service};
use self::worker::{BACKSTOP, Next, Patience, Wait};
use super::{Processes, lock};
use crate::crowd::Crowd;

/// A worker that spins polls so often before it reads the clock, of a port that can be peeked at
/// and of another: about a microsecond, in which most misses are answered, and forty readings.
const PEEKS: u32 = 32;
const POLLS: u32 = 4;
/// About how long a peek takes, by which waits are counted that end before the clock is read.
const PEEK_NS: u64 = 30;
/// A thread that was told to ring a doorbell has done so after this time, however busy the system
/// is.
const OWED_FOR: Duration = Duration::from_secs(10);

/// What worker and service thread know of each other.
pub(super) struct Progress {
    /// There is a core for each process of this machine.
    spins: bool,
    spin_ns: AtomicU64,
    backoff_ns: AtomicU64,
    sleep_ns: AtomicU64,
    parks: Arc<Parks>,
    deferred: Deferred,
    /// How often the worker's patience is doubled.
    patience: AtomicU8,
    /// It has asked for something since it learned patience.
    may_learn: AtomicBool,
    crowd: Crowd,
    /// The worker is in the runtime.
    inside: AtomicBool,
    /// How often it waited, polling by itself, or took something then. That something comes is not
    /// enough: most calls take nothing.
    waits: AtomicU64,
    /// How long it waited, in nanoseconds.
    waited_ns: AtomicU64,
    /// The port can be peeked at.
    peeks: bool,
    service: Mutex<Option<Thread>>,
    /// The thread that takes what comes while no run is on has this.
    between: Mutex<()>,
    keeper: Mutex<Option<Thread>>,
}

impl Progress {
    pub fn new(neighbours: usize, port: &dyn Port) -> Progress {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let progress = Progress {
            spins: neighbours <= cores,
            spin_ns: AtomicU64::new(0),
            backoff_ns: AtomicU64::new(0),
            sleep_ns: AtomicU64::new(0),
            parks: Arc::new(Parks::new()),
            deferred: Deferred::new(port.nodes()),
            patience: AtomicU8::new(Patience::default().doublings()),
            may_learn: AtomicBool::new(false),
            crowd: Crowd::default(),
            inside: AtomicBool::new(true),
            waits: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            peeks: port.can_peek(),
            service: Mutex::new(None),
            between: Mutex::new(()),
            keeper: Mutex::new(None),
        };
        progress.waits(Waiting::default());
        progress.owes(port, OWED_FOR);
        progress
    }

    /// The port counts what it loses of the rings that threads of this process are owed. They come
    /// within this time, however busy the system is.
    pub fn owes(&self, port: &dyn Port, within: Duration) {
        port.owe(Parks::owed(&self.parks, within));
    }

    /// From here on the node waits so.
    pub fn waits(&self, how: Waiting) {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.spin_ns.store(ns(how.spin), Ordering::Relaxed);
        self.backoff_ns.store(ns(how.backoff), Ordering::Relaxed);
        self.sleep_ns.store(ns(how.sleep), Ordering::Relaxed);
    }

    /// How the node waits.
    fn how(&self) -> Waiting {
        let time = |ns: &AtomicU64| Duration::from_nanos(ns.load(Ordering::Relaxed));
        Waiting {
            spin: time(&self.spin_ns),
            backoff: time(&self.backoff_ns),
            sleep: time(&self.sleep_ns),
        }
    }

    /// A thread that sleeps although something is to be done looks by itself this often.
    fn backstop(&self) -> Duration {
        self.how().sleep * BACKSTOP
    }

    /// A run begins: nothing of the one before is left.
    pub fn begin(&self) {
        self.parks.handover.begin();
        self.inside.store(true, Ordering::SeqCst);
        self.parks.several.store(false, Ordering::SeqCst);
    }

    /// A process begins beside the program: from here on one may wait for what comes while another
    /// computes.
    pub fn has_several(&self, port: &dyn Port) {
        if !self.parks.several.swap(true, Ordering::SeqCst) {
            port.unpark();
        }
    }

    fn patience(&self) -> Patience {
        Patience::doubled(self.patience.load(Ordering::Relaxed))
    }

    /// How long the worker spins before it gives the notifications that it owes. It does not where
    /// another process of the node may go on meanwhile.
    fn patience_lasts(&self, how: &Waiting) -> Duration {
        match self.parks.several.load(Ordering::Relaxed) {
            true => Duration::ZERO,
            false => self.patience().lasts(how),
        }
    }

    /// The worker sends `to` lazily what it waits for next.
    #[inline]
    pub fn asks(&self, to: NodeId) {
        self.deferred.ask(to);
        self.may_learn.store(true, Ordering::Relaxed);
    }

    /// Something was sent lazily to `to`, for which the worker may wait later, or waits now;
    /// whether `to` is to be notified of it at once.
    pub fn starts(&self, to: NodeId) -> bool {
        self.deferred.start(to)
    }

    /// After a wait: whether the node that was asked answered by itself, where that is known.
    fn learns(&self, answered: Option<bool>) {
        if let Some(answered) = answered
            && self.may_learn.load(Ordering::Relaxed)
        {
            self.may_learn.store(false, Ordering::Relaxed);
            let patience = self.patience().learns(answered);
            self.patience.store(patience.doublings(), Ordering::Relaxed);
        }
    }

    /// A run is about to begin: from here on its own threads take what comes, and no other.
    pub fn wake_up(&self, port: &dyn Port) {
        self.parks.idle.store(false, Ordering::SeqCst);
        port.unpark();
        drop(lock(&self.between));
    }

    /// No run is on any more.
    pub fn idle(&self) {
        self.parks.idle.store(true, Ordering::SeqCst);
        if let Some(keeper) = &*lock(&self.keeper) {
            keeper.unpark();
        }
    }

    /// This is the service thread.
    pub fn serves(&self, thread: Thread) {
        *lock(&self.service) = Some(thread);
    }

    /// The worker has come to its end: no thread need serve while it computes.
    pub fn end(&self, port: &dyn Port) {
        self.parks.handover.end(|| port.unpark());
        if let Some(service) = lock(&self.service).take() {
            service.unpark();
        }
    }

    pub fn enter(&self) {
        self.inside.store(true, Ordering::Relaxed);
    }

    pub fn leave(&self) {
        self.deferred.forget_asked();
        self.inside.store(false, Ordering::Relaxed);
    }

    /// The worker takes what comes.
    fn serves_itself(&self) {
        // Only the worker counts.
        let waits = self.waits.load(Ordering::Relaxed);
        self.waits.store(waits + 1, Ordering::Relaxed);
    }

    /// How long the worker waited, in nanoseconds.
    pub fn waited(&self) -> u64 {
        self.waited_ns.load(Ordering::Relaxed)
    }

    /// The worker goes on after a wait of so long. Whether the node that was asked answered by
    /// itself, where that is known.
    fn goes_on(&self, waited_ns: u64, answered: Option<bool>) {
        self.deferred.goes_on();
        self.learns(answered);
        let waited_ns = self.waited() + waited_ns;
        self.waited_ns.store(waited_ns, Ordering::Relaxed);
    }

    /// Whether the worker was woken since the last time.
    pub fn take_wake(&self) -> bool {
        self.parks.handover.take_wake()
    }

    pub fn wake(&self, port: &dyn Port) {
        self.parks.handover.wake(|| port.unpark());
    }

    fn is_over(&self) -> bool {
        self.parks.handover.is_over()
    }

    /// What the service thread sees of the worker.
    fn seen(&self) -> Seen {
        Seen {
            parked: self.parks.handover.is_resting(),
            inside: self.inside.load(Ordering::Relaxed),
            waits: self.waits.load(Ordering::Relaxed),
        }
    }
}

/// What a poll of the port found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// What was waited for.
    Done,
    /// Something else.
    Something,
    Nothing,
}

impl Processes {
    /// Takes what comes until `done`, or for a time; whether it is done.
    pub(super) fn serve_until(
        &self,
        receivers: &Receivers<'_>,
        at_most: Option<Duration>,
        done: &dyn Fn() -> bool,
    ) -> bool {
        if done() {
            return true;
        }
        let progress = &self.progress;
        let mut out = Outbox::default();
        let mut poll = || {
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
        progress.serves_itself();
        let owed = progress.deferred.owes();
        let mut peeked = 0;
        let mut found = self.spin(&mut peeked, &mut poll);
        if found == Found::Done {
            // Most waits are over so soon, before they look at a clock or notify.
            progress.goes_on(PEEK_NS * u64::from(peeked), owed.then_some(true));
            return true;
        }
        let how = progress.how();
        let patience = owed.then(|| progress.patience_lasts(&how));
        let mut wait =
            Wait::new(how, progress.spins, at_most, patience).crowded_until(progress.crowd.until());
        let is_done = loop {
            let came = match found {
                Found::Done => break true,
                Found::Something => true,
                Found::Nothing => false,
            };
            if came {
                progress.serves_itself();
            }
            let now = self.since_made();
            let spun = Duration::from_nanos(PEEK_NS * u64::from(peeked));
            let began = now.saturating_sub(spun);
            found = match wait.polled(came, began, now) {
                Next::Spin => self.spin(&mut peeked, &mut poll),
                Next::Yield => {
                    std::thread::yield_now();
                    self.spin(&mut peeked, &mut poll)
                }
                Next::Notify => {
                    self.notify_deferred();
                    poll()
                }
                Next::Park(_) => self.park(&mut wait, &mut poll),
                Next::GiveUp => break false,
            };
        };
        let ended = self.since_made();
        if is_done {
            wait.done(ended);
        }
        progress.crowd.is_until(wait.is_crowded_until());
        let waited = wait.began().map_or(Duration::ZERO, |began| ended - began);
        progress.goes_on(waited.as_nanos() as u64, wait.answered());
        is_done
    }

    /// Notifies the nodes to which that is owed, for the worker waits or lets another process of
    /// this node go on.
    pub(super) fn notify_deferred(&self) {
        self.progress.deferred.settle(|to| self.port.notify(to));
    }

    /// Takes what has come, of a worker that goes on at once.
    pub(super) fn take_what_came(&self, receivers: &Receivers<'_>) {
        let mut out = Outbox::default();
        self.poll(receivers, &mut out);
        self.post_all(receivers, &mut out);
    }

    /// Another thread than the worker waits until `done`, for as long as a worker spins. It takes
    /// what it sees, which another thread may take as well, and leaves it to the worker and the
    /// service thread to sleep in the port. Whether it is done.
    pub(super) fn help_until(&self, receivers: &Receivers<'_>, done: &dyn Fn() -> bool) -> bool {
        let mut polls = || {
            (0..PEEKS).any(|_| {
                if self.port.peek() {
                    self.take_what_came(receivers);
                }
                std::hint::spin_loop();
                done()
            })
        };
        let clock = || self.since_made();
        let progress = &self.progress;
        done()
            || progress
                .crowd
                .wait_until(progress.how(), &clock, &mut polls)
    }

    /// Polls for about half a microsecond, until something has come.
    #[inline]
    fn spin(&self, peeked: &mut u32, poll: &mut dyn FnMut() -> Found) -> Found {
        let peeks = self.progress.peeks;
        for number in 0..if peeks { PEEKS } else { POLLS } {
            let found = match peeks && number > 0 && !self.port.peek() {
                true => Found::Nothing,
                false => poll(),
            };
            *peeked = peeked.saturating_add(1);
            if found != Found::Nothing {
                return found;
            }
            std::hint::spin_loop();
        }
        Found::Nothing
    }

    /// Sleeps in the port until something has come, or the wait's time is over.
    fn park(&self, wait: &mut Wait, poll: &mut dyn FnMut() -> Found) -> Found {
        let progress = &self.progress;
        let sleep = || loop {
            // Again: what came before the service thread stayed away may lie there.
            let found = poll();
            if found != Found::Nothing {
                return found;
            }
            let now = self.since_made();
            match wait.polled(false, now, now) {
                Next::Park(at_most) => {
                    progress.parks.by(Who::Worker, || self.port.park(at_most));
                }
                _ => return Found::Nothing,
            }
        };
        let serve = || {
            if let Some(service) = &*lock(&progress.service) {
                service.unpark();
            }
        };
        progress
            .parks
            .handover
            .rest(|| self.port.unpark(), sleep, serve)
    }

    /// Sees to it that the others hear that this process lives, until `over`: takes what comes
    /// while no run is on, and [attends](Processes::attend) to those that are. One thread of the
    /// process is to do so, if the program may be slow between two runs, or within a call.
    pub fn keep(&self, over: &dyn Fn() -> bool) {
        let progress = &self.progress;
        *lock(&progress.keeper) = Some(std::thread::current());
        let mut out = Outbox::default();
        while !over() {
            if !progress.parks.idle.load(Ordering::SeqCst) {
                std::thread::park_timeout(self.attend().min(progress.backstop()));
                continue;
            }
            let between = lock(&progress.between);
            if progress.parks.idle.load(Ordering::SeqCst) {
                let backstop = progress.backstop();
                progress.parks.by(Who::Keeper, || self.port.park(backstop));
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
        let progress = &self.progress;
        let (backstop, looks) = (progress.backstop(), progress.how().sleep);
        let mut out: Outbox<Message> = Outbox::default();
        let mut service = Service::new(progress.how());
        while !progress.is_over() {
            let seen = progress.seen();
            match service.next(seen) {
                service::State::Sleeping => std::thread::park_timeout(backstop),
                service::State::BackingOff(time) => std::thread::park_timeout(time),
                service::State::Attached => {
                    // Of several processes one may wait while another computes; and where nodes may
                    // be lost, what comes is confirmed. Asked where no other thread can be unparked
                    // any more.
                    let several = || progress.parks.several.load(Ordering::SeqCst);
                    let park = || match several() || self.survives() {
                        true => progress.parks.by(Who::Service, || self.port.park(backstop)),
                        false => progress.parks.by(Who::CoarseService, || {
                            self.port.park_coarse(backstop, looks);
                        }),
                    };
                    let began = self.since_made();
                    if !progress.parks.handover.sleep(park) {
                        continue;
                    }
                    if progress.is_over() {
                        return;
                    }
                    let slept = self.since_made() - began;
                    let taken = self.poll(receivers, &mut out);
                    self.post_all(receivers, &mut out);
                    service.served(seen.waits, taken, slept);
                }
            }
        }
    }
}
