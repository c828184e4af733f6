//! The model of threads that wait for each other. It explores every run of a small program over the
//! machines of its nodes, with messages that arrive in any order.
//!
//! A thread takes a step, or waits for its machine's result, which it takes at once. Ghosts know
//! who holds each lock, and how many threads have reached and passed each barrier.

mod findings;
mod probes;
mod shared_locks;

use std::collections::BTreeMap;
use std::fmt;

use dhole_model::{CallSite, NodeId};
use dhole_protocol::DeadlockProbe;
use dhole_protocol::memory::sync::{
    ThreadAct, ThreadAttempt, ThreadEffect, ThreadId, ThreadMessage, ThreadRefusal, ThreadSync,
};
use dhole_protocol::part::NodePart as _;

use super::Sealed;
use super::world::{self, Found, Parcel, ParcelOf, Scene, World};

pub use findings::{ThreadBug, ThreadFault, ThreadSight};

/// A step of a thread. Locks, barriers, conditions and semaphores have numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ThreadOp {
    /// Acquires a lock.
    Lock(u64),
    /// Acquires a lock if it is free, and then releases it.
    Try(u64),
    /// Releases a lock.
    Unlock(u64),
    /// Reaches a barrier of so many threads.
    Barrier(u64, u32),
    /// Waits on a condition, with a lock, unless another thread has set the flag of that number.
    Await(u64, u64),
    /// Sets the flag of a condition.
    Set(u64),
    /// Signals a condition: the first that waits, or all.
    Signal(u64, bool),
    /// Adds one to a semaphore.
    Post(u64),
    /// Takes one of a semaphore.
    Acquire(u64),
}

/// A program of threads.
#[derive(Clone, Debug)]
pub struct ThreadModel {
    /// The steps of each thread of each node.
    pub nodes: Vec<Vec<Vec<ThreadOp>>>,
    /// Threads of so many nodes that wait look once for a deadlock; in a sound program there is
    /// none.
    pub suspects: usize,
    /// Threads wait for each other for ever: one of them is told. Whoever waits when nothing else
    /// can happen looks once more.
    pub deadlocks: bool,
    /// Locks are words that the threads of all nodes have in common.
    pub shares_locks: bool,
    /// Each node has room for so many keys of each kind; in a sound program that is enough, if what
    /// is at rest is forgotten.
    pub room: usize,
    /// A mistake that the checker is to find.
    pub bug: Option<ThreadBug>,
}

/// A thread of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Thread {
    done: usize,
    waits: bool,
    /// It waits for a shared lock, which it takes by itself.
    takes: bool,
    /// It has looked for a deadlock.
    suspected: bool,
    /// It has looked when nothing else could happen.
    asked: bool,
    /// It was told that it waits for ever, and ends there, with the locks that it has.
    told: bool,
}

#[derive(Clone, PartialEq, Hash, Debug)]
pub(super) struct Node {
    machine: ThreadSync,
    threads: Vec<Thread>,
    /// Messages that it has sent and received, where threads look for deadlocks.
    traffic: [u64; 2],
}

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Said {
    Thread(ThreadMessage),
    Probe(Box<DeadlockProbe>),
}

/// A barrier, as the ghosts know it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Passed {
    reached: u32,
    passed: u32,
    first: u32,
}

/// What no machine knows.
#[derive(Clone, PartialEq, Hash, Debug)]
pub(super) struct Ghosts {
    /// Who holds each lock.
    holders: BTreeMap<u64, ThreadId>,
    /// The locks that are held, where they are shared.
    shared: BTreeMap<u64, ThreadId>,
    barriers: BTreeMap<u64, Passed>,
    /// What each semaphore has, and the flags of conditions that are set.
    has: BTreeMap<u64, u32>,
    flags: BTreeMap<u64, bool>,
}

type Moment = World<ThreadModel>;
type Step<'a> = world::Step<'a, ThreadModel>;

/// What a thread does next, or what its node does for it.
#[derive(Clone, PartialEq)]
pub(super) enum Happening {
    /// A thread takes its next step.
    Compute(usize, usize),
    /// A thread that waits takes a shared lock.
    Take(usize, usize),
    /// A node tells the manager of a barrier who waits there.
    Flush(usize, u64),
    /// A thread that waits looks for a deadlock.
    Suspect(usize, usize),
    /// It looks when nothing else can happen.
    Ask(usize, usize),
}

impl fmt::Debug for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Happening::Compute(node, thread) => write!(f, "thread {thread} of n{node} goes on"),
            Happening::Take(node, thread) => write!(f, "thread {thread} of n{node} takes its lock"),
            Happening::Flush(node, key) => write!(f, "n{node} flushes barrier {key}"),
            Happening::Suspect(node, thread) => write!(f, "thread {thread} of n{node} suspects"),
            Happening::Ask(node, thread) => write!(f, "thread {thread} of n{node} asks"),
        }
    }
}

/// The number of a thread in its machine.
fn id(node: usize, thread: usize) -> ThreadId {
    let at = NodeId::at(node);
    ThreadId::new(at, at, thread as u32)
}

impl Step<'_> {
    /// A message is on its way.
    fn sends(&mut self, from: usize, to: NodeId, message: ThreadMessage) {
        self.counts(from, 0);
        self.says(from, to, Said::Thread(message));
    }

    /// Counts a message that was sent, or received, where a probe asks.
    fn counts(&mut self, at: usize, which: usize) {
        if self.model.suspects > 0 || self.model.deadlocks {
            self.at(at, |node, _| node.traffic[which] += 1);
        }
    }

    fn says(&mut self, from: usize, to: NodeId, message: Said) {
        let (from, holds) = (NodeId::at(from), ());
        self.put(Parcel {
            from,
            to,
            message,
            holds,
        });
    }

    /// Changes a node, and carries out what its machine wants done.
    fn at<R>(&mut self, at: usize, f: impl FnOnce(&mut Node, &mut Vec<ThreadEffect>) -> R) -> R {
        let mut node = Node::clone(&self.moment.nodes[at]);
        let mut out = Vec::new();
        let result = match self.model.shares_locks {
            true => self.with_shared(&mut node, |node| f(node, &mut out)),
            false => f(&mut node, &mut out),
        };
        self.moment.nodes[at] = Sealed::new(node);
        for command in out {
            match command {
                ThreadEffect::Send { to, message } => self.send(at, to, message),
                ThreadEffect::Over(thread) => self.wake(at, thread.number() as usize),
                ThreadEffect::Act(ThreadAct::Started) => {}
            }
        }
        result
    }

    /// Sends a message, or what a bug makes of it.
    fn send(&mut self, from: usize, to: NodeId, mut message: ThreadMessage) {
        use ThreadMessage as M;
        match (self.model.bug, &mut message) {
            // Another node that has asked for the lock gets it too.
            (Some(ThreadBug::TwoTokens), M::Token { .. }) => {
                let others = (0..self.moment.nodes.len()).map(NodeId::at);
                for other in others.filter(|it| it.index() != from && *it != to) {
                    self.sends(from, other, message.clone());
                }
            }
            (Some(ThreadBug::LostToken), M::Token { .. })
            | (Some(ThreadBug::LostSignal), M::Signalled { .. })
            | (Some(ThreadBug::LostPost), M::Taken { .. }) => return,
            (Some(ThreadBug::OneTooFew), M::Arrive { parties, .. }) => *parties -= 1,
            (Some(ThreadBug::CountedTwice), M::Arrive { count, .. }) => *count += 1,
            (Some(ThreadBug::AllFirst), M::Depart { first, .. }) => *first = true,
            // The thread gives its lock up before its wait has begun.
            (Some(ThreadBug::EarlyRelease), M::Wait { thread, .. }) => {
                let queued = M::Queued { thread: *thread };
                self.sends(to.index(), NodeId::at(from), queued);
            }
            (Some(ThreadBug::EarlyRelease), M::Queued { .. }) => return,
            _ => {}
        }
        self.sends(from, to, message);
    }

    /// A thread has a result.
    fn wake(&mut self, at: usize, thread: usize) {
        if !self.moment.nodes[at].threads[thread].waits {
            return;
        }
        let result = self.at(at, |node, _| node.machine.result(id(at, thread)));
        match result {
            Some(Ok(_)) if self.lacks_shared(at, thread) => self.wants_shared(at, thread),
            Some(Ok(value)) => self.has_done(at, thread, value),
            Some(Err(ThreadRefusal::Deadlock(_))) => self.is_told(at, thread),
            Some(Err(_)) => self.fault(ThreadFault::Refused),
            None => {}
        }
    }

    /// A thread has done its step.
    fn has_done(&mut self, at: usize, thread: usize, value: u64) {
        let (own, op) = (id(at, thread), self.op(at, thread));
        let mut again = false;
        match op {
            ThreadOp::Lock(key) => self.holds(key, own),
            ThreadOp::Await(condition, lock) => {
                self.holds(lock, own);
                // Without the flag it was woken by another signal, and waits again.
                again = !self.is_set(condition);
            }
            ThreadOp::Try(key) if value == 1 => {
                self.holds(key, own);
                self.moment.holders.remove(&key);
                if self.unlock(at, own, key).is_err() {
                    self.fault(ThreadFault::Refused);
                }
            }
            ThreadOp::Barrier(key, parties) => {
                let barrier = self.moment.barriers.entry(key).or_default();
                barrier.passed += 1;
                barrier.first += value as u32;
                let rounds = barrier.reached / parties;
                if barrier.passed > rounds * parties || barrier.first > rounds {
                    self.fault(ThreadFault::TooEarly);
                }
            }
            ThreadOp::Acquire(key) => {
                let has = self.moment.has.entry(key).or_default();
                match has.checked_sub(1) {
                    Some(left) => *has = left,
                    None => self.fault(ThreadFault::TooEarly),
                }
            }
            _ => {}
        }
        let ops = self.model.nodes[at][thread].len();
        self.at(at, |node, _| {
            let state = &mut node.threads[thread];
            state.waits = false;
            state.done += usize::from(!again);
            if state.done == ops {
                node.machine.ends_beside(own);
            }
        });
    }

    fn is_set(&self, condition: u64) -> bool {
        self.moment.flags.get(&condition).copied().unwrap_or(false)
    }

    fn holds(&mut self, key: u64, thread: ThreadId) {
        if self.moment.holders.insert(key, thread).is_some() {
            self.fault(ThreadFault::NotAlone);
        }
    }

    fn op(&self, at: usize, thread: usize) -> ThreadOp {
        self.model.nodes[at][thread][self.moment.nodes[at].threads[thread].done]
    }

    fn unlock(&mut self, at: usize, own: ThreadId, key: u64) -> Result<(), ThreadRefusal> {
        match self.model.shares_locks {
            true => self.unlock_shared(own, key),
            false => self.at(at, |node, out| node.machine.unlock(own, key, out)),
        }
    }

    fn compute(&mut self, at: usize, thread: usize) {
        let (own, op, site) = (
            id(at, thread),
            self.op(at, thread),
            CallSite::runtime("a step"),
        );
        match op {
            ThreadOp::Unlock(key) => drop(self.moment.holders.remove(&key)),
            ThreadOp::Await(condition, _) if self.is_set(condition) => {
                return self.at(at, |node, _| node.threads[thread].done += 1);
            }
            ThreadOp::Await(_, lock) => drop(self.moment.holders.remove(&lock)),
            ThreadOp::Barrier(key, _) => {
                self.moment.barriers.entry(key).or_default().reached += 1;
            }
            ThreadOp::Post(key) => *self.moment.has.entry(key).or_default() += 1,
            ThreadOp::Set(condition) => drop(self.moment.flags.insert(condition, true)),
            _ => {}
        }
        self.at(at, |node, _| node.threads[thread].waits = true);
        if self.model.shares_locks
            && let Some(key) = shared_locks::takes(op)
        {
            return self.takes_shared(at, thread, key);
        }
        if let ThreadOp::Unlock(key) = op {
            return match self.unlock(at, own, key) {
                Ok(()) => self.has_done(at, thread, 1),
                Err(_) => self.fault(ThreadFault::Refused),
            };
        }
        let attempt = self.at(at, |node, out| {
            let machine = &mut node.machine;
            let done = Ok(ThreadAttempt::Done(1));
            match op {
                ThreadOp::Lock(key) => machine.lock(own, key, site, out),
                ThreadOp::Try(key) => machine.try_lock(own, key, site, out),
                ThreadOp::Unlock(_) => unreachable!("it was released"),
                ThreadOp::Barrier(key, parties) => machine.arrive(own, key, parties, site, out),
                ThreadOp::Await(condition, lock) => {
                    machine.wait_on(own, condition, lock, site, out)
                }
                ThreadOp::Signal(condition, all) => {
                    machine.signal(condition, all, out);
                    done
                }
                ThreadOp::Set(_) => done,
                ThreadOp::Post(key) => machine.post(key, 1, out).map(|()| ThreadAttempt::Done(1)),
                ThreadOp::Acquire(key) => machine.acquire(own, key, false, site, out),
            }
        });
        match attempt {
            Ok(ThreadAttempt::Done(value)) => self.has_done(at, thread, value),
            Ok(ThreadAttempt::Waits) => {}
            Err(_) => self.fault(ThreadFault::Refused),
        }
    }
}

impl ThreadModel {
    /// Takes every step from every state, until the first fault.
    pub fn explore(self) -> Found<ThreadFault, ThreadSight> {
        world::explore(self)
    }
}

impl Scene for ThreadModel {
    type Message = Said;
    type Node = Node;
    type Holds = ();
    type Ghosts = Ghosts;
    type Happens = Happening;
    type Fault = ThreadFault;
    type Sight = ThreadSight;

    fn first(&self) -> (Vec<Node>, Ghosts) {
        let nodes = self.nodes.len();
        let node = |(at, threads): (usize, &Vec<Vec<ThreadOp>>)| {
            let mut machine = ThreadSync::with_room(NodeId::at(at), nodes, self.room);
            let beside = (1..threads.len()).filter(|thread| !threads[*thread].is_empty());
            beside.for_each(|thread| machine.runs_beside(id(at, thread)));
            Node {
                machine,
                threads: vec![Thread::default(); threads.len()],
                traffic: [0; 2],
            }
        };
        let ghosts = Ghosts {
            holders: BTreeMap::new(),
            shared: BTreeMap::new(),
            barriers: BTreeMap::new(),
            has: BTreeMap::new(),
            flags: BTreeMap::new(),
        };
        (self.nodes.iter().enumerate().map(node).collect(), ghosts)
    }

    fn happenings(&self, moment: &Moment, actions: &mut Vec<Happening>) {
        for (at, (node, ops)) in moment.nodes.iter().zip(&self.nodes).enumerate() {
            for (number, (thread, ops)) in node.threads.iter().zip(ops).enumerate() {
                let Some(op) = ops.get(thread.done) else {
                    continue;
                };
                if thread.told {
                    continue;
                }
                if !thread.waits {
                    actions.push(Happening::Compute(at, number));
                    continue;
                }
                if let ThreadOp::Barrier(key, _) = op
                    && node.machine.has_unsent(*key)
                    && !actions.contains(&Happening::Flush(at, *key))
                {
                    actions.push(Happening::Flush(at, *key));
                }
                if thread.takes && shared_locks::is_free(moment, *op) {
                    actions.push(Happening::Take(at, number));
                }
                if at < self.suspects && !thread.suspected {
                    actions.push(Happening::Suspect(at, number));
                }
            }
        }
        if self.deadlocks && actions.is_empty() && moment.parcels().next().is_none() {
            actions.extend(probes::last_askers(moment, self));
        }
    }

    fn happen(step: &mut Step<'_>, what: Happening) {
        match what {
            Happening::Compute(at, thread) => step.compute(at, thread),
            Happening::Take(at, thread) => step.gets_shared(at, thread),
            Happening::Flush(at, key) => step.at(at, |node, out| node.machine.flush(key, out)),
            Happening::Suspect(at, thread) => {
                step.at(at, |node, _| node.threads[thread].suspected = true);
                step.asks(at, thread);
            }
            Happening::Ask(at, thread) => {
                step.at(at, |node, _| node.threads[thread].asked = true);
                step.asks(at, thread);
            }
        }
        step.forgets_traffic();
    }

    fn deliver(step: &mut Step<'_>, parcel: ParcelOf<ThreadModel>) {
        let Parcel {
            from, to, message, ..
        } = parcel;
        let message = match message {
            Said::Thread(message) => message,
            Said::Probe(probe) => {
                step.visited(to.index(), probe);
                return step.forgets_traffic();
            }
        };
        step.counts(to.index(), 1);
        let taken = step.at(to.index(), |node, out| {
            node.machine.deliver(from, message, 0, out)
        });
        if taken.is_err() {
            step.fault(ThreadFault::Refused);
        }
        step.forgets_traffic();
    }

    fn at_rest(&self, moment: &Moment) -> Option<ThreadFault> {
        let mut next = Vec::new();
        self.happenings(moment, &mut next);
        if !next.is_empty() {
            return None;
        }
        let mut all = moment.nodes.iter().flat_map(|node| &node.threads);
        if self.deadlocks && all.any(|thread| thread.told) {
            return None;
        }
        let mut threads = moment.nodes.iter().zip(&self.nodes);
        let all_done = threads.all(|(node, ops)| {
            let mut threads = node.threads.iter().zip(ops);
            threads.all(|(thread, ops)| thread.done == ops.len())
        });
        let rests = moment.nodes.iter().all(|node| node.machine.is_at_rest());
        match (all_done, rests) {
            (false, _) => Some(ThreadFault::Stuck),
            (true, false) => Some(ThreadFault::Restless),
            (true, true) => None,
        }
    }

    fn shows(&self, moment: &Moment, sight: ThreadSight) -> bool {
        let comes = |is: fn(&ThreadMessage) -> bool| {
            moment.parcels().any(|parcel| match &parcel.message {
                Said::Thread(message) => is(message),
                Said::Probe(_) => false,
            })
        };
        let waits = |of: fn(&ThreadOp) -> bool| {
            let nodes = moment.nodes.iter().zip(&self.nodes);
            let waiting = nodes.map(|(node, ops)| {
                let threads = node.threads.iter().zip(ops);
                threads
                    .filter(|(it, ops)| it.waits && of(&ops[it.done]))
                    .count()
            });
            waiting.collect::<Vec<_>>()
        };
        match sight {
            ThreadSight::BothWait => waits(|op| matches!(op, ThreadOp::Lock(_))).contains(&2),
            ThreadSight::SentTogether => {
                comes(|it| matches!(it, ThreadMessage::Arrive { count: 2, .. }))
            }
            ThreadSight::Busy => comes(|it| matches!(it, ThreadMessage::Busy { .. })),
            ThreadSight::SignalOvertakes => moment.parcels().any(|one| {
                let Said::Thread(ThreadMessage::Signalled { thread }) = one.message else {
                    return false;
                };
                let mut others = moment.parcels();
                others.any(|it| it.message == Said::Thread(ThreadMessage::Queued { thread }))
            }),
            ThreadSight::Probe => moment.parcels().any(|parcel| match &parcel.message {
                Said::Thread(_) => false,
                Said::Probe(probe) => {
                    let first = probe.edges.first.as_ref();
                    first.is_some_and(|first| first.waits.len() > 1)
                }
            }),
            ThreadSight::Told => {
                let mut all = moment.nodes.iter().flat_map(|node| &node.threads);
                all.any(|thread| thread.told)
            }
        }
    }
}
