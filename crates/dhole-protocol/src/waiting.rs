//! What nodes wait for: the edges of the wait-for graph, and its nodes.

use std::fmt;

use dhole_model::{CallSite, NodeId, ObjectId};
use dhole_wire::Wire;
use serde::{Deserialize, Serialize};

use dhole_sync::ThreadOf;

use crate::collective_call::CollectiveWait;
use crate::sync_id::{BarrierId, LockId};
use crate::sync_object::{ConditionId, RwLockId, SyncObject};
use crate::thread_id::ThreadId;

/// What a node waits for, as an edge of the wait-for graph.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub enum WaitingFor {
    /// A lock that another node holds or waits for.
    Lock(LockId),
    /// A barrier that not all nodes have reached.
    Barrier(BarrierId),
    /// A read-write lock that others hold, or a permit.
    SyncObject(SyncObject),
    /// A condition that another node has to notify.
    Condition(ConditionId),
    /// An operation, until it was executed.
    Operation(Operation),
    /// A process, until it has come to its end.
    Process(Started),
    /// Processes that wait until one of those has ended that have begun on the node.
    Begin(Unbegun),
    /// Values of a collective.
    Collective(CollectiveWait),
    /// What a thread of raw memory waits for.
    Thread(ThreadWait),
    /// The condition of a read-write lock, which another node has to notify.
    RwLockCondition(RwLockId),
}

/// What a thread of raw memory waits for, by numbers.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub enum ThreadWait {
    /// A lock.
    Lock(u64),
    /// A barrier of threads.
    Barrier(u64),
    /// A condition.
    Condition(u64),
    /// A semaphore.
    Semaphore(u64),
    /// The end of a thread.
    End(ThreadId),
    /// The beginning of a thread.
    Begin(ThreadId),
    /// Threads that are to be started on its node.
    Starts,
    /// The ends of threads beside it.
    Ends,
}

impl fmt::Display for ThreadWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadWait::Lock(key) => write!(f, "lock {key:#x}"),
            ThreadWait::Barrier(key) => write!(f, "barrier {key:#x}"),
            ThreadWait::Condition(key) => write!(f, "condition {key:#x}"),
            ThreadWait::Semaphore(key) => write!(f, "semaphore {key:#x}"),
            ThreadWait::End(thread) => write!(f, "the end of {thread}"),
            ThreadWait::Begin(thread) => write!(f, "the beginning of {thread}"),
            ThreadWait::Starts => f.write_str("threads to be started"),
            ThreadWait::Ends => f.write_str("the ends of its threads"),
        }
    }
}

/// The processes that wait to begin on a node, for as many have begun as may.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub struct Unbegun {
    /// How many have begun and not ended.
    pub begun: u32,
    /// How many wait.
    pub waiting: u32,
}

impl Waiter {
    /// Processes that wait to begin on a node, the first of which was started at `site`.
    pub fn unbegun(node: NodeId, unbegun: Unbegun, site: CallSite) -> Waiter {
        Waiter {
            thread: Waiter::NO_THREAD,
            ..Waiter::of_worker(node, WaitingFor::Begin(unbegun), site, u64::MAX)
        }
    }

    /// Instead of a thread, where processes wait that have not begun.
    const NO_THREAD: u64 = u64::MAX;

    /// A wait of the node's worker.
    pub fn of_worker(node: NodeId, waiting_for: WaitingFor, site: CallSite, wait: u64) -> Waiter {
        Waiter {
            node,
            thread: 0,
            waiting_for,
            site,
            wait,
            kept: None,
        }
    }

    /// Whether the thread looks itself for a deadlock, from the machine of threads of its node.
    pub fn is_looked_after(&self) -> bool {
        match self.waiting_for {
            WaitingFor::Thread(wait) => !matches!(wait, ThreadWait::Starts | ThreadWait::Ends),
            _ => false,
        }
    }

    /// The thread of raw memory that waits, if it is one.
    pub fn raw_thread(&self) -> Option<ThreadId> {
        let is_raw = matches!(self.waiting_for, WaitingFor::Thread(_));
        is_raw.then(|| ThreadId::of(dhole_sync::Wait::thread(self)))
    }
}

impl dhole_sync::Wait for Waiter {
    fn thread(&self) -> ThreadOf {
        ThreadOf {
            node: self.node,
            thread: self.thread,
        }
    }

    fn kept_by(self, keeper: ThreadOf, since: CallSite) -> Waiter {
        let ThreadOf { node, thread } = keeper;
        let kept = Some(Kept {
            node,
            thread,
            since,
        });
        Waiter { kept, ..self }
    }
}

/// A process, as an edge of the wait-for graph names it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub struct Started {
    /// Where it was started.
    pub on: NodeId,
    /// Its name.
    pub name: CallSite,
    /// Where in the program it was started.
    pub site: CallSite,
}

impl fmt::Display for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Started { on, name, site } = self;
        write!(f, "the process {name} on {on}, started at {site}")
    }
}

/// An operation of an object, as an edge of the wait-for graph names it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub struct Operation {
    /// The object.
    pub object: ObjectId,
    /// The names of its type and of the operation.
    pub name: CallSite,
    /// Where in the program the object was made, once the node that made it was asked.
    pub made: Option<CallSite>,
}

impl Operation {
    /// Instead of an object, where the operation is one of the whole run.
    pub const NO_OBJECT: ObjectId = ObjectId(u64::MAX);
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The table of names is the runtime's: the name says all.
        if [Operation::NO_OBJECT, ObjectId::NAMES].contains(&self.object) {
            return write!(f, "{}", self.name);
        }
        write!(f, "{} of {}", self.name, self.object)?;
        match self.made {
            Some(site) => write!(f, " (made at {site})"),
            None => Ok(()),
        }
    }
}

impl WaitingFor {
    /// The object of the operation that is waited for.
    pub fn object(self) -> Option<ObjectId> {
        match self {
            WaitingFor::Operation(Operation { object, .. }) if object != Operation::NO_OBJECT => {
                Some(object)
            }
            _ => None,
        }
    }

    /// The same, which says where an object was made if it is the one that is waited for.
    pub fn made(mut self, object: ObjectId, site: CallSite) -> WaitingFor {
        if let WaitingFor::Operation(operation) = &mut self
            && operation.object == object
        {
            operation.made = Some(site);
        }
        self
    }
}

/// One node on a path of the wait-for graph.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub struct Waiter {
    /// The node that waits.
    pub node: NodeId,
    /// Which of its threads: 0 is its worker.
    pub thread: u64,
    /// For what.
    pub waiting_for: WaitingFor,
    /// Where in the program.
    pub site: CallSite,
    /// Which of the node's waits this is; a later wait has a higher number.
    pub wait: u64,
    /// The thread that keeps what it waits for, if a deadlock was found and that is known.
    pub kept: Option<Kept>,
}

/// The thread that keeps what another one waits for.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire, Serialize, Deserialize,
)]
pub struct Kept {
    /// Its node.
    pub node: NodeId,
    /// Which of the node's threads: 0 is its worker.
    pub thread: u64,
    /// Where in the program it was acquired.
    pub since: CallSite,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kept {
            node,
            thread,
            since,
        } = *self;
        match thread {
            0 => write!(f, ", which {node} acquired at {since}"),
            _ => {
                let thread = ThreadId::of(ThreadOf { node, thread });
                write!(f, ", which {thread} acquired at {since}")
            }
        }
    }
}

impl fmt::Display for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Waiter {
            node,
            waiting_for,
            site,
            kept,
            ..
        } = self;
        match waiting_for {
            WaitingFor::Thread(wait) => {
                let thread = ThreadId::of(dhole_sync::Wait::thread(self));
                write!(f, "{thread} waits for {wait} at {site}")
            }
            WaitingFor::Lock(lock) => write!(f, "{node} waits for {lock} at {site}"),
            WaitingFor::Barrier(BarrierId::End(_)) => {
                write!(f, "{node} has ended, and waits at the end of the run")
            }
            WaitingFor::Barrier(barrier) => write!(f, "{node} waits at {barrier} at {site}"),
            WaitingFor::SyncObject(sync_object) => {
                write!(f, "{node} waits for {sync_object} at {site}")
            }
            WaitingFor::Condition(condition) => write!(f, "{node} waits on {condition} at {site}"),
            WaitingFor::RwLockCondition(lock) => {
                write!(f, "{node} waits on the condition of {lock} at {site}")
            }
            WaitingFor::Operation(operation) => write!(f, "{node} waits for {operation} at {site}"),
            WaitingFor::Process(process) => write!(f, "{node} waits for {process}, at {site}"),
            WaitingFor::Collective(wait) => write!(f, "{node} waits in {wait} at {site}"),
            WaitingFor::Begin(Unbegun { begun, waiting }) => write!(
                f,
                "on {node} {begun} processes have begun and not ended, the most at a time, so that \
                 {waiting} more cannot begin, the first of them started at {site} (start fewer \
                 that wait for each other, or spread them over more nodes)"
            ),
        }?;
        kept.iter().try_for_each(|kept| kept.fmt(f))
    }
}
