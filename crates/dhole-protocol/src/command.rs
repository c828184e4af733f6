//! What goes into a protocol's state machine, and what comes out.

use std::sync::Arc;

use dhole_model::{CallSite, NodeId, Oid, OidRange, Version};
use smallvec::SmallVec;
use thiserror::Error;

use crate::{LockId, Message, Sent, Waiter};

/// What the node's worker is doing while an event is handled, and so which bytes may be touched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WorkerIs {
    /// Running the program: it may hold `&mut` to objects written in this interval.
    Computing,
    /// In a call into the runtime: dirty objects may be read.
    InCall,
}

/// An object that the worker is to read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Unread {
    /// The object.
    pub oid: Oid,
    /// The node that allocated it: whom to ask while nobody is known to have written it.
    pub creator: NodeId,
    /// Never written, the object is all zeros, so nobody need be asked.
    pub zero_ok: bool,
}

/// Something that happens to a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// The worker has allocated objects and stored their first values.
    Allocated(OidRange),
    /// The worker reads an object of which it has no valid copy.
    ReadMiss(Unread),
    /// The worker reads several objects, and may have no valid copy of them: one round of
    /// questions, one to each node that is asked.
    ReadMisses(Vec<Unread>),
    /// The worker writes an object of which it has a valid, clean copy.
    WriteFault {
        /// The object.
        oid: Oid,
    },
    /// The worker acquires a lock.
    Acquire {
        /// The lock.
        lock: LockId,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker releases a lock.
    Release {
        /// The lock.
        lock: LockId,
    },
    /// The worker reaches a barrier of the program.
    Arrive {
        /// Whether node 0 brings a value.
        once: bool,
        /// Where in the program.
        site: CallSite,
    },
    /// The worker has finished the program.
    Finish,
    /// The worker is in a call: requests that had to wait for it can be answered.
    Serve,
    /// A message has come. Commands that install objects take their bytes from its payload.
    Deliver {
        /// The sender.
        from: NodeId,
        /// The message.
        message: Message,
    },
    /// The worker has waited for long; time to look for a cycle in the wait-for graph.
    WaitedLong,
}

/// Where the bytes of a reply are taken from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Source {
    /// The object as it is stored.
    Current,
    /// The copy made before the first write of the current interval.
    PreImage,
}

/// Something that the node is to do. Commands name bytes and never carry them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Send a message without payload.
    Send {
        /// The receiver.
        to: NodeId,
        /// The message.
        message: Message,
    },
    /// Gather the bytes of objects and send them as a [`Message::FetchReply`].
    Reply {
        /// The asker.
        to: NodeId,
        /// The asker's round.
        round: u32,
        /// The objects, each with the place its bytes are taken from.
        objects: SmallVec<[(Sent, Source); 1]>,
    },
    /// Take the next object's bytes out of the payload and make the copy readable.
    Install(Sent),
    /// Take the next object's bytes out of the payload and forget them: a valid copy is here.
    Skip(Sent),
    /// Make an all-zero copy of an object that nobody has written.
    ZeroFill(Oid),
    /// Make a copy unreadable; its bytes stay.
    Invalidate(Oid),
    /// Make a readable copy writable.
    MakeWritable {
        /// The object.
        oid: Oid,
        /// Keep its bytes as they are now until [`MakeClean`](Command::MakeClean).
        pre_image: bool,
    },
    /// Make a writable copy read-only, and drop its pre-image.
    MakeClean(Oid),
    /// An interval that wrote something has ended.
    IntervalEnded,
    /// A request waits until the worker's next call.
    Deferred,
    /// What the worker waits for has come.
    Done,
    /// The worker's wait is part of a cycle of the wait-for graph and will never end.
    Deadlock(Arc<[Waiter]>),
}

/// The commands of one step, in a buffer that is used again.
pub type Commands = Vec<Command>;

/// Why an event cannot be handled.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
pub enum ProtocolError {
    /// The worker acquires a lock that it holds.
    #[error("acquiring {lock} at {site}: this node has held it since {held_since}")]
    AlreadyHeld {
        /// The lock.
        lock: LockId,
        /// Where it is acquired again.
        site: CallSite,
        /// Where it was acquired.
        held_since: CallSite,
    },
    /// The worker releases a lock that it does not hold.
    #[error("releasing {lock}: this node does not hold it")]
    NotHeld {
        /// The lock.
        lock: LockId,
    },
    /// A node asks for an object of which this node has nothing.
    #[error("{from} asks for {oid} at {need}: there is no copy of it here")]
    NoCopy {
        /// The asker.
        from: NodeId,
        /// The object.
        oid: Oid,
        /// What was asked for.
        need: Version,
    },
    /// The node could not store an object that it was sent.
    #[error("storing a copy of {oid}: {cause}")]
    NotStored {
        /// The object.
        oid: Oid,
        /// The heap's own words.
        cause: String,
    },
    /// A message that no node of a sound cluster sends.
    #[error("a message from {from} makes no sense: {what}")]
    BadMessage {
        /// The sender.
        from: NodeId,
        /// What is wrong with it.
        what: &'static str,
    },
}
