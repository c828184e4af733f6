//! What nodes say to each other about threads, and what these wait for.

use dhole_model::{MessageKind, NodeId};
use dhole_part::PartMessage;
use dhole_wire::Wire;

use crate::thread_id::ThreadId;

/// A message about threads of nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub enum ThreadMessage {
    /// A node wants a lock: to its manager.
    Acquire {
        /// The lock.
        key: u64,
        /// The asker's number of its request.
        number: u32,
        /// Whether it wants to hear that another thread has the lock.
        tries: bool,
    },
    /// The manager passes a request on to the node that asked before.
    Forward {
        /// The lock.
        key: u64,
        /// Who asks.
        asker: NodeId,
        /// The asker's number of its request.
        number: u32,
        /// As in [`Acquire`](ThreadMessage::Acquire).
        tries: bool,
    },
    /// The lock, for the node that gets it.
    Token {
        /// The lock.
        key: u64,
    },
    /// A lock that was tried is another thread's. It comes when that is over.
    Busy {
        /// The lock.
        key: u64,
        /// The asker's number of its request.
        number: u32,
    },
    /// The manager has no room for one more lock.
    NoLock {
        /// The lock.
        key: u64,
        /// The asker's number of its request.
        number: u32,
    },
    /// Threads have reached a barrier: to its manager.
    Arrive {
        /// The barrier.
        key: u64,
        /// How many threads it takes.
        parties: u32,
        /// How many have reached it on this node.
        count: u32,
    },
    /// As many threads as it takes have reached a barrier.
    Depart {
        /// The barrier.
        key: u64,
        /// How many of this node go on.
        count: u32,
        /// Whether the first of all is among them.
        first: bool,
    },
    /// Threads are refused at a barrier, for others wait at it that say another number.
    Refuse {
        /// The barrier.
        key: u64,
        /// How many threads it takes; 0 where the manager has no room for one more barrier.
        parties: u32,
        /// How many are refused.
        count: u32,
    },
    /// A thread wants to wait on a condition: to its manager.
    Wait {
        /// The condition.
        condition: u64,
        /// The thread.
        thread: ThreadId,
    },
    /// A thread waits on its condition from here on, and gives its lock up.
    Queued {
        /// The thread.
        thread: ThreadId,
    },
    /// Signals a condition: to its manager.
    Signal {
        /// The condition.
        condition: u64,
        /// Whether all go on that wait on it, or the first.
        all: bool,
    },
    /// A thread's condition was signalled.
    Signalled {
        /// The thread.
        thread: ThreadId,
    },
    /// Adds to a semaphore: to its manager.
    Post {
        /// The semaphore.
        key: u64,
        /// How much.
        count: u32,
    },
    /// Sets what a semaphore has: to its manager.
    Set {
        /// The semaphore.
        key: u64,
        /// The thread that waits until it is set.
        thread: ThreadId,
        /// How much it has.
        count: u32,
    },
    /// A thread wants to take one of a semaphore: to its manager.
    Take {
        /// The semaphore.
        key: u64,
        /// The thread.
        thread: ThreadId,
        /// Whether it goes on where there is none.
        tries: bool,
    },
    /// A thread goes on that waits for a semaphore.
    Taken {
        /// The thread.
        thread: ThreadId,
        /// Whether it has one, or what it wanted set is set.
        taken: bool,
    },
    /// The manager has no room for the semaphore that a thread wants to wait for.
    NoRoom {
        /// The thread.
        thread: ThreadId,
    },
    /// Begins a thread.
    Start {
        /// The thread, of the receiver.
        thread: ThreadId,
        /// What it does.
        entry: u64,
        /// With what.
        argument: u64,
        /// The thread that has started it.
        by: ThreadId,
        /// Whether that one waits until it has begun.
        awaited: bool,
    },
    /// A thread waits for the end of another one, of the receiver.
    Join {
        /// The other one.
        thread: ThreadId,
        /// The one that waits.
        by: ThreadId,
    },
    /// A thread has ended that another one waits for.
    Joined {
        /// The one that has ended.
        thread: ThreadId,
        /// The one that waits.
        by: ThreadId,
        /// What the one that ended says.
        value: u64,
        /// Whether it ran.
        ran: bool,
    },
    /// The program that starts threads has come to its end.
    Leave,
    /// A thread has begun, or has not, whose start another one awaits.
    Begun {
        /// The one that was started.
        thread: ThreadId,
        /// The one that waits.
        by: ThreadId,
        /// Whether it has begun.
        begins: bool,
    },
}

impl PartMessage for ThreadMessage {
    fn kind(&self) -> MessageKind {
        use ThreadMessage as M;
        match self {
            M::Acquire { .. }
            | M::Forward { .. }
            | M::Token { .. }
            | M::Busy { .. }
            | M::NoLock { .. } => MessageKind::ThreadLock,
            M::Arrive { .. } | M::Depart { .. } | M::Refuse { .. } => MessageKind::ThreadBarrier,
            M::Wait { .. } | M::Queued { .. } | M::Signal { .. } | M::Signalled { .. } => {
                MessageKind::ThreadCondition
            }
            M::Post { .. }
            | M::Set { .. }
            | M::Take { .. }
            | M::Taken { .. }
            | M::NoRoom { .. } => MessageKind::ThreadSemaphore,
            M::Start { .. } | M::Begun { .. } | M::Join { .. } | M::Joined { .. } | M::Leave => {
                MessageKind::ThreadStart
            }
        }
    }
}

impl ThreadMessage {
    /// What makes no sense in a cluster of `nodes`.
    pub(crate) fn check(&self, nodes: usize) -> Result<(), &'static str> {
        use ThreadMessage as M;
        let is_node = |node: NodeId| node.index() < nodes;
        let is_thread = |thread: &ThreadId| is_node(thread.node()) && is_node(thread.starter());
        let is_right = match self {
            M::Forward { asker, .. } => is_node(*asker),
            M::Wait { thread, .. }
            | M::Queued { thread }
            | M::Signalled { thread }
            | M::Set { thread, .. }
            | M::Take { thread, .. }
            | M::Taken { thread, .. }
            | M::NoRoom { thread } => is_thread(thread),
            M::Start { thread, by, .. }
            | M::Begun { thread, by, .. }
            | M::Join { thread, by }
            | M::Joined { thread, by, .. } => is_thread(thread) && is_thread(by),
            _ => true,
        };
        match is_right {
            true => Ok(()),
            false => Err("a thread of a node that is not in the cluster"),
        }
    }
}
