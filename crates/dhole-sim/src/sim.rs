use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use corosensei::Coroutine;
use corosensei::stack::{DefaultStack, Stack};
use dhole_model::unpoisoned;
use dhole_model::{NodeId, Notify};
use dhole_net::Outbox;
use dhole_node::{Fiber, Machine, MessageSizes, Receivers, StartError, Woken};
use dhole_protocol::Message;

use crate::cluster::{Cluster, Next, Suspension};
use crate::confined::Confined;
use crate::node::Suspended;
use crate::{Computation, Report, Settings};

/// A simulated cluster. The thread that calls [`start`](Machine::start) runs everything: each body
/// as a coroutine with a stack of its own, and the handlers on the caller's stack.
///
/// If a body is suspended while it unwinds, the thread unwinds for the other bodies too:
/// [`std::thread::panicking`] then returns true in them.
///
/// # Panics
/// The methods of [`Machine`] other than `name` and `start` panic outside a run and on any other
/// thread than the run's. `enter` and `wait` also panic if the caller is not the node's own body.
/// So they do if the body calls them from a coroutine within its own, such as the body of another
/// simulated cluster.
pub struct Sim {
    settings: Settings,
    cluster: Confined<Cluster>,
    report: Mutex<Report>,
}

/// Nanoseconds on this host's clock.
fn here_ns() -> u64 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let elapsed = BEGAN.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

/// The panic with which workers unwind when the run ends because another body or a handler unwound.
struct RunEnds;

impl Sim {
    /// A cluster with these settings, which [`start`](Machine::start) checks.
    pub fn new(settings: Settings) -> Sim {
        Sim {
            settings,
            cluster: Confined::new(),
            report: Mutex::default(),
        }
    }

    /// The settings of the cluster.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The report of the last run; all 0 before the first.
    pub fn report(&self) -> Report {
        unpoisoned::lock(&self.report).clone()
    }

    /// Suspends the coroutine that calls this, as `choose` decides.
    fn suspend(&self, choose: impl FnOnce(&mut Cluster) -> Suspension) {
        match self.cluster.with(choose) {
            Suspension::By(body) => {
                body.suspend();
                let ending = self.cluster.with(|cluster| cluster.is_ending());
                if ending && !std::thread::panicking() {
                    resume_unwind(Box::new(RunEnds));
                }
            }
            Suspension::Unwind => resume_unwind(Box::new(RunEnds)),
            Suspension::Refused => {}
        }
    }

    /// The stacks of all nodes.
    fn stacks(&self) -> Result<Vec<DefaultStack>, StartError> {
        (0..self.settings.nodes)
            .map(|_| DefaultStack::new(self.settings.stack_bytes))
            .collect::<Result<_, _>>()
            .map_err(|error| self.refuse("memory for the stacks", error.to_string()))
    }

    fn refuse(&self, what: &'static str, cause: String) -> StartError {
        StartError::Refused {
            machine: self.name(),
            nodes: self.settings.nodes,
            what,
            cause,
        }
    }

    /// Runs the cluster until all bodies have returned.
    fn schedule(&self, receivers: &Receivers<'_>, bodies: &mut Bodies<'_>) {
        let mut out = Outbox::default();
        loop {
            match self.cluster.with(|cluster| cluster.next()) {
                Next::Deliver(arrival, envelope) => {
                    let wake = receivers[arrival.to.index()].deliver(envelope, &mut out);
                    self.cluster
                        .with(|cluster| cluster.handled(arrival, wake, &mut out));
                }
                Next::Resume(node) => {
                    bodies.resume(node);
                    self.cluster.with(|cluster| cluster.suspended());
                }
                Next::Finish => return,
            }
        }
    }

    /// Runs `body` as the coroutines of all nodes, on `stacks`.
    fn run(
        &self,
        receivers: &Receivers<'_>,
        body: &(dyn Fn(NodeId, Fiber) -> Fiber + Sync),
        stacks: Vec<DefaultStack>,
    ) -> Result<(), Box<dyn Any + Send>> {
        let mut bodies = Bodies {
            sim: self,
            body,
            programs: Vec::with_capacity(stacks.len()),
            others: BTreeMap::new(),
        };
        for (index, stack) in stacks.into_iter().enumerate() {
            // SAFETY: the coroutine is dropped with `bodies`, which borrows what it borrows.
            let program = unsafe { bodies.make(NodeId::at(index), Fiber::PROGRAM, stack) };
            bodies.programs.push(program);
        }
        let ran = catch_unwind(AssertUnwindSafe(|| self.schedule(receivers, &mut bodies)));
        // As well as those of nodes that have crashed.
        bodies.end();
        drop(bodies);
        let report = self.cluster.with(|cluster| cluster.report());
        *unpoisoned::lock(&self.report) = report;
        ran
    }
}

/// The coroutines of all nodes.
struct Bodies<'a> {
    sim: &'a Sim,
    body: &'a (dyn Fn(NodeId, Fiber) -> Fiber + Sync),
    programs: Vec<Worker>,
    others: BTreeMap<(NodeId, Fiber), Worker>,
}

impl<'a> Bodies<'a> {
    /// A coroutine for a body.
    ///
    /// # Safety
    /// It borrows `sim` and `body` for `'a`, and must not outlive that.
    unsafe fn make(&self, node: NodeId, fiber: Fiber, stack: DefaultStack) -> Worker {
        let addresses = stack.limit().get()..stack.base().get();
        let (sim, body) = (self.sim, self.body);
        let worker = move |yielder: &_, ()| {
            // SAFETY: this is the body of the coroutine on that stack. `finish` forgets it below
            // when the body is over. Where that unwinds the run ends, and no coroutine is made any
            // more.
            let body_here = unsafe { Suspended::new(yielder, addresses) };
            sim.cluster.with(|cluster| cluster.begin(node, body_here));
            let next = body(node, fiber);
            sim.cluster.with(|cluster| cluster.finish(node, next));
        };
        // SAFETY: as the caller promises, it does not outlive what it borrows.
        unsafe { Coroutine::with_stack_unchecked(stack, worker) }
    }

    /// Resumes the present body of `node` until it is suspended or over.
    fn resume(&mut self, node: NodeId) {
        let fiber = self.sim.cluster.with(|cluster| cluster.fiber(node));
        if fiber == Fiber::PROGRAM {
            self.programs[node.index()].resume(());
            return;
        }
        let key = (node, fiber);
        if let Some(stack) = self.sim.cluster.with(|it| it.stacks.remove(&key)) {
            // SAFETY: the coroutine is dropped with `self`, which borrows what it borrows.
            let made = unsafe { self.make(node, fiber, stack) };
            self.others.insert(key, made);
        }
        let Some(other) = self.others.get_mut(&key) else {
            unreachable!("{node} hands over to {fiber:?}, which did not begin");
        };
        other.resume(());
        if other.done() {
            self.others.remove(&key);
        }
    }

    /// Makes every body that has begun unwind to its end: on each node the one that has the turn,
    /// then those that wait for it.
    fn end(&mut self) {
        for index in 0..self.programs.len() {
            let node = NodeId::at(index);
            let present = self.sim.cluster.with(|cluster| cluster.fiber(node));
            let others = self.others.keys().filter(|(of, _)| *of == node);
            let mut fibers: Vec<Fiber> = others.map(|(_, fiber)| *fiber).collect();
            fibers.push(Fiber::PROGRAM);
            fibers.sort_by_key(|fiber| *fiber != present);
            for fiber in fibers {
                let coroutine = match self.others.get_mut(&(node, fiber)) {
                    Some(other) => other,
                    None => &mut self.programs[index],
                };
                if coroutine.started() && !coroutine.done() {
                    self.sim.cluster.with(|cluster| cluster.end(node, fiber));
                    // The first unwind is the one that `start` passes on.
                    let _ = catch_unwind(AssertUnwindSafe(|| coroutine.resume(())));
                }
            }
        }
    }
}

/// The coroutine of a node.
type Worker = Coroutine<(), (), (), DefaultStack>;

impl Machine for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn now(&self, node: NodeId) -> u64 {
        self.cluster.with(|cluster| cluster.now(node))
    }

    fn random(&self, node: NodeId) -> u64 {
        self.cluster
            .with(|cluster| cluster.node(node).random.draw())
    }

    fn send(&self, _: &Receivers<'_>, node: NodeId, out: &mut Outbox<Message>, _: Notify) {
        self.cluster.with(|cluster| cluster.send(node, out));
    }

    fn sees(&self, _: NodeId, _: NodeId) -> bool {
        self.settings.network.remote_memory
    }

    fn charges_reads(&self) -> bool {
        true
    }

    fn reads_there(&self, node: NodeId, _: NodeId, bytes: u64) {
        if self
            .cluster
            .with(|cluster| cluster.read_there(node, bytes) || cluster.is_ending())
        {
            self.suspend(|cluster| cluster.suspend_until_clock(node));
        }
    }

    fn charges_work(&self) -> bool {
        true
    }

    fn wait(&self, node: NodeId, at_most: Duration) -> Woken {
        if self.cluster.with(|cluster| cluster.take_wake(node)) {
            if self.cluster.with(|cluster| cluster.is_ahead(node)) {
                self.suspend(|cluster| cluster.suspend_until_clock(node));
            }
            return Woken::ByWake;
        }
        self.suspend(|cluster| cluster.suspend_until_wake(node, at_most));
        self.cluster.with(|cluster| cluster.node(node).wait_ended)
    }

    fn enter(&self, node: NodeId) {
        if self
            .cluster
            .with(|cluster| cluster.enter(node) || cluster.is_ending())
        {
            self.suspend(|cluster| cluster.suspend_until_clock(node));
        }
    }

    fn leave(&self, node: NodeId) {
        self.cluster.with(|cluster| cluster.leave(node));
    }

    fn work(&self, node: NodeId, units: u64) {
        self.cluster.with(|cluster| cluster.work(node, units));
    }

    fn computes(&self, node: NodeId, begins: bool) {
        self.cluster.with(|cluster| cluster.computes(node, begins));
    }

    fn stopwatch(&self) -> Option<fn() -> u64> {
        (self.settings.computation == Computation::Measured).then_some(here_ns)
    }

    fn numbers_broadcasts(&self) -> bool {
        self.settings.network.card_sequencer
    }

    fn sizes(&self) -> MessageSizes {
        self.settings.network.sizes()
    }

    fn computed(&self, node: NodeId) -> u64 {
        self.cluster.with(|cluster| cluster.node(node).computed_ns)
    }

    fn memory_bytes(&self) -> Option<u64> {
        match self.settings.network.memory_bytes {
            0 => None,
            bytes => Some(bytes),
        }
    }

    fn start_fibers(
        &self,
        receivers: &Receivers<'_>,
        body: &(dyn Fn(NodeId, Fiber) -> Fiber + Sync),
    ) -> Result<(), StartError> {
        self.settings
            .check()
            .map_err(|error| self.refuse("the settings", error.to_string()))?;
        if receivers.len() != self.settings.nodes {
            let cause = format!("{} receivers were given", receivers.len());
            return Err(self.refuse("the receivers", cause));
        }
        let stacks = self.stacks()?;
        self.cluster
            .hold(
                || Cluster::new(&self.settings),
                || self.run(receivers, body, stacks),
            )
            .map_err(|_| self.refuse("a second run", "this cluster is running".into()))?
            .unwrap_or_else(|unwound| resume_unwind(unwound));
        Ok(())
    }
    fn begin(&self, node: NodeId, fiber: Fiber) -> Result<(), StartError> {
        let stack = DefaultStack::new(self.settings.stack_bytes)
            .map_err(|error| self.refuse("memory for a stack", error.to_string()))?;
        self.cluster
            .with(|cluster| cluster.stacks.insert((node, fiber), stack));
        Ok(())
    }

    fn hand_over(&self, node: NodeId, _me: Fiber, to: Fiber) {
        self.suspend(|cluster| cluster.hand_over(node, to));
    }
}
