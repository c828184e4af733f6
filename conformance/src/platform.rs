//! The machines on which the checks run.

use std::net::{TcpListener, TcpStream};
use std::ops::Deref;
use std::sync::Mutex;
use std::time::Duration;

use dhole_check::{Bug, Changed, Fate, Platform, Simulated};
use dhole_live::Processes;
use dhole_model::{Barriers, Detector, MessageKind, NodeId, Notify, Placement};
use dhole_net::{Envelope, Outbox, Payload, Receiver, Stream, Tcp, Wake};
use dhole_node::{Fiber, Machine, Multiprocess, Receivers, Settings, StartError, Woken};
use dhole_protocol::Message;
use dhole_sim::Sim;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::ports::{Make, reaching, seeing};

/// Nodes as processes are, over TCP, but all in this process: what they say to each other goes
/// through the kernel as bytes, and no node sees more of another than a process would. One run at a
/// time, for between two of them the process must have the same ids left for all.
#[derive(Clone, Copy, Debug)]
pub struct OverTcp;

impl Platform for OverTcp {
    fn name(&self) -> String {
        "tcp".into()
    }

    fn machine(&self, _: usize, _: u64) -> Box<dyn Machine> {
        unreachable!("every node has a machine of its own")
    }

    fn machines(&self, nodes: usize, seed: u64) -> Vec<Box<dyn Machine + Send>> {
        let mut streams: Vec<Vec<Option<Stream>>> = (0..nodes)
            .map(|_| (0..nodes).map(|_| None).collect())
            .collect();
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("it has one");
        for (one, other) in (0..nodes).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let connecting = TcpStream::connect(address).expect("the listener is there");
            let (accepted, _) = listener.accept().expect("somebody connects");
            streams[one][other] = Some(Stream::Plain(connecting));
            streams[other][one] = Some(Stream::Plain(accepted));
        }
        let machine = |(node, streams)| {
            let port = Tcp::new(NodeId::at(node), streams).expect("the kernel gives what it needs");
            let machine = Processes::new(Box::new(port), seed).expect("TCP offers all");
            Box::new(machine.neighbours(nodes)) as Box<dyn Machine + Send>
        };
        streams.into_iter().enumerate().map(machine).collect()
    }
}

/// Nodes as processes are, over the ports that are made here, but all in this process.
#[derive(Clone, Copy, Debug)]
pub struct OverPorts {
    /// The name of the ports.
    pub name: &'static str,
    /// Makes them.
    pub make: Make,
}

impl Platform for OverPorts {
    fn name(&self) -> String {
        self.name.into()
    }

    fn machine(&self, _: usize, _: u64) -> Box<dyn Machine> {
        unreachable!("every node has a machine of its own")
    }

    fn machines(&self, nodes: usize, seed: u64) -> Vec<Box<dyn Machine + Send>> {
        let machine = |port| {
            let machine = Processes::new(port, seed).expect("the port offers all");
            Box::new(machine.neighbours(nodes)) as Box<dyn Machine + Send>
        };
        (self.make)(nodes).into_iter().map(machine).collect()
    }
}

/// Nodes as processes of one machine are, which see each other's memory, but all in this process:
/// each maps the memory of every other once more.
#[derive(Clone, Copy, Debug)]
pub struct SeeingProcesses;

impl Platform for SeeingProcesses {
    fn name(&self) -> String {
        "shm, one-sided".into()
    }

    fn machine(&self, _: usize, _: u64) -> Box<dyn Machine> {
        unreachable!("every node has a machine of its own")
    }

    fn machines(&self, nodes: usize, seed: u64) -> Vec<Box<dyn Machine + Send>> {
        let machine = |(port, memory)| {
            let machine = Processes::new(port, seed).expect("the port offers all");
            let machine = machine.neighbours(nodes).showing(Ok(memory));
            Box::new(machine) as Box<dyn Machine + Send>
        };
        seeing(nodes).into_iter().map(machine).collect()
    }
}

/// Nodes as processes are that reach each other's memory through their port alone, in windows, but
/// all in this process.
#[derive(Clone, Copy, Debug)]
pub struct ReachingProcesses;

impl Platform for ReachingProcesses {
    fn name(&self) -> String {
        "windows, one-sided".into()
    }

    fn machine(&self, _: usize, _: u64) -> Box<dyn Machine> {
        unreachable!("every node has a machine of its own")
    }

    fn machines(&self, nodes: usize, seed: u64) -> Vec<Box<dyn Machine + Send>> {
        let machine = |(port, windows)| {
            let machine = Processes::new(port, seed).expect("the port offers all");
            let machine = machine.neighbours(nodes).reaching(windows);
            Box::new(machine) as Box<dyn Machine + Send>
        };
        reaching(nodes).into_iter().map(machine).collect()
    }
}

/// A simulated cluster whose network reads the memory of other nodes, and on which messages
/// overtake each other: so one-sided reads and messages meet in every order.
#[derive(Clone, Copy, Default, Debug)]
pub struct Remote(pub Simulated);

impl Platform for Remote {
    fn name(&self) -> String {
        format!("{} with remote memory", self.0.name())
    }

    fn machine(&self, nodes: usize, seed: u64) -> Box<dyn Machine> {
        let mut settings = self.0.simulates(nodes, seed);
        settings.network.remote_memory = true;
        Box::new(Sim::new(settings))
    }
}

/// Another platform, whose nodes ask for every object by message.
#[derive(Clone, Copy)]
pub struct ByMessage<'a>(pub &'a dyn Platform);

impl Changed for ByMessage<'_> {
    fn name(&self) -> String {
        format!("{}, by message", self.0.name())
    }

    fn on(&self) -> &dyn Platform {
        self.0
    }

    fn change(&self, settings: &mut Settings) {
        settings.one_sided = false;
    }
}

/// Another platform, whose nodes look for a deadlock as soon as they wait, and again and again.
#[derive(Clone, Copy, Debug)]
pub struct Impatient<P>(pub P);

impl<P: Platform> Changed for Impatient<P> {
    fn name(&self) -> String {
        format!("{}, impatient", self.0.name())
    }

    fn on(&self) -> &dyn Platform {
        &self.0
    }

    fn change(&self, settings: &mut Settings) {
        settings.suspect_after = Duration::from_micros(1);
    }
}

/// Another platform whose nodes store objects at the same place.
#[derive(Clone, Copy, Debug)]
pub struct Placed<P>(pub P);

impl<P: Platform> Changed for Placed<P> {
    fn name(&self) -> String {
        format!("{}, placed alike everywhere", self.0.name())
    }

    fn on(&self) -> &dyn Platform {
        &self.0
    }

    fn change(&self, settings: &mut Settings) {
        settings.placement = Placement::Everywhere;
    }
}

/// Another platform with this kind of barriers.
#[derive(Clone, Copy, Debug)]
pub struct Meeting<P>(pub P, pub Barriers);

impl<P: Platform> Changed for Meeting<P> {
    fn name(&self) -> String {
        format!("{}, {} barriers", self.0.name(), self.1)
    }

    fn on(&self) -> &dyn Platform {
        &self.0
    }

    fn change(&self, settings: &mut Settings) {
        settings.barriers = self.1;
    }
}

/// Another platform with this detector.
#[derive(Clone, Copy, Debug)]
pub struct Detected<P>(pub P, pub Detector);

impl<P: Platform> Changed for Detected<P> {
    fn name(&self) -> String {
        format!("{}, {}", self.0.name(), self.1)
    }

    fn on(&self) -> &dyn Platform {
        &self.0
    }

    fn change(&self, settings: &mut Settings) {
        settings.detector = self.1;
    }
}

/// Another platform with a bug planted between its nodes.
#[derive(Clone, Copy, Debug)]
pub struct Tampered<P> {
    /// Where the nodes run.
    pub on: P,
    /// The bug in their messages.
    pub bug: Bug,
    /// To one message in so many, at random.
    pub one_in: u64,
}

impl<P: Platform> Platform for Tampered<P> {
    fn name(&self) -> String {
        format!(
            "{} with {:?} of one message in {}",
            self.on.name(),
            self.bug,
            self.one_in
        )
    }

    fn machine(&self, nodes: usize, seed: u64) -> Box<dyn Machine> {
        Box::new(TamperedMachine {
            on: self.on.machine(nodes, seed),
            by: TamperedBy::Bug {
                bug: self.bug,
                one_in: self.one_in,
                random: Mutex::new(Xoshiro256PlusPlus::seed_from_u64(seed)),
            },
        })
    }

    fn machines(&self, nodes: usize, seed: u64) -> Vec<Box<dyn Machine + Send>> {
        assert!(
            self.on.machines(nodes, seed).is_empty(),
            "messages between processes cannot be tampered with here"
        );
        Vec::new()
    }

    fn settings(&self, nodes: usize) -> Settings {
        self.on.settings(nodes)
    }
}

struct TamperedMachine<M> {
    on: M,
    by: TamperedBy,
}

/// What goes wrong when a message is delivered.
enum TamperedBy {
    /// A bug changes one message in so many.
    Bug {
        bug: Bug,
        one_in: u64,
        random: Mutex<Xoshiro256PlusPlus>,
    },
    /// A message of this kind wakes no worker, of this node where one is named.
    Sleep(MessageKind, Option<NodeId>),
    /// Each node has lost a doorbell.
    Doorbells,
}

/// Takes a node's messages before it does.
struct Tamperer<'a> {
    node: &'a dyn Receiver<Message>,
    by: &'a TamperedBy,
}

impl Receiver<Message> for Tamperer<'_> {
    fn deliver(&self, mut envelope: Envelope<Message>, out: &mut Outbox<Message>) -> Wake {
        let addressee = envelope.to;
        let fate = match self.by {
            TamperedBy::Doorbells => Fate::default(),
            TamperedBy::Sleep(kind, node) => {
                let is_meant = node.is_none_or(|node| node == addressee);
                let wakes = !is_meant || envelope.body.kind() != *kind;
                let wake = self.node.deliver(envelope, out);
                return if wakes { wake } else { Wake::No };
            }
            TamperedBy::Bug {
                bug,
                one_in,
                random,
            } => tamper((*bug, *one_in, random), &mut envelope),
        };
        if fate.stale {
            let bytes = envelope.payload.len();
            envelope.payload = Payload::default();
            envelope.payload.extend(&vec![0; bytes]);
        }
        if let Some((from, to, body)) = fate.more {
            let payload = Payload::NONE;
            out.push(Envelope {
                from,
                to,
                body,
                payload,
            });
        }
        if fate.lost {
            return Wake::No;
        }
        if envelope.to != addressee {
            out.push(envelope);
            return Wake::No;
        }
        self.node.deliver(envelope, out)
    }
}

/// The fate of a message, of which one in so many falls to a bug.
fn tamper(
    (bug, one_in, random): (Bug, u64, &Mutex<Xoshiro256PlusPlus>),
    envelope: &mut Envelope<Message>,
) -> Fate {
    let mut random = random
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    match random.random_range(0..one_in) {
        0 => bug.message(envelope.from, &mut envelope.to, &mut envelope.body),
        _ => Fate::default(),
    }
}

/// A worker that is never woken need not be waited for long.
const OWED_IN_VAIN: Duration = Duration::from_millis(200);

impl<M> TamperedMachine<M> {
    fn tampered<R>(&self, all: &Receivers<'_>, f: impl FnOnce(&Receivers<'_>) -> R) -> R {
        let tamperers: Vec<Tamperer<'_>> = all
            .iter()
            .map(|node| Tamperer {
                node: *node,
                by: &self.by,
            })
            .collect();
        let receivers: Vec<&dyn Receiver<Message>> =
            tamperers.iter().map(|tamperer| tamperer as _).collect();
        f(&receivers)
    }
}

impl<M: Deref<Target: Machine> + Sync> Machine for TamperedMachine<M> {
    fn name(&self) -> &'static str {
        self.on.name()
    }

    fn charges_work(&self) -> bool {
        self.on.charges_work()
    }

    fn now(&self, node: NodeId) -> u64 {
        self.on.now(node)
    }

    fn random(&self, node: NodeId) -> u64 {
        self.on.random(node)
    }

    fn send(
        &self,
        receivers: &Receivers<'_>,
        node: NodeId,
        out: &mut Outbox<Message>,
        notify: Notify,
    ) {
        self.tampered(receivers, |receivers| {
            self.on.send(receivers, node, out, notify);
        });
    }

    fn wait(&self, node: NodeId, at_most: Duration) -> Woken {
        self.on.wait(node, at_most)
    }

    fn owed_for(&self) -> Duration {
        match self.by {
            TamperedBy::Sleep(..) => OWED_IN_VAIN,
            TamperedBy::Bug { .. } | TamperedBy::Doorbells => self.on.owed_for(),
        }
    }

    fn lost_doorbells(&self, node: NodeId) -> u64 {
        match self.by {
            TamperedBy::Doorbells => 1,
            TamperedBy::Sleep(..) | TamperedBy::Bug { .. } => self.on.lost_doorbells(node),
        }
    }

    fn has_threads(&self) -> bool {
        self.on.has_threads()
    }

    fn moves_worker(&self) -> bool {
        self.on.moves_worker()
    }

    fn help(&self, receivers: &Receivers<'_>, node: NodeId, done: &dyn Fn() -> bool) -> bool {
        self.tampered(receivers, |receivers| self.on.help(receivers, node, done))
    }

    fn wake_worker(&self, node: NodeId) {
        self.on.wake_worker(node);
    }

    fn look(&self, receivers: &Receivers<'_>, node: NodeId) -> bool {
        self.tampered(receivers, |receivers| self.on.look(receivers, node))
    }

    fn counts_moments(&self) -> bool {
        self.on.counts_moments()
    }

    fn wait_polling(&self, receivers: &Receivers<'_>, node: NodeId, at_most: Duration) -> Woken {
        self.tampered(receivers, |receivers| {
            self.on.wait_polling(receivers, node, at_most)
        })
    }

    fn multiprocess(&self) -> Option<&dyn Multiprocess> {
        self.on.multiprocess()
    }

    fn enter(&self, node: NodeId) {
        self.on.enter(node);
    }

    fn leave(&self, node: NodeId) {
        self.on.leave(node);
    }

    fn work(&self, node: NodeId, units: u64) {
        self.on.work(node, units);
    }

    fn computes(&self, node: NodeId, begins: bool) {
        self.on.computes(node, begins);
    }

    fn start_fibers(
        &self,
        receivers: &Receivers<'_>,
        body: &(dyn Fn(NodeId, Fiber) -> Fiber + Sync),
    ) -> Result<(), StartError> {
        self.tampered(receivers, |receivers| self.on.start_fibers(receivers, body))
    }

    fn begin(&self, node: NodeId, fiber: Fiber) -> Result<(), StartError> {
        self.on.begin(node, fiber)
    }

    fn hand_over(&self, node: NodeId, me: Fiber, to: Fiber) {
        self.on.hand_over(node, me, to);
    }
}

/// Another platform, whose machines have lost a doorbell of each node.
#[derive(Clone, Copy, Debug)]
pub struct Deaf<P>(pub P);

impl<P: Platform> Platform for Deaf<P> {
    fn name(&self) -> String {
        format!("{}, deaf", self.0.name())
    }

    fn machine(&self, nodes: usize, seed: u64) -> Box<dyn Machine> {
        Box::new(TamperedMachine {
            on: self.0.machine(nodes, seed),
            by: TamperedBy::Doorbells,
        })
    }

    fn settings(&self, nodes: usize) -> Settings {
        self.0.settings(nodes)
    }
}

/// Another platform, whose machines are not told to wake a worker when a message of one kind has
/// ended its wait.
#[derive(Clone, Copy, Debug)]
pub struct Unwoken<P> {
    /// Where the nodes run.
    pub on: P,
    /// The kind of messages.
    pub kind: MessageKind,
    /// The node that is not woken; all where none is named.
    pub node: Option<NodeId>,
}

impl<P> Unwoken<P> {
    fn by(&self) -> TamperedBy {
        TamperedBy::Sleep(self.kind, self.node)
    }
}

impl<P: Platform> Platform for Unwoken<P> {
    fn name(&self) -> String {
        format!("{}, not woken by {:?}", self.on.name(), self.kind)
    }

    fn machine(&self, nodes: usize, seed: u64) -> Box<dyn Machine> {
        Box::new(TamperedMachine {
            on: self.on.machine(nodes, seed),
            by: self.by(),
        })
    }

    fn machines(&self, nodes: usize, seed: u64) -> Vec<Box<dyn Machine + Send>> {
        let machines = self.on.machines(nodes, seed).into_iter();
        let unwoken = machines.map(|on| {
            let by = self.by();
            Box::new(TamperedMachine { on, by }) as _
        });
        unwoken.collect()
    }

    fn settings(&self, nodes: usize) -> Settings {
        self.on.settings(nodes)
    }
}
