//! Nodes as threads of one process.
//!
//! No thread serves: whoever sends runs the receiver's handler. A worker that waits spins only
//! while fewer workers wait than the machine has cores, then yields, then parks. (Four spinning
//! members on two cores made a barrier of 4 ms; yielding, 1.25 us.)

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use dhole_model::NodeId;
use dhole_net::{InProcess, Outbox, Port};
use dhole_protocol::Message;

use crate::machine::{Machine, Receivers, StartError, Woken};
use crate::random::Random;

/// How often a waiting worker looks again before it takes the next milder way to wait.
const SPINS: u32 = 2_000;
const YIELDS: u32 = 200;
/// Bytes of a worker's stack: what a main thread usually has.
const STACK: usize = 8 << 20;
/// A parked worker looks at the time this often at the latest.
const LONGEST_PARK: Duration = Duration::from_millis(100);

/// Nodes as threads of one process.
pub struct Threads {
    seats: Vec<Seat>,
    started: Instant,
    waiting: AtomicUsize,
    cores: usize,
}

/// One node's own corner of the machine.
#[repr(align(128))]
struct Seat {
    woken: AtomicBool,
    parked: AtomicBool,
    thread: OnceLock<Thread>,
    random: Random,
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
            thread: OnceLock::new(),
            random: Random::new(seed, NodeId::at(node)),
        };
        Threads {
            seats: (0..nodes).map(seat).collect(),
            started: Instant::now(),
            waiting: AtomicUsize::new(0),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
        }
    }

    fn wake(&self, node: NodeId) {
        let seat = &self.seats[node.index()];
        seat.woken.store(true, Ordering::SeqCst);
        if seat.parked.load(Ordering::SeqCst)
            && let Some(thread) = seat.thread.get()
        {
            thread.unpark();
        }
    }

    /// Waits until `ready`, in ever milder ways.
    fn wait_until_woken(&self, seat: &Seat, waiting: usize, deadline: Duration) -> Woken {
        if waiting < self.cores {
            for _ in 0..SPINS {
                if seat.woken.swap(false, Ordering::SeqCst) {
                    return Woken::ByWake;
                }
                std::hint::spin_loop();
            }
        }
        for _ in 0..YIELDS {
            if seat.woken.swap(false, Ordering::SeqCst) {
                return Woken::ByWake;
            }
            std::thread::yield_now();
        }
        loop {
            seat.parked.store(true, Ordering::SeqCst);
            if seat.woken.swap(false, Ordering::SeqCst) {
                seat.parked.store(false, Ordering::SeqCst);
                return Woken::ByWake;
            }
            let left = deadline.saturating_sub(self.started.elapsed());
            if left.is_zero() {
                seat.parked.store(false, Ordering::SeqCst);
                return Woken::ByTime;
            }
            std::thread::park_timeout(left.min(LONGEST_PARK));
            seat.parked.store(false, Ordering::SeqCst);
        }
    }
}

impl Machine for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn now(&self, _node: NodeId) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn random(&self, node: NodeId) -> u64 {
        self.seats[node.index()].random.next()
    }

    fn send(&self, receivers: &Receivers<'_>, _node: NodeId, out: &mut Outbox<Message>) {
        InProcess::new(receivers)
            .post(out, &|node| self.wake(node))
            .expect("the protocols address only nodes of the cluster");
    }

    fn wait(&self, node: NodeId, at_most: Duration) -> Woken {
        let seat = &self.seats[node.index()];
        if seat.woken.swap(false, Ordering::SeqCst) {
            return Woken::ByWake;
        }
        let deadline = self.started.elapsed() + at_most;
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        let woken = self.wait_until_woken(seat, waiting, deadline);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        woken
    }

    fn enter(&self, _node: NodeId) {}

    fn leave(&self, _node: NodeId) {}

    fn work(&self, _node: NodeId, _units: u64) {}

    fn start(
        &self,
        _receivers: &Receivers<'_>,
        body: &(dyn Fn(NodeId) + Sync),
    ) -> Result<(), StartError> {
        let go = OnceLock::new();
        let nodes = self.seats.len();
        std::thread::scope(|scope| {
            for (index, seat) in self.seats.iter().enumerate() {
                let go = &go;
                let run = move || {
                    if *go.wait() {
                        seat.thread.get_or_init(std::thread::current);
                        body(NodeId::at(index));
                    }
                };
                let thread = std::thread::Builder::new()
                    .name(format!("dhole-{index}"))
                    .stack_size(STACK);
                if let Err(cause) = thread.spawn_scoped(scope, run) {
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
            Ok(())
        })
    }
}
