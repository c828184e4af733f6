//! The machines on which the checks run.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dhole_live::Threads;
use dhole_model::unpoisoned;
use dhole_model::{Coherence, Counters, MessageKind};
use dhole_node::{Machine, Outcome, Races, Result, RunError, Settings, Worker, run_on};
use dhole_sim::Sim;

/// A kind of machine for the checks.
pub trait Platform: Sync {
    /// Its name.
    fn name(&self) -> String;

    /// A machine for one run.
    fn machine(&self, nodes: usize, seed: u64) -> Box<dyn Machine>;

    /// The machines for one run if each has one node of the cluster; none if one machine has all.
    fn machines(&self, _nodes: usize, _seed: u64) -> Vec<Box<dyn Machine + Send>> {
        Vec::new()
    }

    /// The settings of a cluster of `nodes` nodes.
    fn settings(&self, nodes: usize) -> Settings {
        Settings {
            suspect_after: Duration::from_millis(50),
            races: Races::Warn,
            ..Settings::nodes(nodes)
        }
    }

    /// The protocol of objects whose allocation names no other.
    fn coherence(&self) -> Coherence {
        self.settings(1).coherence
    }
}

/// Runs a program on all nodes of a cluster.
///
/// # Errors
/// As [`run_on`].
///
/// # Panics
/// When the nodes are on machines of their own, and the run fails on some of them alone.
pub fn run<R: Send>(
    platform: &dyn Platform,
    nodes: usize,
    seed: u64,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> Result<Outcome<R>, RunError> {
    run_program(platform, nodes, seed, &program)
}

/// A program. What runs one is compiled once for each type of values, not for each program.
type Program<'a, R> = dyn for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync + 'a;

fn run_program<R: Send>(
    platform: &dyn Platform,
    nodes: usize,
    seed: u64,
    program: &Program<'_, R>,
) -> Result<Outcome<R>, RunError> {
    let machines = platform.machines(nodes, seed);
    let settings = &platform.settings(nodes);
    if machines.is_empty() {
        let _seats = Seats::take(nodes);
        let machine = platform.machine(nodes, seed);
        let ended = run_on(&*machine, settings, program);
        if let Ok(outcome) = &ended {
            assert_none_by_time(outcome, settings, machine.name());
        }
        return ended;
    }
    let ended = run_on_each(machines, settings, program);
    let failed = ended.iter().filter(|ended| ended.is_err()).count();
    assert!(
        failed == 0 || failed == ended.len(),
        "a failure is everybody's"
    );
    ended.into_iter().next().expect("a cluster has a node")
}

/// Runs a program on machines of one node each, as processes are. Returns what each node came to.
///
/// One such run of this process goes at a time, and no other run may take ids meanwhile: between
/// two nodes of it the process must have the same ids left.
pub fn run_processes<R: Send>(
    machines: Vec<Box<dyn Machine + Send>>,
    settings: &Settings,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> Vec<Result<Outcome<R>, RunError>> {
    run_on_each(machines, settings, &program)
}

fn run_on_each<R: Send>(
    machines: Vec<Box<dyn Machine + Send>>,
    settings: &Settings,
    program: &Program<'_, R>,
) -> Vec<Result<Outcome<R>, RunError>> {
    let _seats = Seats::take(machines.len());
    let _alone = unpoisoned::lock(&ALONE);
    std::thread::scope(|scope| {
        let start = |machine: Box<dyn Machine + Send>| {
            scope.spawn(move || {
                let ended = run_on(&*machine, settings, program);
                if let Ok(outcome) = &ended {
                    assert_none_by_time(outcome, settings, machine.name());
                }
                ended
            })
        };
        let running: Vec<_> = machines.into_iter().map(start).collect();
        let ended = running.into_iter().map(|node| node.join());
        ended
            .map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Nodes that have so much patience wait for no message for as long, in a simulation.
const LONG: Duration = Duration::from_millis(10);

/// No wait of a run ended by chance: because a timer or a probe came. In a simulation nobody even
/// looked for a deadlock where no node computed for so long that it had to.
fn assert_none_by_time<R>(outcome: &Outcome<R>, settings: &Settings, machine: &str) {
    let each = || outcome.counters.iter();
    let by_time: u64 = each().map(|node| node.waits_ended_by_time).sum();
    assert_eq!(by_time, 0, "{machine}: waits that ended by time");
    let patient = settings.suspect_after >= LONG;
    let computed = each().map(|node| node.computed_ns).max().unwrap_or(0);
    if machine == "sim" && patient && u128::from(computed) < settings.suspect_after.as_nanos() {
        let sent = |node: &Counters| node.sent(MessageKind::Probe);
        let probes: u64 = each().map(sent).sum();
        assert_eq!(probes, 0, "{machine}: probes, also of threads");
    }
}

/// Room for the nodes of a cluster beside those of other tests. A process whose first cluster is
/// small has room for [`Seats::ALL`] nodes at a time.
struct Seats(usize);

/// Held by a test whose nodes take only the ids on which they agree.
static ALONE: Mutex<()> = Mutex::new(());

static TAKEN: Mutex<usize> = Mutex::new(0);
static GIVEN_BACK: Condvar = Condvar::new();

impl Seats {
    const ALL: usize = 64;

    fn taken() -> MutexGuard<'static, usize> {
        unpoisoned::lock(&TAKEN)
    }

    /// Waits until there is room.
    fn take(nodes: usize) -> Seats {
        let full = |taken: &mut usize| *taken > 0 && *taken + nodes > Seats::ALL;
        let waited = GIVEN_BACK.wait_while(Seats::taken(), full);
        *waited.unwrap_or_else(PoisonError::into_inner) += nodes;
        Seats(nodes)
    }
}

impl Drop for Seats {
    fn drop(&mut self) {
        *Seats::taken() -= self.0;
        GIVEN_BACK.notify_all();
    }
}

/// Nodes as threads of this process.
#[derive(Clone, Copy, Debug)]
pub struct OnThreads;

impl Platform for OnThreads {
    fn name(&self) -> String {
        "threads".into()
    }

    fn machine(&self, nodes: usize, seed: u64) -> Box<dyn Machine> {
        Box::new(Threads::new(nodes, seed))
    }
}

/// A simulated cluster in which computation takes as long as the program says, and messages
/// overtake each other.
#[derive(Clone, Copy, Debug)]
pub struct Simulated {
    /// The largest part of the latency that is added to it at random.
    pub jitter: f64,
}

impl Default for Simulated {
    /// With as much jitter as there can be: any message may take twice as long as another.
    fn default() -> Simulated {
        Simulated { jitter: 1.0 }
    }
}

impl Platform for Simulated {
    fn name(&self) -> String {
        format!("sim, jitter {}", self.jitter)
    }

    fn machine(&self, nodes: usize, seed: u64) -> Box<dyn Machine> {
        Box::new(Sim::new(self.simulates(nodes, seed)))
    }
}

impl Simulated {
    /// The settings of the simulated machine.
    pub fn simulates(&self, nodes: usize, seed: u64) -> dhole_sim::Settings {
        let mut settings = dhole_sim::Settings::fixed_cost(nodes);
        settings.seed = seed;
        settings.network.jitter = self.jitter;
        settings.stack_bytes = 256 << 10;
        settings
    }
}

/// A platform that is another one but for a setting.
pub trait Changed: Sync {
    /// Its name.
    fn name(&self) -> String;

    /// The other platform.
    fn on(&self) -> &dyn Platform;

    /// Changes the setting.
    fn change(&self, settings: &mut Settings);
}

impl<C: Changed> Platform for C {
    fn name(&self) -> String {
        Changed::name(self)
    }

    fn machine(&self, nodes: usize, seed: u64) -> Box<dyn Machine> {
        self.on().machine(nodes, seed)
    }

    fn machines(&self, nodes: usize, seed: u64) -> Vec<Box<dyn Machine + Send>> {
        self.on().machines(nodes, seed)
    }

    fn settings(&self, nodes: usize) -> Settings {
        let mut settings = self.on().settings(nodes);
        self.change(&mut settings);
        settings
    }
}

/// Another platform, under another protocol than the lazy one.
#[derive(Clone, Copy, Debug)]
pub struct Under<P>(pub P, pub Coherence);

impl<P: Platform> Changed for Under<P> {
    fn name(&self) -> String {
        format!("{}, {}", self.0.name(), self.1)
    }

    fn on(&self) -> &dyn Platform {
        &self.0
    }

    fn change(&self, settings: &mut Settings) {
        settings.coherence = self.1;
    }
}
