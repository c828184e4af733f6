//! Nodes as processes: the one of this process, and a port to the others.
//!
//! The node that waits, polls: a worker in the runtime takes what comes itself. A *service thread*
//! takes it only while the worker computes, and sleeps in the port until something comes; while the
//! worker is in the runtime it keeps away, so that nothing is woken twice.
//!
//! | file | what |
//! |---|---|
//! | `frame` | what a frame looks like |
//! | `transmit` | messages that go, and the runs of objects that go before them |
//! | `oversize` | what is said of a message that is too long |
//! | `receive` | what comes: messages, losses, what begins and ends runs |
//! | `agree` | beginning and ending a run together |
//! | `dump` | what is written when somebody wonders why nothing happens |
//! | `neighbours` | the memory of processes on this machine, for one-sided reads |
//! | `progress` | how the worker waits, when the service thread serves, and who is notified |

mod agree;
mod dump;
mod frame;
mod neighbours;
mod oversize;
mod progress;
mod receive;
mod transmit;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use dhole_heap::Cluster;
use dhole_model::unpoisoned::{self, lock};
use dhole_model::{NodeId, Notify};
use dhole_net::{Outbox, PayloadPool, Port, Waiting};
use dhole_node::{
    Domain, Domains, Fiber, Judge, LostNode, Machine, Multiprocess, Receivers, StartError, Verdict,
    Woken,
};
use dhole_protocol::Message;
use dhole_space::runtime_thread::{self, SignalMask};
use dhole_space::{VisibleMemory, WindowMaker};
use rustix::time::ClockId;

use crate::fibers::{Maker, Turn};
use crate::processor::processor_ns;
use crate::random::Random;

use self::agree::Table;
use self::dump::Dump;
use self::neighbours::Neighbours;
use self::progress::Progress;
use self::receive::Inbox;
use self::transmit::SendChannel;

/// The nodes of a cluster as processes, of which this one has the node at its end of a port. One
/// run follows on the other, the same in all processes.
pub struct Processes {
    port: Box<dyn Port>,
    me: NodeId,
    nodes: usize,
    random: Random,
    made: Instant,
    began_ns: AtomicU64,
    /// When the nodes met, before the last run.
    met_ns: AtomicU64,
    /// The number of the run, from 1 on.
    run: AtomicU32,
    /// A run is on, or begins.
    on: AtomicBool,
    /// Whether it goes on when processes are lost.
    survives: AtomicBool,
    /// What goes, by receiver.
    channels: Box<[Mutex<SendChannel>]>,
    /// What comes.
    inbox: Inbox,
    /// What begins and ends runs.
    table: Mutex<Table>,
    /// What is used during a run.
    here: RwLock<Option<Here>>,
    progress: Progress,
    /// How many doorbells the port had lost when the run began.
    lost_doorbells: AtomicU64,
    dump: Dump,
    turn: Turn,
    maker: Maker,
    limits: ProcessLimits,
    neighbours: Neighbours,
}

/// What another process may make this one keep. Who exceeds it is cut off: it is lost to all, with
/// an error that names it and the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessLimits {
    /// Bytes of a message with its payload, in however many frames it comes. All processes must say
    /// the same: a longer one is not sent, and is an error of the run.
    pub message: usize,
    /// Bytes of messages of one process that are kept while it is in a run that has not begun here.
    pub early: usize,
    /// With so many bytes of messages to deliver, nothing more is taken from the port, and the
    /// others find no room. What one look at the port brings may exceed it.
    pub collected: usize,
    /// Runs of objects, allocated together, that are known here, and the most that another process
    /// may tell of.
    pub learnt: usize,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        ProcessLimits {
            message: 256 << 20,
            early: 64 << 20,
            collected: 64 << 20,
            learnt: dhole_heap::MOST_LEARNT,
        }
    }
}

/// Bytes of the stack of a process that was started during the run: what a main thread usually has.
const STACK: usize = 8 << 20;

/// What goes with the run that is on.
struct Here {
    cluster: Arc<Cluster>,
    pool: Arc<PayloadPool>,
}

impl Processes {
    /// The machine at this end of `port`, which must be reliable and ordered. The random stream of
    /// the node comes from `seed`.
    ///
    /// # Errors
    /// [`StartError`] when the port does not offer what is needed.
    #[expect(
        clippy::disallowed_methods,
        reason = "a live machine is where the clock is read"
    )]
    pub fn new(port: Box<dyn Port>, seed: u64) -> Result<Processes, StartError> {
        let (me, nodes, offers) = (port.me(), port.nodes(), port.offers());
        if !offers.reliable || !offers.ordered || offers.largest < frame::LEAST {
            return Err(StartError::Apart {
                nodes,
                why: format!("the port {} offers too little: {offers:?}", port.name()),
            });
        }
        Ok(Processes {
            me,
            nodes,
            random: Random::new(seed, me),
            made: Instant::now(),
            began_ns: AtomicU64::new(0),
            met_ns: AtomicU64::new(0),
            run: AtomicU32::new(0),
            on: AtomicBool::new(false),
            survives: AtomicBool::new(false),
            channels: (0..nodes).map(|_| Mutex::default()).collect(),
            inbox: Inbox::new(nodes),
            table: Mutex::new(Table::new(nodes)),
            here: RwLock::new(None),
            progress: Progress::new(nodes, &*port),
            lost_doorbells: AtomicU64::new(0),
            dump: Dump::default(),
            turn: Turn::new(),
            maker: Maker::new(),
            limits: ProcessLimits::default(),
            neighbours: Neighbours::new(&*port),
            port,
        })
    }

    /// As many of the cluster's processes as share the cores of this machine with this one, itself
    /// among them: all, unless it is said here. A worker spins only while all of them could.
    pub fn neighbours(mut self, processes: usize) -> Processes {
        self.progress = Progress::new(processes, &*self.port);
        self
    }

    /// How the worker waits from here on.
    pub fn waits(&self, how: Waiting) {
        self.progress.waits(how);
    }

    /// The same, where a thread that is to end the park of another does so within this time, which
    /// is 10 s unless it is said here: a park that ends later by its time counts as one whose
    /// doorbell was lost.
    pub fn owing(self, within: Duration) -> Processes {
        self.progress.owes(&*self.port, within);
        self
    }

    /// The same with other limits.
    pub fn limits(mut self, limits: ProcessLimits) -> Processes {
        self.limits = limits;
        self
    }

    /// What this process showed the others of its memory, as they [see](Port::shown_by) it, or why
    /// it has none to show: there objects are read one-sided.
    pub fn showing(mut self, memory: std::io::Result<VisibleMemory>) -> Processes {
        self.neighbours.show(memory);
        self
    }

    /// The port reaches the memory of other processes, in windows that are made like this: there
    /// objects are read one-sided.
    pub fn reaching(mut self, windows: WindowMaker) -> Processes {
        self.neighbours.reach(windows);
        self
    }

    /// The node of this process.
    pub fn node(&self) -> NodeId {
        self.me
    }

    /// Nodes of the cluster.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Says goodbye to the others, for this process ends: none that does not need it any more is
    /// told of a loss, and one that does hears that it has left. Waits a second at most, for those
    /// that have not heard it; nothing is sent afterwards.
    pub fn leave(&self) {
        self.port.close(GOODBYE);
    }

    /// Begins the node's random stream anew, from another seed, for the next run.
    pub fn reseed(&self, seed: u64) {
        if !self.on.load(Ordering::SeqCst) {
            self.random.reseed(seed, self.me);
        }
    }

    fn since_made(&self) -> Duration {
        self.made.elapsed()
    }

    /// Whether the run goes on when processes are lost.
    fn survives(&self) -> bool {
        self.survives.load(Ordering::Acquire)
    }

    /// The run that is on, or was last.
    fn run(&self) -> u32 {
        self.run.load(Ordering::Acquire)
    }

    /// What goes to others says from here on what is in this cluster.
    fn tells_of(&self, cluster: Option<&Arc<Cluster>>) {
        for channel in &self.channels {
            lock(channel).cluster = cluster.cloned();
        }
    }

    fn others(&self) -> impl Iterator<Item = NodeId> + use<> {
        let me = self.me;
        (0..self.nodes).map(NodeId::at).filter(move |id| *id != me)
    }
}

/// Lets the threads of a run come to their end, when its program has, also where that unwinds.
struct Over<'a>(&'a Processes);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.maker.close();
        self.0.progress.end(&*self.0.port);
        self.0.dump.end();
    }
}

/// Lets the fibers of a node come to their end where one unwinds, whose turn it was. Forgotten
/// where it does not.
struct Unwinds<'a>(&'a Processes);

impl Drop for Unwinds<'_> {
    fn drop(&mut self) {
        self.0.turn.lose();
    }
}

/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);

impl Drop for Processes {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Machine for Processes {
    fn name(&self) -> &'static str {
        self.port.name()
    }

    fn now(&self, _node: NodeId) -> u64 {
        let now = self.since_made().as_nanos() as u64;
        now.saturating_sub(self.began_ns.load(Ordering::Relaxed))
    }

    fn random(&self, _node: NodeId) -> u64 {
        self.random.next()
    }

    fn send(
        &self,
        receivers: &Receivers<'_>,
        _node: NodeId,
        out: &mut Outbox<Message>,
        notify: Notify,
    ) {
        match notify {
            Notify::Now => self.post_all(receivers, out),
            Notify::Lazy => self.post_and_wait(receivers, out),
        }
    }

    fn sends_bytes(&self) -> bool {
        true
    }

    fn send_bytes(&self, _node: NodeId, to: NodeId, parts: [&[u8]; 3], notify: Notify) -> bool {
        let sent = self.post_bytes(to, parts, Notify::Lazy);
        if sent && notify == Notify::Now {
            self.progress.asks(to);
        }
        sent
    }

    fn multicasts(&self) -> bool {
        self.port.multicasts()
    }

    #[inline]
    fn sees(&self, _node: NodeId, of: NodeId) -> bool {
        self.neighbours.sees(of)
    }

    /// Nobody can wait here who does not take what comes.
    fn wait(&self, node: NodeId, at_most: Duration) -> Woken {
        self.wait_polling(&[], node, at_most)
    }

    fn wait_polling(&self, receivers: &Receivers<'_>, _node: NodeId, at_most: Duration) -> Woken {
        match self.serve_until(receivers, Some(at_most), &|| self.progress.take_wake()) {
            true => Woken::ByWake,
            false => Woken::ByTime,
        }
    }

    #[inline]
    fn look(&self, receivers: &Receivers<'_>, _node: NodeId) -> bool {
        let has_come = self.port.peek();
        if has_come {
            self.take_what_came(receivers);
        }
        has_come
    }

    fn has_threads(&self) -> bool {
        true
    }

    fn moves_worker(&self) -> bool {
        true
    }

    fn help(&self, receivers: &Receivers<'_>, _: NodeId, done: &dyn Fn() -> bool) -> bool {
        self.help_until(receivers, done)
    }

    fn wake_worker(&self, _node: NodeId) {
        self.progress.wake(&*self.port);
    }

    fn waited(&self, _node: NodeId) -> u64 {
        self.progress.waited()
    }

    fn lost_doorbells(&self, _node: NodeId) -> u64 {
        let before = self.lost_doorbells.load(Ordering::Relaxed);
        self.port.lost_doorbells() - before
    }

    fn counts_moments(&self) -> bool {
        false
    }

    fn processor(&self, _node: NodeId) -> Option<u64> {
        // Threads that the program starts compute for the node too.
        processor_ns(ClockId::ProcessCPUTime)
    }

    fn worker_processor(&self, _node: NodeId) -> Option<u64> {
        processor_ns(ClockId::ThreadCPUTime)
    }

    fn multiprocess(&self) -> Option<&dyn Multiprocess> {
        Some(self)
    }

    fn enter(&self, _node: NodeId) {
        self.progress.enter();
    }

    fn leave(&self, _node: NodeId) {
        self.progress.leave();
    }

    fn work(&self, _node: NodeId, _units: u64) {}

    fn start_fibers(
        &self,
        receivers: &Receivers<'_>,
        body: &(dyn Fn(NodeId, Fiber) -> Fiber + Sync),
    ) -> Result<(), StartError> {
        let now = self.since_made().as_nanos() as u64;
        self.began_ns.store(now, Ordering::Relaxed);
        let lost = self.port.lost_doorbells();
        self.lost_doorbells.store(lost, Ordering::Relaxed);
        self.progress.begin();
        self.dump.begin();
        self.take_early(receivers);
        let wanted = self.maker.open();
        let run = |node: NodeId, fiber: Fiber| {
            let unwinds = Unwinds(self);
            self.turn.wait(fiber);
            let next = body(node, fiber);
            std::mem::forget(unwinds);
            self.turn.give(next);
        };
        std::thread::scope(|scope| {
            let serve = || self.serve(receivers);
            let serving = runtime_thread::spawn_scoped(scope, "dhole-service", serve);
            // Without one, the node serves when its worker comes into the runtime, and no sooner.
            if let Ok(thread) = serving {
                self.progress.serves(thread.thread().clone());
            }
            let dump = || self.write_dumps(receivers);
            // Without one, nothing is written when it is asked for.
            let _ = runtime_thread::spawn_scoped(scope, "dhole-dump", dump);
            let signals = SignalMask::current();
            let making = move || Maker::make(scope, wanted, (STACK, signals), run);
            // Without one, no process can be started here, and whoever tries is told.
            let _ = runtime_thread::spawn_scoped(scope, "dhole-maker", making);
            let over = Over(self);
            run(self.me, Fiber::PROGRAM);
            drop(over);
        });
        Ok(())
    }

    fn begin(&self, node: NodeId, fiber: Fiber) -> Result<(), StartError> {
        self.progress.has_several(&*self.port);
        self.maker.want(node, fiber, (self.name(), self.nodes))
    }

    fn hand_over(&self, _node: NodeId, me: Fiber, to: Fiber) {
        self.notify_deferred();
        self.turn.give(to);
        self.turn.wait(me);
    }
}

impl Multiprocess for Processes {
    fn me(&self) -> NodeId {
        self.me
    }

    fn nodes(&self) -> usize {
        self.nodes
    }

    fn stamp(&self) -> u64 {
        // The standard library's hash maps are keyed by the system's random numbers.
        RandomState::new().build_hasher().finish()
    }

    fn meet(
        &self,
        brings: Result<Vec<u8>, String>,
        judge: &Judge<'_>,
    ) -> Result<Vec<u8>, StartError> {
        if self.on.swap(true, Ordering::SeqCst) {
            return Err(StartError::Apart {
                nodes: self.nodes,
                why: "this process is in a run already, and runs over processes follow each other"
                    .into(),
            });
        }
        self.progress.wake_up(&*self.port);
        let begun = self.begin_together(brings, judge);
        let now = self.since_made().as_nanos() as u64;
        self.met_ns.store(now, Ordering::Relaxed);
        if let Err(StartError::Lost { lost, .. }) = &begun {
            self.port.missed(lost.node, &lost.how);
        }
        self.give_up_cut_off();
        if begun.is_err() {
            self.progress.idle();
            self.on.store(false, Ordering::SeqCst);
        }
        begun
    }

    fn began_after_ns(&self) -> u64 {
        let began = self.began_ns.load(Ordering::Relaxed);
        began.saturating_sub(self.met_ns.load(Ordering::Relaxed))
    }

    fn open(&self, cluster: &Arc<Cluster>, pool: &Arc<PayloadPool>, survives: bool) {
        self.survives.store(survives, Ordering::Release);
        self.inbox.clear();
        self.tells_of(Some(cluster));
        cluster.learn_at_most(self.limits.learnt);
        let (cluster, pool) = (Arc::clone(cluster), Arc::clone(pool));
        let mut here = unpoisoned::write(&self.here);
        *here = Some(Here { cluster, pool });
    }

    fn ends(&self) {
        self.port.ends();
    }

    fn publish(&self, cluster: &Cluster) -> Vec<String> {
        self.neighbours.publish(&*self.port, cluster)
    }

    fn domain(&self, domains: Domains) -> io::Result<Option<Domain>> {
        self.neighbours.domain(&*self.port, domains)
    }

    fn begins(&self, survives: bool) {
        self.port.begins(survives);
    }

    fn failed(&self, words: &str) {
        self.port.failed(words);
    }

    fn exits(&self, code: u8) {
        self.port.exits(code);
    }

    fn abandon(&self, why: &str) {
        self.tell_all_to_end(why);
    }

    fn part(
        &self,
        receivers: &Receivers<'_>,
        brings: Vec<u8>,
        without: &[LostNode],
        judge: &Verdict<'_>,
    ) -> Result<Vec<u8>, LostNode> {
        let verdict = self.end_together(receivers, brings, without, judge);
        self.withdraw();
        verdict
    }

    fn withdraw(&self) {
        self.stay_away();
        self.give_up_cut_off();
        let mut here = unpoisoned::write(&self.here);
        if let Some(here) = here.take() {
            here.cluster.end_publishing();
        }
        drop(here);
        self.tells_of(None);
        self.inbox.clear();
        self.progress.idle();
        self.on.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::channel;

    use dhole_net::Local;

    use super::*;

    /// Whether a run whose node does this ends by unwinding, and does not hang.
    fn unwinds(body: impl Fn(&Processes, Fiber) -> Fiber + Send + Sync + 'static) -> bool {
        let (ended, end) = channel();
        let thread = std::thread::Builder::new().spawn(move || {
            let mut ports = Local::cluster(1).expect("a doorbell");
            let machine = Processes::new(Box::new(ports.remove(0)), 0).expect("a fit port");
            let runs = || machine.start_fibers(&[], &|_, fiber| body(&machine, fiber));
            ended.send(catch_unwind(AssertUnwindSafe(runs)).is_err())
        });
        thread.expect("a thread");
        end.recv_timeout(Duration::from_secs(60)).expect("it hangs")
    }

    #[test]
    fn a_body_that_unwinds_leaves_nobody_asleep() {
        assert!(unwinds(|_, _| panic!("as intended")));
        // Beside a fiber that waits for its turn.
        assert!(unwinds(|machine, fiber| {
            if fiber == Fiber::PROGRAM {
                machine.begin(NodeId(0), Fiber(1)).expect("a thread");
                panic!("as intended");
            }
            Fiber::PROGRAM
        }));
        // A fiber, for whose end the program waits.
        assert!(unwinds(|machine, fiber| {
            if fiber != Fiber::PROGRAM {
                panic!("as intended");
            }
            machine.begin(NodeId(0), Fiber(1)).expect("a thread");
            Machine::hand_over(machine, NodeId(0), fiber, Fiber(1));
            Fiber::PROGRAM
        }));
    }

    /// Notes whether another unwinds while this does.
    struct Alone(Arc<[AtomicBool; 2]>);

    impl Drop for Alone {
        fn drop(&mut self) {
            let [unwinds, beside] = &*self.0;
            beside.fetch_or(unwinds.swap(true, Ordering::SeqCst), Ordering::SeqCst);
            (0..1_000).for_each(|_| std::thread::yield_now());
            unwinds.store(false, Ordering::SeqCst);
        }
    }

    #[test]
    fn those_that_wait_beside_one_that_unwinds_do_so_one_after_the_other() {
        let both = Arc::<[AtomicBool; 2]>::default();
        let noted = Arc::clone(&both);
        // Two wait for the third.
        assert!(unwinds(move |machine, fiber| {
            let next = Fiber(fiber.0 + 1);
            assert!(next != Fiber(3), "as intended");
            machine.begin(NodeId(0), next).expect("a thread");
            let _alone = Alone(Arc::clone(&noted));
            Machine::hand_over(machine, NodeId(0), fiber, next);
            Fiber::PROGRAM
        }));
        assert!(!both[1].load(Ordering::SeqCst), "two had the turn");
    }
}
