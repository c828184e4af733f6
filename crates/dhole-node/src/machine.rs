use std::io;
use std::sync::Arc;
use std::time::Duration;

use dhole_heap::Cluster;
use dhole_model::{NodeId, Notify};
use dhole_net::{Outbox, PayloadPool, Receiver};
use dhole_protocol::Message;

use crate::count::MessageSizes;
use crate::domain::{Domain, Domains};

/// Why a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// A delivery made the worker ready to go on.
    ByWake,
    /// The time was over first.
    ByTime,
}

/// The nodes of a cluster that a machine has in this process, as those that take messages: node `i`
/// at place `i` where it has all, or the one that is [here](Multiprocess::me).
pub type Receivers<'a> = [&'a dyn Receiver<Message>];

/// One of the bodies that a machine runs for a node: the program's, or that of a process that was
/// started on the node during the run. Of all bodies of a node one goes on at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fiber(pub u32);

impl Fiber {
    /// The program's body, with which a node begins and ends.
    pub const PROGRAM: Fiber = Fiber(0);
}

/// What the nodes of a cluster run on: threads of one process, processes, or a simulation. The
/// engine knows nothing else of the world: no clock, no thread, no random number.
///
/// Every method that takes a node is called by that node's own worker, from within the body
/// that [`start`](Machine::start) runs for it; a handler may call none of them. A body begins
/// inside the runtime, as after [`enter`](Machine::enter), and sends and waits only there. A
/// machine itself wakes a node whose receiver
/// answers a delivery with [`Wake::Yes`](dhole_net::Wake::Yes).
pub trait Machine: Sync {
    /// What the machine is called in reports: `threads`, `sim`.
    fn name(&self) -> &'static str;

    /// Nanoseconds since the run began, on the node's own clock.
    fn now(&self, node: NodeId) -> u64;

    /// A number from the node's own stream, which the run's seed decides.
    fn random(&self, node: NodeId) -> u64;

    /// Sends what `node` put into `out` and leaves it empty, its [work](Outbox::work) too. Handlers
    /// may have run, on this node
    /// too, before it returns; the caller holds no lock of any node. `receivers` are those given
    /// to [`start`](Machine::start).
    ///
    /// With [`Notify::Lazy`] the worker [waits](Machine::wait_polling) next for what comes of it:
    /// then the machine may notify the receivers only when the worker has waited for a while.
    fn send(
        &self,
        receivers: &Receivers<'_>,
        node: NodeId,
        out: &mut Outbox<Message>,
        notify: Notify,
    );

    /// Whether [work](Outbox::work) takes time here, so that it must be sent although nothing goes
    /// with it.
    fn charges_work(&self) -> bool {
        false
    }

    /// Whether a message may go [as bytes](Machine::send_bytes).
    fn sends_bytes(&self) -> bool {
        false
    }

    /// Sends a message, if that can be done at once; whether it was sent. Its bytes are the first
    /// two of `parts`, one behind the other, and its payload is the third. The caller may hold
    /// the node's lock.
    ///
    /// A message that notifies its receiver ([`Notify::Now`]) is one for which the worker
    /// [waits](Machine::wait_polling) next: the machine may notify the receiver only when the
    /// worker has waited for a while.
    fn send_bytes(&self, _node: NodeId, _to: NodeId, _parts: [&[u8]; 3], _notify: Notify) -> bool {
        false
    }

    /// Whether `node` can read the memory of `of` without that node's taking part. If both are in
    /// this process they can, and it is for the machine to say whether they would on the network
    /// that it is. The caller may hold the node's lock.
    fn sees(&self, _node: NodeId, _of: NodeId) -> bool {
        false
    }

    /// Whether the steps of a one-sided read take time here, in which others go on.
    fn charges_reads(&self) -> bool {
        false
    }

    /// The next of the three steps of a one-sided read by `node` of an object of so many bytes in
    /// the memory of `of`, which takes its time. The caller holds no lock.
    fn reads_there(&self, _node: NodeId, _of: NodeId, _bytes: u64) {}

    /// Whether what is sent to all goes there in fewer messages than there are others.
    fn multicasts(&self) -> bool {
        false
    }

    /// Blocks the worker of `node` until a delivery wakes it, or for `at_most`. A delivery that
    /// woke it before it waited ends the wait at once, and waking twice is waking once. The
    /// caller holds no lock.
    fn wait(&self, node: NodeId, at_most: Duration) -> Woken;

    /// In what time a wake comes that the machine owes a worker, however busy the system is.
    fn owed_for(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// How many threads of `node` went on in this run only because the time of their sleep was
    /// over, though another thread was to end it.
    fn lost_doorbells(&self, _node: NodeId) -> u64 {
        0
    }

    /// As [`wait`](Machine::wait), on a machine on which the worker that waits takes the messages
    /// that come meanwhile: the node that waits, polls.
    fn wait_polling(&self, _receivers: &Receivers<'_>, node: NodeId, at_most: Duration) -> Woken {
        self.wait(node, at_most)
    }

    /// Takes what has come to `node` and is to be seen by who looks: the worker is about to read
    /// what operations of others write, or has started one, or is between two steps of what it
    /// computes. Whether something may have been there. The caller holds no lock.
    fn look(&self, _receivers: &Receivers<'_>, _node: NodeId) -> bool {
        false
    }

    /// Whether another thread may wait in the worker's place while the worker's own does nothing.
    fn moves_worker(&self) -> bool {
        false
    }

    /// Whether threads of a node beside its worker may send, [help](Machine::help) and
    /// [wake](Machine::wake_worker) the worker: not where one thread runs all nodes.
    fn has_threads(&self) -> bool {
        false
    }

    /// Another thread of `node` than its worker waits until `done`. It takes what comes meanwhile,
    /// as long as that is likely to be faster than to sleep, and never parks; whether it is done.
    /// The caller holds no lock.
    fn help(&self, _receivers: &Receivers<'_>, _node: NodeId, done: &dyn Fn() -> bool) -> bool {
        done()
    }

    /// Wakes the worker of `node`, by another thread of the node.
    fn wake_worker(&self, _node: NodeId) {}

    /// What there is beside messages between the processes over which the nodes are spread; `None`
    /// where all are in this one.
    fn multiprocess(&self) -> Option<&dyn Multiprocess> {
        None
    }

    /// The worker of `node` enters the runtime: from here on its time is the runtime's. A
    /// simulator lets everything happen here that comes before the node's clock.
    fn enter(&self, node: NodeId);

    /// The worker of `node` goes back to the program's own computation.
    fn leave(&self, node: NodeId);

    /// The program says that it computes `units` of work. Nothing on a live machine.
    fn work(&self, node: NodeId, units: u64);

    /// The program computes within a call, as what makes an object's value does: from here on the
    /// worker's time is the program's (`begins`), or the runtime's again. That is all that
    /// happens, so the caller may hold the node's lock. Nothing on a live machine.
    fn computes(&self, _node: NodeId, _begins: bool) {}

    /// The clock by which it is counted how long workers wait, in nanoseconds: it need not go on
    /// while none does.
    fn waited(&self, node: NodeId) -> u64 {
        self.now(node)
    }

    /// Whether it is of account that the worker is in the runtime for a moment in which it neither
    /// sends nor waits: where others go on meanwhile, or the program's time is measured apart from
    /// the runtime's.
    fn counts_moments(&self) -> bool {
        true
    }

    /// Whether the network gives the numbers of broadcasts itself, so that asking for one disturbs
    /// no node: then nodes ask, whatever the size of what they broadcast.
    fn numbers_broadcasts(&self) -> bool {
        false
    }

    /// A clock in nanoseconds by which operations are timed that messages bring, where what the
    /// program computes is measured. Told by [`Outbox::work`](dhole_net::Outbox::work).
    fn stopwatch(&self) -> Option<fn() -> u64> {
        None
    }

    /// How many bytes messages are counted with: those that are sent, or what a cost model says.
    fn sizes(&self) -> MessageSizes {
        MessageSizes::SENT
    }

    /// Nanoseconds for which the program has computed on `node`, where the machine knows.
    fn computed(&self, _node: NodeId) -> u64 {
        0
    }

    /// Nanoseconds of processor time of the thread that calls, or of its process, where nodes can
    /// lack a processor. It is a system call.
    fn processor(&self, _node: NodeId) -> Option<u64> {
        None
    }

    /// Nanoseconds of processor time of the thread that calls, the worker's, where nodes have
    /// threads of their own. It is a system call.
    fn worker_processor(&self, _node: NodeId) -> Option<u64> {
        None
    }

    /// Bytes of pages for shared objects for which a node has memory, if that is limited.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }

    /// Runs `body` once for each of `nodes` nodes, as [`Fiber::PROGRAM`], delivering messages to
    /// `receivers`, and returns when all bodies have returned. Bodies do not unwind. A body of
    /// another fiber, which [began](Machine::begin) meanwhile, answers which fiber of the node
    /// goes on when it is over; the program's, which ends last, itself.
    ///
    /// # Errors
    /// [`StartError`] when the machine cannot run so many nodes; then no body has run.
    fn start_fibers(
        &self,
        receivers: &Receivers<'_>,
        body: &(dyn Fn(NodeId, Fiber) -> Fiber + Sync),
    ) -> Result<(), StartError>;

    /// As [`start_fibers`](Machine::start_fibers), where there are no processes.
    ///
    /// # Errors
    /// As there.
    fn start(
        &self,
        receivers: &Receivers<'_>,
        body: &(dyn Fn(NodeId) + Sync),
    ) -> Result<(), StartError> {
        self.start_fibers(receivers, &|node, fiber| {
            body(node);
            fiber
        })
    }

    /// Makes a stack for another body of `node`, which begins when it is first
    /// [handed over](Machine::hand_over) to. No fiber of this number was there before.
    ///
    /// # Errors
    /// [`StartError`] when there is no stack for it.
    fn begin(&self, node: NodeId, fiber: Fiber) -> Result<(), StartError>;

    /// The fiber `me` of `node` lets another one go on, which has begun and not ended, and returns
    /// when it is to go on itself. The caller holds no lock.
    fn hand_over(&self, node: NodeId, me: Fiber, to: Fiber);
}

/// What the processes of a cluster have to do with each other beside sending messages: they begin
/// a run together, and end it together.
pub trait Multiprocess: Sync {
    /// The node that is in this process.
    fn me(&self) -> NodeId;

    /// Nodes of the cluster.
    fn nodes(&self) -> usize;

    /// A number that no other run has, here or elsewhere.
    fn stamp(&self) -> u64;

    /// Begins a run, when all processes have come here: each says what it `brings`, and node 0's
    /// `judge` is given everybody's, in the order of the nodes, and says what they go by.
    ///
    /// # Errors
    /// [`StartError`] when a process does not come, or cannot run, or node 0 refuses.
    fn meet(
        &self,
        brings: Result<Vec<u8>, String>,
        judge: &Judge<'_>,
    ) -> Result<Vec<u8>, StartError>;

    /// How long after the nodes [met](Multiprocess::meet) the last run began here, in nanoseconds.
    fn began_after_ns(&self) -> u64 {
        0
    }

    /// From here on what goes to other processes says what is in `cluster`, and what they say of
    /// theirs goes there; payloads come out of `pool`.
    /// Where the run `survives` the loss of processes, the node here is told of each by a message
    /// of its own, and nobody else is.
    fn open(&self, cluster: &Arc<Cluster>, pool: &Arc<PayloadPool>, survives: bool);

    /// Lets the other processes of this machine read in their memory what is published in
    /// `cluster`, and the node here what they publish, as far as the system allows: what it
    /// refuses, in words. Called once for a cluster that has settled, before its node has a heap.
    fn publish(&self, cluster: &Cluster) -> Vec<String>;

    /// The domain of the node here, where the nodes of its machine are cut into domains so: none
    /// where the node is alone in it.
    ///
    /// # Errors
    /// Where this process cannot have the memory of the others: the system's own, and where it is
    /// memory that they can take away again.
    fn domain(&self, domains: Domains) -> io::Result<Option<Domain>> {
        let _ = domains;
        Ok(None)
    }

    /// A run is to begin here: whoever heard of a failure before hears that the program goes on,
    /// and whether the run `survives` the loss of nodes.
    fn begins(&self, survives: bool);

    /// The run here has ended well: whoever started this process hears it.
    fn ends(&self);

    /// The program here fails by itself, in these words: whoever started this process hears it,
    /// before any other node can.
    fn failed(&self, words: &str);

    /// The program here ends the run with an exit code, and does not fail: whoever started this
    /// process hears it, before any other node can.
    fn exits(&self, code: u8);

    /// Ends a run that has begun and that this process cannot take part in.
    fn abandon(&self, why: &str);

    /// Ends a run, when all processes have come here or are lost, as those in `without` are: each
    /// `brings` what it is to tell, and node 0's `judge` is given what has come, in the order of
    /// the nodes, and says what all take with them. Where the run survives the loss of node 0, the
    /// first that is left judges. Serves the others until then.
    ///
    /// # Errors
    /// How node 0 was lost, where the run does not survive that.
    fn part(
        &self,
        receivers: &Receivers<'_>,
        brings: Vec<u8>,
        without: &[LostNode],
        judge: &Verdict<'_>,
    ) -> Result<Vec<u8>, LostNode>;

    /// Ends a run in which this process has no part any more.
    fn withdraw(&self);
}

/// What node 0 makes of what all processes bring to a run.
pub type Judge<'a> = dyn Fn(&[Vec<u8>]) -> Result<Vec<u8>, String> + 'a;

/// What node 0 makes of what the processes bring from a run, as far as they were not lost.
pub type Verdict<'a> = dyn Fn(Vec<Result<Vec<u8>, LostNode>>) -> Vec<u8> + 'a;

/// A node whose process is gone, or was cut off.
#[derive(Clone, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[error("{node} is lost: {how}")]
pub struct LostNode {
    /// The node.
    pub node: NodeId,
    /// How it was lost.
    pub how: String,
}

dhole_model::debug_in_words!(LostNode);

/// Why a machine could not run a cluster.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Another process was lost before the run had begun.
    #[error("beginning a run of {nodes} processes: {lost}")]
    Lost {
        /// Nodes of the cluster.
        nodes: usize,
        /// Which, and how.
        lost: LostNode,
    },
    /// The processes do not go together, or one of them cannot run.
    #[error("beginning a run of {nodes} processes: {why}")]
    Apart {
        /// Nodes of the cluster.
        nodes: usize,
        /// In the words of the process that found it.
        why: String,
    },
    /// The operating system refused something that a node needs.
    #[error("starting {nodes} nodes on {machine}: {what}: {cause}")]
    Refused {
        /// The machine's name.
        machine: &'static str,
        /// Nodes asked for.
        nodes: usize,
        /// What was refused.
        what: &'static str,
        /// The system's own words.
        cause: String,
    },
}

dhole_model::debug_in_words!(StartError);
