//! Calls of operations, and what they come to.

use std::sync::Arc;

use dhole_model::{NodeId, ObjectId, VectorTime};
use dhole_wire::{Tail, Wire, WireError};
use thiserror::Error;

use super::bytes::Bytes;
use super::chain::{ChainLink, InWords};

/// Which call of an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct CallId {
    /// The node whose worker made it.
    pub node: NodeId,
    /// Its number there.
    pub number: u64,
}

/// A call of an operation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Call {
    /// Which call.
    pub id: CallId,
    /// The object.
    pub object: ObjectId,
    /// What tells the type that the caller takes it to have from others.
    pub kind: u64,
    /// The operation's place among those of the object's type.
    pub operation: u16,
    /// Whether the operation may change the object.
    pub writes: bool,
    /// Whether the worker started it and goes on. It is told then when the guard is false.
    pub started: bool,
    /// The [chain](super::chain::Chain) of calls of the operation that makes it; none of the
    /// program's. It is no part of the bytes of a call that waits.
    pub chain: Bytes,
    /// Its arguments.
    pub arguments: Bytes,
}

/// The bytes of a call.
#[derive(Wire)]
pub struct CallBytes {
    id: CallId,
    object: ObjectId,
    kind: u64,
    operation: u16,
    flags: u8,
    arguments: Bytes,
}

const WRITES: u8 = 1;
const STARTED: u8 = 2;

/// Whether a call writes, and whether it was started, as one byte.
#[inline]
pub(super) fn flags(writes: bool, started: bool) -> u8 {
    (WRITES * u8::from(writes)) | (STARTED * u8::from(started))
}

/// What such a byte says.
#[inline]
pub(super) fn of_flags(flags: u8) -> Result<(bool, bool), WireError> {
    match flags & !(WRITES | STARTED) {
        0 => Ok((flags & WRITES != 0, flags & STARTED != 0)),
        _ => Err(WireError::Value("flags that no call has")),
    }
}

impl Wire for Call {
    type Head = <CallBytes as Wire>::Head;

    fn head(&self) -> Self::Head {
        let whole = CallBytes {
            id: self.id,
            object: self.object,
            kind: self.kind,
            operation: self.operation,
            flags: flags(self.writes, self.started),
            arguments: self.arguments.clone(),
        };
        whole.head()
    }

    fn tail_len(&self) -> usize {
        self.arguments.tail_len()
    }

    fn write_tail(&self, out: &mut Vec<u8>) {
        self.arguments.write_tail(out);
    }

    fn read(head: &Self::Head, tail: &mut Tail<'_>) -> Result<Call, WireError> {
        let whole = CallBytes::read(head, tail)?;
        let (writes, started) = of_flags(whole.flags)?;
        Ok(Call {
            id: whole.id,
            object: whole.object,
            kind: whole.kind,
            operation: whole.operation,
            writes,
            started,
            chain: Bytes::default(),
            arguments: whole.arguments,
        })
    }
}

/// A call whose arguments lie elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallRef<'a> {
    /// Which call.
    pub id: CallId,
    /// The object.
    pub object: ObjectId,
    /// As in [`Call::kind`].
    pub kind: u64,
    /// As in [`Call::operation`].
    pub operation: u16,
    /// Whether the operation may change the object.
    pub writes: bool,
    /// As in [`Call::started`].
    pub started: bool,
    /// As [`Call::chain`].
    pub chain: &'a [u8],
    /// Its arguments.
    pub arguments: &'a [u8],
}

impl From<CallRef<'_>> for Call {
    #[inline]
    fn from(call: CallRef<'_>) -> Call {
        Call {
            id: call.id,
            object: call.object,
            kind: call.kind,
            operation: call.operation,
            writes: call.writes,
            started: call.started,
            chain: call.chain.into(),
            arguments: call.arguments.into(),
        }
    }
}

/// Why an operation has no result.
#[derive(Clone, PartialEq, Eq, Hash, Wire, Error)]
pub enum Refusal {
    /// There is no such object.
    #[error("no node ever made it")]
    Unknown,
    /// An operation panicked in the middle of changing the object.
    #[error("its operation {operation} panicked: {words}")]
    Poisoned {
        /// The name of the operation.
        operation: Arc<str>,
        /// What it said.
        words: Arc<str>,
    },
    /// What was sent is not what the operation, or the object, is made of.
    #[error("{0}")]
    Malformed(Arc<str>),
    /// The object is of another type than the handle says.
    #[error("it is of another type, {0}")]
    OtherType(Arc<str>),
    /// So many calls wait for the object that no more may.
    #[error("{0} calls wait for it already, the most at a time")]
    TooMany(usize),
    /// Replicas of the object are not alike.
    #[error("its replicas differ on {nodes} since operation {operation}")]
    Diverged {
        /// The nodes that differ from the one that asked.
        nodes: Arc<str>,
        /// The first operation after which they do, where that is known.
        operation: Arc<str>,
    },
    /// The only copy was on a node that was lost.
    #[error("its only copy was on {0}, which was lost")]
    Lost(NodeId),
    /// The node that was asked was lost before it answered, and may have handed the call on.
    #[error("{0} was lost before it answered: whether the operation was executed is not known")]
    Unanswered(NodeId),
    /// An object is to be kept on a node that is lost.
    #[error("it cannot be kept on {0}, which was lost")]
    NoNode(NodeId),
    /// Whoever was to make a value for all was lost.
    #[error("no node has made the value")]
    Unmade,
    /// The nodes wait for all others at different places.
    #[error("the nodes wait for each other at different places: {0}")]
    Apart(Arc<str>),
    /// The object was freed.
    #[error("{0} freed it")]
    Freed(NodeId),
    /// The node on which the process ran was lost.
    #[error("it went with {0}, which was lost: how far it had come is not known")]
    WentWith(NodeId),
    /// The process that was started, or the section, panicked.
    #[error("it panicked: {0}")]
    Panicked(Arc<str>),
    /// The process that was started, or the section, returned an error.
    #[error("it failed: {0}")]
    Failed(Arc<str>),
    /// So many operations were started on this node that no more may be.
    #[error(
        "{0} operations that this node has started are under way or not looked after, the most at \
         a time: call `wait` on some of them, or drop those whose results nobody wants"
    )]
    TooManyStarted(usize),
    /// So many processes were started that no more may be.
    #[error(
        "{0} processes that were started have not ended, the most at a time: `join` some of them \
         first, or drop what `spawn` returned of those whose results nobody wants"
    )]
    TooManyProcesses(usize),
    /// A call of an object on the own node would wait for a process, which cannot begin while the
    /// caller holds a lock.
    #[error(
        "a process of this node executes it, which cannot begin while the caller holds a lock: \
         call it before `acquire`, or after the guard is dropped"
    )]
    HoldsLock,
    /// An object whose operations take a worker is kept as one copy, and stays.
    #[error(
        "its type has operations that take a worker, so it is kept as one copy and stays on its \
         node: make it with `on(node)`"
    )]
    TakesWorker,
    /// An object of a resident type is made by a constructor, kept as one copy, and stays.
    #[error(
        "its type is resident: a constructor makes it on its node, in one copy, which stays there \
         and is not compared"
    )]
    Resident,
    /// The caller of a section has to run it, under the lock.
    #[error("its home cannot run it")]
    Elsewhere,
    /// The time of `within` was over before the call began.
    #[error(
        "the time of `within` was over before it began, since its guard was false or other calls \
         held the object: it was withdrawn, and is not executed"
    )]
    Withdrawn,
    /// The call would wait for a call that waits for it.
    #[error("it would wait for its own caller: {}", InWords(chain))]
    Reentrant {
        /// The calls in progress from the one that holds the object, and this call.
        chain: Arc<[ChainLink]>,
    },
    /// The caller of a section has to go on with it, under the lock: the home has run a part, whose
    /// writes stay, and cannot run the rest.
    #[error("its home cannot run the rest of it")]
    Rest {
        /// What tells the section that is left from others.
        kind: u64,
        /// Its arguments.
        arguments: Bytes,
    },
}

dhole_model::debug_in_words!(Refusal);

/// What a call comes to.
pub type Outcome = Result<Bytes, Refusal>;

/// What becomes of a state that is to go elsewhere: what tells its type from others and its bytes,
/// or why there is none.
pub type Saved = Result<(u64, Bytes), Refusal>;

/// A call that waits until its guard is true, or until it may be tried.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct Waiting {
    /// The call.
    pub call: Call,
    /// What its caller has seen, if anyone has written anything.
    pub time: Option<VectorTime>,
}
