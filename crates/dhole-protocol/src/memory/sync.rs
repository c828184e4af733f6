//! Threads of several nodes that wait for each other: locks, barriers, conditions and semaphores by
//! 64-bit numbers, threads that nodes start, and their ends.
//!
//! A [`ThreadSync`] is one node's part. Each number has a *manager*, the node that a hash of it
//! says. A lock stays on the node whose thread held it last: its threads hand it on to each other
//! without a message, and at most [`MOST_IN_A_ROW`] times while another node waits. Its manager
//! passes requests on to the node that asked before. Barriers, conditions and semaphores are their
//! manager's; a node says in one message how many of its threads have reached a barrier.
//!
//! The machine relies on no order of messages. It does not know raw memory: the number of a lock
//! may be the address of one, and that address is never read.
//!
//! Where the threads of all nodes have memory in common, their locks may be words of it
//! ([`SharedLocks`]), which threads take without this machine. It knows of those that wait for
//! them, releases a lock where a thread waits on a condition, and follows deadlocks.
//!
//! ```
//! use dhole_model::{CallSite, NodeId};
//! use dhole_protocol::memory::sync::{ThreadAttempt, ThreadId, ThreadSync};
//!
//! let (me, site) = (NodeId(0), CallSite::caller());
//! let mut node = ThreadSync::new(me, 1);
//! let [one, two] = [1, 2].map(|number| ThreadId::new(me, me, number));
//! let mut out = Vec::new();
//! assert_eq!(node.lock(one, 7, site, &mut out), Ok(ThreadAttempt::Done(1)));
//! assert_eq!(node.lock(two, 7, site, &mut out), Ok(ThreadAttempt::Waits));
//! node.unlock(one, 7, &mut out)?;
//! assert_eq!(node.result(two), Some(Ok(1)));
//! # Ok::<(), dhole_protocol::memory::sync::ThreadRefusal>(())
//! ```

mod barriers;
mod conditions;
mod edges;
mod locks;
mod message;
mod shared_locks;
mod started;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use dhole_model::{CallSite, NodeId, SortedMap, WaitCause};
use dhole_part::{Effect, NodePart, PartEffects};
use dhole_sync::{Conditions, SWEEP_FROM, TravellingLocks, Turnstile};
use thiserror::Error;

use barriers::{Arrivals, Gathering};
use locks::ThreadLocks;
use shared_locks::Shared;
use started::Started;

use crate::waiting::Waiter;

pub use crate::thread_id::ThreadId;
pub use dhole_sync::MOST_IN_A_ROW;
pub use message::ThreadMessage;
pub use shared_locks::SharedLocks;
pub use started::MOST_STARTED;

/// Most threads of a node that wait at once.
pub const MOST_WAITING: usize = 4096;

/// Most locks that a node uses or manages, and as many barriers and semaphores. One that is as it
/// was before its first use is not among them.
pub const MOST_KEYS: usize = 1 << 22;

/// One node's part of what threads wait for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ThreadSync {
    me: NodeId,
    nodes: usize,
    /// As [`MOST_KEYS`].
    most_keys: usize,
    /// The node looks for barriers that it may forget when there are so many.
    looks_at: usize,
    /// The locks, if they are words of shared memory.
    shared: Shared,
    locks: TravellingLocks<ThreadLocks>,
    /// The barriers that threads of this node have reached.
    arrivals: SortedMap<u64, Arrivals>,
    /// As their manager.
    gatherings: SortedMap<u64, Gathering>,
    conditions: Conditions<u64, ThreadId>,
    semaphores: SortedMap<u64, Turnstile<ThreadId>>,
    /// What the threads of this node wait for.
    waits: SortedMap<ThreadId, Wait>,
    /// Counts the waits.
    wait: u64,
    started: Started,
    /// The threads that run beside the worker.
    beside: SortedMap<ThreadId, ()>,
    /// Other threads of the node that run in the worker's place, or have: its processes.
    in_place: SortedMap<ThreadId, ()>,
    /// Where a thread that has waited acquired the locks that it had then.
    acquired: SortedMap<ThreadId, Vec<(u64, CallSite)>>,
    /// What this node says to itself within a step.
    own: VecDeque<ThreadMessage>,
}

/// A thread of this node that waits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Wait {
    on: WaitsOn,
    wait: u64,
    site: CallSite,
    /// It goes on after some time, whatever happens.
    is_timed: bool,
    result: Option<Result<u64, ThreadRefusal>>,
}

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum WaitsOn {
    Lock(u64),
    Barrier(u64),
    /// It has its lock until its wait on the condition has begun. Meanwhile that may be signalled.
    Queue {
        condition: u64,
        lock: u64,
        signalled: bool,
    },
    Condition {
        condition: u64,
        lock: u64,
    },
    Semaphore(u64),
    Thread(ThreadId),
    /// It has started the thread, which is to begin.
    Beginning(ThreadId),
    /// It is to run a thread that is started here.
    Starts,
    /// It goes on when the threads beside it have ended that nobody started.
    Ends,
}

/// What comes of what a thread wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadAttempt {
    /// It has it: 1, or 0 where it only tried.
    Done(u64),
    /// It waits until it has a [result](ThreadSync::result).
    Waits,
}

/// Why a thread does not get what it wants.
#[derive(Clone, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ThreadRefusal {
    /// It has the lock already.
    #[error("acquiring lock {0:#x}: this thread has it already")]
    Held(u64),
    /// It does not have the lock.
    #[error("releasing lock {0:#x}: this thread does not have it")]
    NotHeld(u64),
    /// A barrier that no thread would reach.
    #[error("waiting at barrier {0:#x} of no threads: a barrier is of at least one")]
    NoParties(u64),
    /// Other threads wait at the barrier that say another number.
    #[error("a barrier {key:#x} of {given} threads: it takes {parties}, as others that wait say")]
    Parties {
        /// The barrier.
        key: u64,
        /// What others say.
        parties: u32,
        /// What this thread says.
        given: u32,
    },
    /// It waits for itself, through others.
    #[error("a deadlock: {}", circle(.0))]
    Deadlock(Arc<[Waiter]>),
    /// There are too many.
    #[error("more {what} than {most}")]
    Full {
        /// What.
        what: &'static str,
        /// So many there may be.
        most: usize,
    },
    /// There is no such node.
    #[error("starting a thread on {0}, which is not in the cluster")]
    NoNode(NodeId),
    /// There is no such thread, or another one has waited for its end.
    #[error("waiting for the end of {0}: there is no such thread, or it was waited for before")]
    NoThread(ThreadId),
    /// No thread may wait for its end.
    #[error("waiting for the end of {0}: it is detached")]
    Detached(ThreadId),
    /// The thread could not begin.
    #[error(
        "waiting for {0}: it could not begin, for its node runs no threads any more, or the system \
         gave it none (`ulimit -u` says how many a user may have)"
    )]
    NotBegun(ThreadId),
}

dhole_model::debug_in_words!(ThreadRefusal);

/// Waits that never end, in words.
fn circle(path: &[Waiter]) -> String {
    let words: Vec<String> = path.iter().map(ToString::to_string).collect();
    words.join("; ")
}

/// What only the host of the threads can do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ThreadAct {
    /// There is a thread to be [begun](ThreadSync::next_start), or the program has left.
    Started,
}

/// An effect of a step, recorded. A thread for which something is over has a
/// [result](ThreadSync::result).
pub type ThreadEffect = Effect<ThreadSync>;

impl NodePart for ThreadSync {
    const TAG: u8 = 1;

    type Message = ThreadMessage;
    type Act = ThreadAct;
    type Waiter = ThreadId;
    type Event = Infallible;

    fn deliver(
        &mut self,
        from: NodeId,
        message: ThreadMessage,
        _payload: usize,
        fx: &mut impl PartEffects<Self>,
    ) -> Result<(), &'static str> {
        message.check(self.nodes)?;
        self.take(from, message, fx)?;
        self.take_own(fx)
    }

    fn is_at_rest(&self) -> bool {
        self.waits.is_empty() && self.locks.is_at_rest()
    }
}

fn manager_of(key: u64, nodes: usize) -> NodeId {
    // Fibonacci hashing: numbers that are addresses differ in their middle.
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    NodeId::at((hash % nodes as u64) as usize)
}

type Taken = Result<(), &'static str>;
type Attempt = Result<ThreadAttempt, ThreadRefusal>;

impl ThreadSync {
    /// The part of node `me` of `nodes`.
    pub fn new(me: NodeId, nodes: usize) -> ThreadSync {
        ThreadSync::with_room(me, nodes, MOST_KEYS)
    }

    /// With room for so many keys of each kind: for models and tests.
    #[doc(hidden)]
    pub fn with_room(me: NodeId, nodes: usize, most_keys: usize) -> ThreadSync {
        ThreadSync {
            me,
            nodes,
            most_keys,
            looks_at: SWEEP_FROM.min(most_keys),
            shared: Shared::default(),
            locks: TravellingLocks::new(me, nodes, most_keys),
            arrivals: SortedMap::new(),
            gatherings: SortedMap::new(),
            conditions: Conditions::default(),
            semaphores: SortedMap::new(),
            waits: SortedMap::new(),
            wait: 0,
            started: Started::default(),
            beside: SortedMap::new(),
            in_place: SortedMap::new(),
            acquired: SortedMap::new(),
            own: VecDeque::new(),
        }
    }

    /// How many locks, barriers, waits on conditions and semaphores are kept: for models and
    /// tests.
    #[doc(hidden)]
    pub fn kept(&self) -> [usize; 4] {
        [
            self.locks.kept(),
            self.arrivals.len() + self.gatherings.len(),
            self.conditions.waiters().len(),
            self.semaphores.len(),
        ]
    }

    /// That there are too many keys of a kind.
    fn full(&self, what: &'static str) -> ThreadRefusal {
        let most = self.most_keys;
        ThreadRefusal::Full { what, most }
    }

    /// Nodes of the cluster.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Who manages what has this number.
    pub fn manager_of(&self, key: u64) -> NodeId {
        manager_of(key, self.nodes)
    }

    /// What a thread waits for, to which phase of its node that belongs, and where.
    pub fn waits_for(&self, thread: ThreadId) -> Option<(WaitCause, &'static str, CallSite)> {
        let wait = self.waits.get(&thread)?;
        let (cause, what) = match wait.on {
            WaitsOn::Lock(_) => (WaitCause::Lock, "a lock of threads"),
            WaitsOn::Barrier(_) => (WaitCause::Barrier, "a barrier of threads"),
            WaitsOn::Queue { .. } | WaitsOn::Condition { .. } => {
                (WaitCause::Lock, "a condition or a semaphore of threads")
            }
            WaitsOn::Semaphore(_) => (WaitCause::Lock, "a semaphore of threads"),
            WaitsOn::Thread(_) | WaitsOn::Beginning(_) | WaitsOn::Starts | WaitsOn::Ends => {
                (WaitCause::Operation, "a thread")
            }
        };
        Some((cause, what, wait.site))
    }

    /// Takes the result of a wait, once it has one.
    pub fn result(&mut self, thread: ThreadId) -> Option<Result<u64, ThreadRefusal>> {
        self.waits.get(&thread)?.result.as_ref()?;
        self.waits.remove(&thread)?.result
    }

    /// A thread begins to wait.
    fn begin(
        &mut self,
        thread: ThreadId,
        on: WaitsOn,
        site: CallSite,
    ) -> Result<(), ThreadRefusal> {
        if self.waits.len() >= MOST_WAITING {
            let (what, most) = ("threads of a node that wait", MOST_WAITING);
            return Err(ThreadRefusal::Full { what, most });
        }
        self.wait += 1;
        let (wait, result) = (self.wait, None);
        let wait = Wait {
            on,
            wait,
            site,
            is_timed: false,
            result,
        };
        self.waits.insert(thread, wait);
        Ok(())
    }

    /// What a thread waits for that has no result.
    fn waits_on(&self, thread: ThreadId) -> Option<WaitsOn> {
        let wait = self.waits.get(&thread)?;
        wait.result.is_none().then_some(wait.on)
    }

    /// A thread has a result.
    fn finish(
        &mut self,
        thread: ThreadId,
        result: Result<u64, ThreadRefusal>,
        out: &mut impl PartEffects<Self>,
    ) {
        if let Some(wait) = self.waits.get_mut(&thread) {
            wait.result = Some(result);
            out.over(thread);
        }
    }

    fn take(
        &mut self,
        from: NodeId,
        message: ThreadMessage,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        use ThreadMessage as M;
        match message {
            M::Acquire { key, number, tries } => {
                let passed = self.locks.requested(key, from, (number, tries))?;
                self.pass(key, passed, out);
                Ok(())
            }
            M::Forward {
                key,
                asker,
                number,
                tries,
            } => {
                self.by_manager(from, key)?;
                let passed = self.locks.forwarded(key, asker, (number, tries))?;
                self.pass(key, passed, out);
                Ok(())
            }
            M::Token { key } => {
                let passed = self.locks.granted(key, ())?;
                self.pass(key, passed, out);
                self.refuse_tries(key, out);
                Ok(())
            }
            M::Busy { key, number } => {
                if self.locks.asked(key) == Some(number) {
                    self.refuse_tries(key, out);
                }
                Ok(())
            }
            M::NoLock { key, number } => {
                self.by_manager(from, key)?;
                self.take_no_lock(key, number, out)
            }
            M::Arrive {
                key,
                parties,
                count,
            } => {
                self.managed(key)?;
                self.take_arrive(from, key, (parties, count), out)
            }
            M::Depart { key, count, first } => {
                self.by_manager(from, key)?;
                self.take_depart(key, count, first, out)
            }
            M::Refuse {
                key,
                parties,
                count,
            } => {
                self.by_manager(from, key)?;
                self.take_refuse(key, parties, count, out)
            }
            M::Wait { condition, thread } => {
                self.managed(condition)?;
                self.of_sender(from, thread)?;
                self.take_wait(condition, thread, out)
            }
            M::Queued { thread } => self.take_queued(from, thread, out),
            M::Signal { condition, all } => {
                self.managed(condition)?;
                self.take_signal(condition, all, out);
                Ok(())
            }
            M::Signalled { thread } => self.take_signalled(from, thread, out),
            M::Post { key, count } => {
                self.managed(key)?;
                self.take_post(key, count, out)
            }
            M::Set { key, thread, count } => {
                self.managed(key)?;
                self.of_sender(from, thread)?;
                self.take_set(key, thread, count, out)
            }
            M::Take { key, thread, tries } => {
                self.managed(key)?;
                self.of_sender(from, thread)?;
                self.take_take(key, thread, tries, out)
            }
            M::Taken { thread, taken } => self.take_taken(from, thread, taken, out),
            M::NoRoom { thread } => self.take_no_room(from, thread, out),
            M::Start {
                thread,
                entry,
                argument,
                by,
                awaited,
            } => self.take_start(from, thread, (entry, argument), awaited.then_some(by), out),
            M::Begun { thread, by, begins } => self.take_begun(from, (thread, by), begins, out),
            M::Join { thread, by } => {
                self.of_sender(from, by)?;
                self.take_join(thread, by, out)
            }
            M::Joined {
                thread,
                by,
                value,
                ran,
            } => self.take_joined(from, (thread, by), (value, ran), out),
            M::Leave => {
                self.started.has_left = true;
                self.starts_come(out);
                out.act(ThreadAct::Started);
                Ok(())
            }
        }
    }

    fn managed(&self, key: u64) -> Taken {
        match self.manager_of(key) == self.me {
            true => Ok(()),
            false => Err("a request of a thread to a node that does not manage what it is about"),
        }
    }

    fn by_manager(&self, from: NodeId, key: u64) -> Taken {
        match self.manager_of(key) == from {
            true => Ok(()),
            false => Err("what only the manager of a lock or barrier says"),
        }
    }

    fn of_sender(&self, from: NodeId, thread: ThreadId) -> Taken {
        match thread.node() == from {
            true => Ok(()),
            false => Err("a request for a thread of another node"),
        }
    }

    /// Takes what this node has said to itself.
    fn take_own(&mut self, out: &mut impl PartEffects<Self>) -> Taken {
        while let Some(message) = self.own.pop_front() {
            self.take(self.me, message, out)?;
        }
        Ok(())
    }

    /// As [`take_own`](ThreadSync::take_own), of a step that no message of another node has led to.
    fn own_messages(&mut self, out: &mut impl PartEffects<Self>) {
        let taken = self.take_own(out);
        taken.expect("what a node says to itself is sound");
    }

    fn send(&mut self, to: NodeId, message: ThreadMessage, out: &mut impl PartEffects<Self>) {
        match to == self.me {
            true => self.own.push_back(message),
            false => out.send(to, message),
        }
    }

    fn send_others(&self, message: &ThreadMessage, out: &mut impl PartEffects<Self>) {
        let all = (0..self.nodes).map(NodeId::at);
        for to in all.filter(|to| *to != self.me) {
            let message = message.clone();
            out.send(to, message);
        }
    }

    /// What the threads of this node wait for, a line each, for somebody who wonders why nothing
    /// happens.
    pub fn describe(&self) -> Vec<String> {
        let waits = self.waits.iter().filter(|(_, wait)| wait.result.is_none());
        let words = waits.map(|(thread, Wait { on, site, .. })| {
            let on = on.as_edge();
            format!("{thread} waits for {on} at {site}")
        });
        words.collect()
    }

    /// Who holds a lock, if this node knows.
    #[doc(hidden)]
    pub fn holder(&self, key: u64) -> Option<ThreadId> {
        match self.shared.locks() {
            Some(locks) => self.shared_holder(locks, key),
            None => self.locks.holder(key),
        }
    }
}
