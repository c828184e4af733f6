//! Nodes as threads of one process.
//!
//! No thread serves: whoever sends runs the receiver's handler. A worker that waits spins only
//! while fewer workers wait than the machine has cores, then yields, then parks. (Four spinning
//! members on two cores made a barrier of 4 ms; yielding, 1.25 us.)

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use dhole_model::unpoisoned;
use dhole_model::{NodeId, Notify};
use dhole_net::{InProcess, Outbox, Waiting};
use dhole_node::{Fiber, Machine, Receivers, StartError, Woken};
use dhole_protocol::Message;
use dhole_space::runtime_thread::SignalMask;
use rustix::time::ClockId;

use crate::crowd::Crowd;
use crate::fibers::{Maker, Turn};
use crate::processor::processor_ns;
use crate::random::Random;

/// Looks of a worker that spins between two at the clock, which takes as long as some of them.
const LOOKS: u32 = 64;
/// Bytes of a worker's stack: what a main thread usually has.
const STACK: usize = 8 << 20;

/// Nodes as threads of one process, for one run after the other.
pub struct Threads {
    seats: Vec<Seat>,
    made: Instant,
    /// Nanoseconds from then to the beginning of the last run.
    began_ns: AtomicU64,
    waiting: AtomicUsize,
    ways: Waiting,
    cores: usize,
    crowd: Crowd,
    maker: Maker,
    /// Nodes whose program has not ended.
    unfinished: AtomicUsize,
    /// In what time a worker that parks is unparked, however busy the system is.
    owed_for: Duration,
}

/// In what time a worker that parks is unparked, unless something else is said.
const OWED_FOR: Duration = Duration::from_secs(10);
/// A worker that was not unparked looks so often whether it is.
const LOOKS_EVERY: Duration = Duration::from_millis(1);

/// One node's own corner of the machine.
#[repr(align(128))]
struct Seat {
    woken: AtomicBool,
    parked: AtomicBool,
    /// How often it was unparked.
    unparks: AtomicU64,
    /// How often it went on only because its time was over, though it was to be unparked.
    lost: AtomicU64,
    /// The thread that is the node in the last run.
    thread: Mutex<Option<Thread>>,
    turn: Turn,
    random: Random,
}

impl Seat {
    /// Whether the worker was woken since the last time. A look leaves the line with whoever may
    /// wake it; only what is found takes it.
    fn take_wake(&self) -> bool {
        self.woken.load(Ordering::SeqCst) && self.woken.swap(false, Ordering::SeqCst)
    }

    fn thread(&self) -> MutexGuard<'_, Option<Thread>> {
        unpoisoned::lock(&self.thread)
    }
}

impl Threads {
    /// A machine for `nodes` nodes whose random streams come from `seed`.
    #[expect(
        clippy::disallowed_methods,
        reason = "a live machine is where the clock is read"
    )]
    pub fn new(nodes: usize, seed: u64) -> Threads {
        let seat = |node| Seat {
            woken: AtomicBool::new(false),
            parked: AtomicBool::new(false),
            unparks: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            thread: Mutex::new(None),
            turn: Turn::new(),
            random: Random::new(seed, NodeId::at(node)),
        };
        Threads {
            seats: (0..nodes).map(seat).collect(),
            made: Instant::now(),
            began_ns: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            ways: Waiting::default(),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            crowd: Crowd::default(),
            maker: Maker::new(),
            unfinished: AtomicUsize::new(0),
            owed_for: OWED_FOR,
        }
    }

    /// The same, where a worker that parks is unparked within this time, which is 10 s unless it is
    /// said here: one that its time wakes counts as one whose doorbell was lost.
    pub fn owing(mut self, within: Duration) -> Threads {
        self.owed_for = within;
        self
    }

    /// How workers wait.
    pub fn waiting(mut self, ways: Waiting) -> Threads {
        self.ways = ways;
        self
    }

    /// The time since the last run began.
    fn elapsed(&self) -> Duration {
        let began = Duration::from_nanos(self.began_ns.load(Ordering::Relaxed));
        self.made.elapsed().saturating_sub(began)
    }

    /// A run begins: nothing of the one before is left.
    fn begin_run(&self) {
        self.unfinished.store(self.seats.len(), Ordering::SeqCst);
        let now = self.made.elapsed().as_nanos() as u64;
        self.began_ns.store(now, Ordering::Relaxed);
        for seat in &self.seats {
            seat.woken.store(false, Ordering::SeqCst);
            seat.lost.store(0, Ordering::SeqCst);
        }
    }

    /// The thread that runs this is the node from here on.
    fn take_seat(&self, node: NodeId, fiber: Fiber) {
        let seat = &self.seats[node.index()];
        seat.turn.wait(fiber);
        *seat.thread() = Some(std::thread::current());
    }

    fn wake(&self, node: NodeId) {
        let seat = &self.seats[node.index()];
        seat.woken.store(true, Ordering::SeqCst);
        if seat.parked.load(Ordering::SeqCst)
            && let Some(thread) = &*seat.thread()
        {
            thread.unpark();
            seat.unparks.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A parked worker whose time is over finds that it was woken since `unparks` was read: whether
    /// it is unparked for that too.
    fn is_unparked(&self, seat: &Seat, unparks: u64) -> bool {
        let mut left = self.owed_for;
        while seat.unparks.load(Ordering::SeqCst) == unparks {
            if left.is_zero() {
                return false;
            }
            let next = left.min(LOOKS_EVERY);
            left -= next;
            std::thread::park_timeout(next);
        }
        true
    }

    /// Looks until it is done, for as long as a worker yields; whether it is.
    fn wait_yielding(&self, done: &mut dyn FnMut() -> bool) -> bool {
        self.crowd.wait_until(self.ways, &|| self.elapsed(), done)
    }

    /// Waits until the worker is woken, or for a time, in ever milder ways.
    fn wait_until_woken(&self, seat: &Seat, waiting: usize, at_most: Duration) -> Woken {
        let began = self.elapsed();
        let deadline = began + at_most;
        while waiting < self.cores && self.elapsed() - began < self.ways.spin {
            for _ in 0..LOOKS {
                if seat.take_wake() {
                    return Woken::ByWake;
                }
                std::hint::spin_loop();
            }
        }
        if self.wait_yielding(&mut || seat.take_wake()) {
            return Woken::ByWake;
        }
        loop {
            let unparks = seat.unparks.load(Ordering::SeqCst);
            seat.parked.store(true, Ordering::SeqCst);
            if seat.take_wake() {
                seat.parked.store(false, Ordering::SeqCst);
                return Woken::ByWake;
            }
            let left = deadline.saturating_sub(self.elapsed());
            if left.is_zero() {
                seat.parked.store(false, Ordering::SeqCst);
                return Woken::ByTime;
            }
            std::thread::park_timeout(left);
            let is_late = seat.woken.load(Ordering::SeqCst) && self.elapsed() >= deadline;
            if is_late && !self.is_unparked(seat, unparks) {
                seat.lost.fetch_add(1, Ordering::SeqCst);
            }
            seat.parked.store(false, Ordering::SeqCst);
        }
    }
}

impl Machine for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn now(&self, _node: NodeId) -> u64 {
        self.elapsed().as_nanos() as u64
    }

    fn random(&self, node: NodeId) -> u64 {
        self.seats[node.index()].random.next()
    }

    fn send(
        &self,
        receivers: &Receivers<'_>,
        _node: NodeId,
        out: &mut Outbox<Message>,
        _notify: Notify,
    ) {
        InProcess::new(receivers)
            .post(out, &|node| self.wake(node))
            .expect("the protocols address only nodes of the cluster");
        // It took the time that it took.
        out.take_work();
    }

    fn sees(&self, _node: NodeId, _of: NodeId) -> bool {
        true
    }

    fn wait(&self, node: NodeId, at_most: Duration) -> Woken {
        let seat = &self.seats[node.index()];
        if seat.take_wake() {
            return Woken::ByWake;
        }
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        let woken = self.wait_until_woken(seat, waiting, at_most);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        woken
    }

    fn owed_for(&self) -> Duration {
        self.owed_for
    }

    fn lost_doorbells(&self, node: NodeId) -> u64 {
        self.seats[node.index()].lost.load(Ordering::SeqCst)
    }

    fn has_threads(&self) -> bool {
        true
    }

    fn help(&self, _: &Receivers<'_>, _: NodeId, done: &dyn Fn() -> bool) -> bool {
        // Whoever sends runs the handlers of this node: there is nothing to take.
        self.wait_yielding(&mut || done())
    }

    fn wake_worker(&self, node: NodeId) {
        self.wake(node);
    }

    fn enter(&self, _node: NodeId) {}

    fn leave(&self, _node: NodeId) {}

    fn counts_moments(&self) -> bool {
        false
    }

    fn processor(&self, _node: NodeId) -> Option<u64> {
        processor_ns(ClockId::ThreadCPUTime)
    }

    fn worker_processor(&self, node: NodeId) -> Option<u64> {
        self.processor(node)
    }

    fn work(&self, _node: NodeId, _units: u64) {}

    fn start_fibers(
        &self,
        _receivers: &Receivers<'_>,
        body: &(dyn Fn(NodeId, Fiber) -> Fiber + Sync),
    ) -> Result<(), StartError> {
        let go = OnceLock::new();
        let nodes = self.seats.len();
        self.begin_run();
        let wanted = self.maker.open();
        let run = |node: NodeId, fiber: Fiber| {
            self.take_seat(node, fiber);
            let next = body(node, fiber);
            self.seats[node.index()].turn.give(next);
        };
        let made = std::thread::scope(|scope| {
            for index in 0..nodes {
                let go = &go;
                let program = move || {
                    let _ends = Ends(self);
                    if *go.wait() {
                        run(NodeId::at(index), Fiber::PROGRAM);
                    }
                };
                let thread = std::thread::Builder::new()
                    .name(format!("dhole-{index}"))
                    .stack_size(STACK);
                if let Err(cause) = thread.spawn_scoped(scope, program) {
                    let _ = go.set(false);
                    return Err(StartError::Refused {
                        machine: self.name(),
                        nodes,
                        what: "a thread",
                        cause: cause.to_string(),
                    });
                }
            }
            let _ = go.set(true);
            // This thread is the runtime's meanwhile.
            let signals = SignalMask::current();
            let make = || Maker::make(scope, wanted, (STACK, signals), run);
            SignalMask::of_runtime().during(make);
            Ok(())
        });
        self.maker.close();
        made
    }

    fn begin(&self, node: NodeId, fiber: Fiber) -> Result<(), StartError> {
        let whose = (self.name(), self.seats.len());
        self.maker.want(node, fiber, whose)
    }

    fn hand_over(&self, node: NodeId, me: Fiber, to: Fiber) {
        self.seats[node.index()].turn.give(to);
        self.take_seat(node, me);
    }
}

/// The program of a node ends, by unwinding too.
struct Ends<'a>(&'a Threads);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if self.0.unfinished.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.maker.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_is_woken_and_not_unparked_is_counted() {
        let node = NodeId(0);
        let time = Duration::from_millis(30);
        for is_lost in [false, true] {
            let machine = Threads::new(1, 0);
            let machine = match is_lost {
                true => machine.owing(Duration::from_millis(5)),
                false => machine,
            };
            machine.take_seat(node, Fiber::PROGRAM);
            let seat = &machine.seats[0];
            let wait = || {
                // A thread that ends unparks the one that made it: so it ends behind the wait.
                let is_over = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        while !seat.parked.load(Ordering::SeqCst) {
                            std::thread::yield_now();
                        }
                        match is_lost {
                            true => seat.woken.store(true, Ordering::SeqCst),
                            false => machine.wake(node),
                        }
                        while !is_over.load(Ordering::SeqCst) {
                            std::thread::yield_now();
                        }
                    });
                    while machine.wait(node, time) == Woken::ByTime {}
                    is_over.store(true, Ordering::SeqCst);
                });
            };
            for _ in 0..100 {
                wait();
                if !is_lost || machine.lost_doorbells(node) > 0 {
                    break;
                }
                // The worker has found the wake where it looked before it slept: again.
            }
            assert_eq!(machine.lost_doorbells(node), u64::from(is_lost));
        }
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the machine's clock is held against the real one"
    )]
    fn a_second_run_has_its_own_threads_and_time_and_no_wakes_of_the_first() {
        let machine = Threads::new(2, 0);
        for _ in 0..2 {
            let before = Instant::now();
            let body = |node: NodeId| {
                assert!(u128::from(machine.now(node)) <= before.elapsed().as_nanos());
                let seat = &machine.seats[node.index()];
                let thread = seat.thread().as_ref().map(Thread::id);
                assert_eq!(thread, Some(std::thread::current().id()));
                assert_eq!(machine.wait(node, Duration::ZERO), Woken::ByTime);
                machine.wake(node);
            };
            machine.start(&[], &body).unwrap();
        }
    }
}
