//! The parts of a node that take their messages without the node lock: minipages, and threads that
//! wait for each other. They need nothing of intervals, write notices and the token.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use dhole_model::{CallSite, Counters, NodeId, WaitCause, Work};
use dhole_net::{Envelope, Outbox, PayloadPool};
use dhole_part::{NodePart, Outlet, PartCounters, PartMessage};
use dhole_protocol::{DeadlockProbe, Frame, Message, ProtocolError, Waiter};
use thiserror::Error;

use crate::count::MessageSizes;
use crate::domain::Domain;
use crate::raw_memory::{MemoryConsistency, MemoryLayout, MemoryManagers};

/// The parts of one node, and their hosts.
pub trait NodeParts: Send + Sync {
    /// The parts as what they are.
    fn as_any(&self) -> &dyn Any;

    /// Where this node's memory could lie, of the places that all nodes try in the same order: an
    /// empty word for one that it can have, or else what is in the way. Empty where the nodes need
    /// not agree on a place.
    fn places(&self) -> &[String] {
        &[]
    }

    /// The nodes have agreed, before any of them runs: on the leaders of their domains, in the
    /// order of the nodes, and on the number of one of the [places](NodeParts::places).
    ///
    /// # Errors
    /// What the system refuses, in its own words.
    fn settle(&mut self, leaders: &[NodeId], place: usize) -> io::Result<()>;

    /// Takes a message for the part of this number, and the bytes that came with it. `None` where
    /// the bytes are no message of a part that the node has: then nothing has happened.
    ///
    /// # Errors
    /// [`ProtocolError`], which ends the run on all nodes.
    fn deliver(
        &self,
        from: NodeId,
        part: u8,
        message: &[u8],
        payload: &[u8],
        out: &mut PartsOutbox<'_>,
    ) -> Option<Result<(), ProtocolError>>;

    /// The threads of this node add their edges to a probe of the wait-for graph.
    fn answers(&self, probe: &mut DeadlockProbe);

    /// A thread of this node that is in the first of these waits, is told that it waits for ever.
    fn told(&self, wait: &Waiter, waits: Arc<[Waiter]>, out: &mut PartsOutbox<'_>);

    /// The worker is about to make a call by which another node may learn what it has done: what it
    /// wrote goes first. Where that fails the run ends.
    fn before_release(&self);

    /// The run has ended early, or a node has failed: all threads that wait hear of it.
    fn ended(&self);

    /// Runs a body of the node on this thread. Until all bodies of the run are over the thread may
    /// wait by `link`, which lasts that long, and so may other threads that have ended by then.
    fn around(&self, link: &dyn PartsLink, body: &mut dyn FnMut());

    /// The program of the node has come to its end, within [`around`](NodeParts::around): next the
    /// node waits for the ends of the others.
    ///
    /// # Errors
    /// What is wrong with the node's memory: the node has failed then.
    fn program_over(&self) -> crate::Result<()>;

    /// All nodes have said that their programs have ended, next the parts are dropped. It is not
    /// called where a node was lost.
    fn all_have_ended(&self);

    /// What the node's threads wait for, for somebody who wonders why nothing happens.
    fn describe(&self) -> String;
}

/// Makes the parts of the nodes of a run. Its `Debug` must say all on which the nodes have to
/// agree.
pub trait PartsMaker: Debug + Send + Sync {
    /// The parts of a node.
    ///
    /// # Errors
    /// What the system refuses, in its own words.
    fn make(&self, place: PartsPlace) -> io::Result<Box<dyn NodeParts>>;
}

/// Where parts are.
#[derive(Clone, Debug)]
pub struct PartsPlace {
    /// Its node.
    pub node: NodeId,
    /// Nodes of the run.
    pub nodes: usize,
    /// Nodes of the run in this process.
    pub here: usize,
    /// Its domain, if others are in it, or it is the whole run.
    pub domain: Option<Domain>,
    /// How allocations lie in raw memory.
    pub layout: MemoryLayout,
    /// Which node manages a minipage of raw memory.
    pub managers: MemoryManagers,
    /// When a node sees what others write in raw memory, unless the allocation says so.
    pub consistency: MemoryConsistency,
}

impl PartsPlace {
    /// The domain, if all nodes of the run are in it.
    pub fn whole(&self) -> Option<&Domain> {
        let domain = self.domain.as_ref();
        domain.filter(|domain| domain.nodes.len() == self.nodes)
    }
}

/// The node whose parts send.
#[derive(Clone, Copy)]
pub(crate) struct Sender<'a> {
    pub node: NodeId,
    pub pool: &'a PayloadPool,
    pub counters: &'a PartCounters,
    pub sizes: MessageSizes,
}

/// What parts send, and what happened, in one step.
pub struct PartsOutbox<'a> {
    from: Sender<'a>,
    /// The node's clock, in nanoseconds; in what comes of a message it stands still.
    pub now_ns: u64,
    /// How long a thread waits before it looks why, in nanoseconds.
    pub patience_ns: u64,
    /// The thread takes another step after this time at the latest, if it has patience for so long.
    pub again_after: Option<Duration>,
    out: Outbox<Message>,
    /// So many of those were there before.
    before: usize,
    /// What the thread waits for if it is not over, and where in the program: for the report.
    pub waits_for: Option<PartsWait>,
    /// Since when it has waited for that elsewhere, by the same clock as [`now_ns`](Self::now_ns).
    pub since_ns: Option<u64>,
    /// Accesses of the program that faulted to read.
    pub read_faults: u64,
    /// Accesses that faulted to write.
    pub write_faults: u64,
    /// Requests that wait for an operation that is under way.
    pub competing_requests: u64,
    /// Requests ahead of their use that were dropped.
    pub dropped_prefetches: u64,
    /// Flushes that the node asks for.
    pub flushes: u64,
    /// The node's worker may go on.
    pub wakes_worker: bool,
    /// The step itself ended the wait, for the time of that is over or it never ends.
    pub ends_wait: bool,
    /// The thread has waited for long in this wait: a probe looks whether it ends.
    pub suspects: Option<Waiter>,
}

impl<'a> PartsOutbox<'a> {
    pub(crate) fn new(from: Sender<'a>, out: Outbox<Message>) -> PartsOutbox<'a> {
        PartsOutbox {
            from,
            before: out.len(),
            now_ns: 0,
            patience_ns: u64::MAX,
            again_after: None,
            waits_for: None,
            since_ns: None,
            out,
            read_faults: 0,
            write_faults: 0,
            competing_requests: 0,
            dropped_prefetches: 0,
            flushes: 0,
            wakes_worker: false,
            ends_wait: false,
            suspects: None,
        }
    }

    /// What a simulation charges.
    pub fn work(&mut self) -> &mut Work {
        self.out.work()
    }

    /// Whether the step sends nothing so far.
    pub fn is_silent(&self) -> bool {
        self.out.len() == self.before
    }

    /// The step is over: what happened is counted, and what is to be sent goes on.
    pub(crate) fn end(mut self) -> Outbox<Message> {
        if let Some(wait) = self.suspects {
            let node = self.from.node;
            let probe = DeadlockProbe::begin(wait);
            self.out.push(Envelope {
                from: node,
                to: node,
                body: Message::Probe(Box::new(probe)),
                payload: Vec::new().into(),
            });
        }
        let counters = self.from.counters;
        counters.read_faults.add(self.read_faults);
        counters.write_faults.add(self.write_faults);
        counters.competing_requests.add(self.competing_requests);
        counters.dropped_prefetches.add(self.dropped_prefetches);
        counters.flushes.add(self.flushes);
        self.out
    }
}

impl Outlet for PartsOutbox<'_> {
    fn buffer(&mut self) -> Vec<u8> {
        self.from.pool.take().into_buffer()
    }

    fn send<P: NodePart>(&mut self, to: NodeId, message: &P::Message, payload: Vec<u8>) {
        let Sender {
            node,
            counters,
            sizes,
            ..
        } = self.from;
        let body = Message::Part(Frame::of::<P>(message));
        counters.goes();
        if to != node {
            let bytes = (sizes.frame)(&body) + payload.len() as u64;
            counters.sent(message.kind(), bytes);
        }
        let (from, payload) = (node, payload.into());
        self.out.push(Envelope {
            from,
            to,
            body,
            payload,
        });
    }
}

/// Whether a thread that waits may go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartsStep {
    /// It may.
    Over,
    /// It waits for messages.
    Waits,
}

/// Why a thread cannot wait.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum PartsWaitError {
    /// The run has ended early.
    #[error("the run has ended: {0}")]
    Ended(String),
    /// The node's worker is in a call.
    #[error(
        "it was made within a call of the runtime (an operation, an initialiser), where nothing \
         can be waited for: read it before the call"
    )]
    InCall,
    /// The node's machine runs its program's thread alone.
    #[error("only the thread that runs the program of a node may do so here: it is simulated")]
    OneThread,
}

/// How a thread of the program that computes sends messages of the parts, and waits.
pub trait PartsLink: Sync {
    /// Takes a step, sends what it wants sent, and takes another one whenever messages may have
    /// come, until it is over. The thread is one that runs a body of the node, and computes.
    ///
    /// # Errors
    /// [`PartsWaitError`]
    fn wait(
        &self,
        step: &mut dyn FnMut(&mut PartsOutbox<'_>) -> PartsStep,
    ) -> Result<(), PartsWaitError>;

    /// As [`wait`](PartsLink::wait), of any other thread of the node's process: another step is
    /// taken whenever `waiter` was woken.
    ///
    /// # Errors
    /// [`PartsWaitError`]
    fn wait_beside(
        &self,
        waiter: &PartsWaiter,
        step: &mut dyn FnMut(&mut PartsOutbox<'_>) -> PartsStep,
    ) -> Result<(), PartsWaitError>;

    /// Whether other threads of the node's process may [wait](PartsLink::wait_beside).
    fn has_threads(&self) -> bool;

    /// Whether another thread may [wait](PartsLink::wait) in the worker's place while the worker's
    /// own does nothing.
    fn moves_worker(&self) -> bool;

    /// Takes what has come, of a thread that goes on at once: of the worker, or of one beside it.
    ///
    /// # Errors
    /// [`PartsWaitError::Ended`]
    fn look(&self, is_beside: bool) -> Result<(), PartsWaitError>;

    /// What this node has counted so far.
    fn counters(&self) -> Counters;

    /// The program on this node has failed in a thread, in these words: the run ends.
    fn fail(&self, words: &str);

    /// The program on this node ends the run with an exit code: whoever started its process hears
    /// it.
    fn exits(&self, code: u8);
}

/// A wait of a thread of the program.
#[derive(Clone, Copy, Debug)]
pub struct PartsWait {
    /// To which phase it belongs, and what is said of it.
    pub cause: WaitCause,
    /// What is waited for, in words; empty for pages.
    pub what: &'static str,
    /// Where in the program, if that is to be told.
    pub site: Option<CallSite>,
}

/// What a thread that is not its node's worker is woken by.
///
/// The thread parks. So a handler of a signal may end its sleep too, as a park may end early:
/// [`Thread::unpark`] takes no lock.
#[derive(Debug, Default)]
pub struct PartsWaiter {
    /// Counts the wakes.
    woken: AtomicU32,
    /// The thread that sleeps, or is about to.
    sleeps: Mutex<Option<Thread>>,
}

impl PartsWaiter {
    /// The thread that waits takes another step.
    pub fn wake(&self) {
        self.woken.fetch_add(1, Ordering::SeqCst);
        if let Some(thread) = &*self.sleeps() {
            thread.unpark();
        }
    }

    fn sleeps(&self) -> MutexGuard<'_, Option<Thread>> {
        self.sleeps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often it was woken.
    pub(crate) fn woken(&self) -> u32 {
        self.woken.load(Ordering::SeqCst)
    }

    /// Sleeps until it was woken once more than so often, or for a time, or until something else
    /// has interrupted it; whether it was woken.
    pub(crate) fn sleep(&self, seen: u32, at_most: Duration) -> bool {
        *self.sleeps() = Some(std::thread::current());
        // What an earlier wake has left.
        std::thread::park_timeout(Duration::ZERO);
        if self.woken() == seen {
            std::thread::park_timeout(at_most);
        }
        *self.sleeps() = None;
        self.woken() != seen
    }
}
