//! What the nodes say to each other about objects with operations.

use std::sync::Arc;

use dhole_model::{CallSite, MessageKind, NodeId, Notify, ObjectId, VectorTime};
use dhole_wire::{Tail, Wire, WireError};

use super::bytes::Bytes;
use super::call::{Call, CallId, CallRef, Outcome, Refusal, Saved, Waiting};
use super::packed::{PackedCalls, PackedResults};
use crate::WriteNotices;
use crate::group::{Body, GroupMessage};

/// Where a node waits until all others do, in a run that survives the loss of nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Wire)]
pub enum Rendezvous {
    /// At a barrier.
    Barrier,
    /// Where one node makes a value for all.
    Once,
    /// At the end of the run.
    End,
}

/// Where an object is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub enum Strategy {
    /// One copy, on this node; others send their operations there.
    On(NodeId),
    /// A copy on every node; operations that write go to all of them, in one order.
    Replicated,
    /// One copy, in this clerk, on its node.
    In(ClerkId),
}

impl Strategy {
    /// The clerk in which the object is made, if it is made in one.
    pub fn clerk(self) -> Option<ClerkId> {
        match self {
            Strategy::In(clerk) => Some(clerk),
            Strategy::On(_) | Strategy::Replicated => None,
        }
    }
}

/// A clerk that groups objects of a node: so many of their calls are in progress at a time. It
/// begins with the first object that is made in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct ClerkId {
    /// The node of its objects.
    pub node: NodeId,
    /// What tells it from other clerks: an id that no object has.
    pub number: ObjectId,
    /// How many calls of its objects may be in progress at a time: one or more.
    pub most: u32,
}

/// A process that a worker starts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Start {
    /// The call that starts it, and that its end answers.
    pub by: CallId,
    /// What it runs: a name that all processes of the program understand.
    pub what: u32,
    /// Its arguments.
    pub arguments: Bytes,
    /// Where in the program it was started.
    pub site: CallSite,
    /// What who starts it has seen, if anyone has written anything.
    pub time: Option<VectorTime>,
    /// The [chain](super::chain::Chain) of calls of the operation that starts it. It is no part of
    /// the bytes of a start.
    pub chain: Bytes,
}

/// The bytes of a start.
#[derive(Wire)]
pub struct StartBytes {
    by: CallId,
    what: u32,
    arguments: Bytes,
    site: CallSite,
    time: Option<VectorTime>,
}

impl Start {
    fn whole(&self) -> StartBytes {
        StartBytes {
            by: self.by,
            what: self.what,
            arguments: self.arguments.clone(),
            site: self.site,
            time: self.time.clone(),
        }
    }
}

impl Wire for Start {
    type Head = <StartBytes as Wire>::Head;

    fn head(&self) -> Self::Head {
        self.whole().head()
    }

    fn tail_len(&self) -> usize {
        self.whole().tail_len()
    }

    fn write_tail(&self, out: &mut Vec<u8>) {
        self.whole().write_tail(out);
    }

    fn read(head: &Self::Head, tail: &mut Tail<'_>) -> Result<Start, WireError> {
        let whole = StartBytes::read(head, tail)?;
        Ok(Start {
            by: whole.by,
            what: whole.what,
            arguments: whole.arguments,
            site: whole.site,
            time: whole.time,
            chain: Bytes::default(),
        })
    }
}

/// What is multicast in one order to all nodes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub enum Ordered {
    /// A replicated object begins.
    Create {
        /// The call that makes it.
        by: CallId,
        /// The object.
        object: ObjectId,
        /// What tells its type from others.
        kind: u64,
        /// Its state.
        state: Bytes,
    },
    /// An operation that writes.
    Operate {
        /// The call.
        call: Call,
        /// What its caller has seen.
        time: Option<VectorTime>,
        /// What happened before it that may not be known everywhere.
        news: Option<Arc<WriteNotices>>,
    },
    /// The object is kept elsewhere, or otherwise, from here on.
    Change {
        /// The call that says so.
        by: CallId,
        /// The object.
        object: ObjectId,
        /// How.
        to: Strategy,
        /// Whether its creator answers the call, which nobody else can whom nothing was told of it.
        asks: bool,
    },
    /// The state of an object that becomes replicated.
    Install {
        /// The object.
        object: ObjectId,
        /// Its state.
        state: Saved,
        /// The calls that wait for their guards.
        blocked: Vec<Waiting>,
        /// What happened before that may not be known everywhere.
        news: Option<Arc<WriteNotices>>,
    },
    /// The object is no more.
    Free {
        /// The call that frees it.
        by: CallId,
        /// The object.
        object: ObjectId,
    },
    /// Every node tells the digests of its replica.
    Compare {
        /// The call that asks.
        by: CallId,
        /// The object.
        object: ObjectId,
    },
    /// The only copy of a new object is on this node. Only told where nodes may be lost.
    Placed {
        /// The call that makes it.
        by: CallId,
        /// The object.
        object: ObjectId,
        /// The node.
        at: NodeId,
    },
    /// A node waits until all others do.
    Meet {
        /// The call that waits.
        by: CallId,
        /// Where.
        place: Rendezvous,
        /// Where in the program.
        site: CallSite,
        /// What it has made for all, if it is to do that.
        value: Option<Bytes>,
        /// What happened before that may not be known everywhere.
        news: Option<Arc<WriteNotices>>,
    },
    /// As `Placed`, of an object whose constructor gives something back.
    Constructed {
        /// The call that makes it.
        by: CallId,
        /// The object.
        object: ObjectId,
        /// The node.
        at: NodeId,
        /// What comes back.
        comes_back: Bytes,
    },
    /// A call that waits with the replicas of its object is withdrawn.
    Withdraw {
        /// The call.
        by: CallId,
        /// The object.
        object: ObjectId,
    },
}

/// A message about objects.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub enum ObjectsMessage {
    /// Asks the node where an object is to execute an operation.
    Request {
        /// The call.
        call: Call,
        /// The last ordered message delivered to the caller; nothing happens before it is here.
        delivered: u64,
        /// What the caller has seen; `None` where that is what it said before.
        time: Option<VectorTime>,
        /// What happened before that the receiver may not know.
        news: Option<Arc<WriteNotices>>,
    },
    /// Asks it to execute several, whose answer is sent when all were tried.
    Batch {
        /// The calls, in the order in which they are executed.
        calls: PackedCalls,
        /// As of a request.
        delivered: u64,
        /// As of a request.
        time: Option<VectorTime>,
        /// As of a request.
        news: Option<Arc<WriteNotices>>,
    },
    /// Starts a process at the receiver; its end is the reply.
    Spawn {
        /// What is started.
        start: Start,
        /// The last ordered message delivered to the sender.
        delivered: u64,
        /// What happened before that the receiver may not know.
        news: Option<Arc<WriteNotices>>,
    },
    /// What a call came to.
    Reply {
        /// The number of the call.
        call: u64,
        /// What it came to.
        outcome: Outcome,
        /// The last ordered message delivered to the sender.
        delivered: u64,
        /// What happened before that the caller may not know.
        news: Option<Arc<WriteNotices>>,
    },
    /// What those calls of a batch came to that are over.
    BatchReply {
        /// The results, also of calls of the same worker's that waited for these.
        results: PackedResults,
        /// Why others have none.
        refused: Vec<(u64, Refusal)>,
        /// Those whose guards were false: each has its reply when it is over.
        blocked: Vec<u64>,
        /// As of a reply.
        delivered: u64,
        /// As of a reply.
        news: Option<Arc<WriteNotices>>,
    },
    /// The object is not here (any more).
    Elsewhere {
        /// The number of the call.
        call: u64,
        /// Where it is.
        at: Strategy,
        /// Since which ordered message.
        since: u64,
        /// The last ordered message delivered to the sender.
        delivered: u64,
    },
    /// Keep the only copy of this object.
    Create {
        /// The call that makes it.
        by: CallId,
        /// The object.
        object: ObjectId,
        /// What tells its type from others.
        kind: u64,
        /// Its state.
        state: Bytes,
    },
    /// The state of an object that migrates to the receiver.
    Migrate {
        /// The object.
        object: ObjectId,
        /// The ordered message that said so.
        since: u64,
        /// The last ordered message delivered to the sender: what said so may have been deferred.
        delivered: u64,
        /// Its state.
        state: Saved,
        /// The calls that wait for their guards.
        blocked: Vec<Waiting>,
        /// What the sender's objects have been told, whole.
        news: Option<Arc<WriteNotices>>,
    },
    /// The digests of a replica after each of its last operations.
    Digests {
        /// The number of the call that asked.
        call: u64,
        /// For each ordered message, operation and digest, in order; the last is the present one.
        digests: Vec<(u64, u16, u64)>,
    },
    /// What the nodes say to each other to agree on an order.
    Group(GroupMessage<Arc<Ordered>>),
    /// A call that was started was tried, and its guard is false: its reply comes when it is over.
    Blocked {
        /// The number of the call.
        call: u64,
        /// The last ordered message delivered to the sender.
        delivered: u64,
    },
    /// The sender withdraws a call that it has asked the receiver to execute, if it has not begun.
    Withdraw {
        /// The call.
        by: CallId,
        /// The object.
        object: ObjectId,
        /// The last ordered message delivered to the sender.
        delivered: u64,
    },
    /// A call that the receiver withdraws is not known here: it was executed, is yet to come, or
    /// has gone elsewhere with its object.
    NotWithdrawn {
        /// The number of the call.
        call: u64,
        /// The object.
        object: ObjectId,
        /// The last ordered message delivered to the sender.
        delivered: u64,
    },
    /// Keep the only copy of this object, in a clerk.
    CreateIn {
        /// The call that makes it.
        by: CallId,
        /// The object.
        object: ObjectId,
        /// What tells its type from others.
        kind: u64,
        /// Its state.
        state: Bytes,
        /// The clerk.
        clerk: ClerkId,
    },
    /// As `Spawn`, by an operation that takes a worker.
    SpawnInChain {
        /// What is started.
        start: Start,
        /// The chain of calls of the operation.
        chain: Bytes,
        /// The last ordered message delivered to the sender.
        delivered: u64,
        /// What happened before that the receiver may not know.
        news: Option<Arc<WriteNotices>>,
    },
}

impl Body for Ordered {}

impl Call {
    /// The same, for who does not keep it.
    #[inline]
    pub fn by_ref(&self) -> CallRef<'_> {
        CallRef {
            id: self.id,
            object: self.object,
            kind: self.kind,
            operation: self.operation,
            writes: self.writes,
            started: self.started,
            chain: &self.chain,
            arguments: &self.arguments,
        }
    }
}

impl Ordered {
    /// What it tells of intervals.
    pub fn news(&self) -> Option<&WriteNotices> {
        match self {
            Ordered::Operate { news, .. }
            | Ordered::Install { news, .. }
            | Ordered::Meet { news, .. } => news.as_deref(),
            _ => None,
        }
    }
}

impl ObjectsMessage {
    /// Whether it notifies node `to`.
    ///
    /// | lazy | because |
    /// |---|---|
    /// | a reply to one call, or that its guard is false | only a waiting worker needs it |
    /// | an operation on a replica, unless to its originator | only a read needs it |
    /// | that an operation was accepted, to its originator | what waits for that is small |
    /// | an operation that is to be numbered | its caller notifies before it waits |
    pub(crate) fn notify(&self, to: NodeId) -> Notify {
        let operates = |body: &Ordered| matches!(body, Ordered::Operate { .. });
        let lazy = match self {
            ObjectsMessage::Reply { .. } | ObjectsMessage::Blocked { .. } => true,
            ObjectsMessage::Group(GroupMessage::Data { part, body, .. }) => {
                part.origin != to && operates(body)
            }
            ObjectsMessage::Group(GroupMessage::Accept { origin, .. }) => *origin == to,
            message => message.is_started(),
        };
        if lazy { Notify::Lazy } else { Notify::Now }
    }

    /// Whether it asks a number for an operation, which its sender may only have started.
    pub(crate) fn is_started(&self) -> bool {
        let (ObjectsMessage::Group(GroupMessage::Submit { body, .. })
        | ObjectsMessage::Group(GroupMessage::Announce { body, .. })) = self
        else {
            return false;
        };
        matches!(**body, Ordered::Operate { .. })
    }

    /// Whether it asks the sequencer for numbers.
    pub fn asks_for_number(&self) -> bool {
        matches!(self, ObjectsMessage::Group(GroupMessage::Ask { .. }))
    }

    /// Whether it is the sequencer's answer to that.
    pub fn gives_number(&self) -> bool {
        matches!(self, ObjectsMessage::Group(GroupMessage::Grant { .. }))
    }

    /// What the message is counted as.
    pub fn kind(&self) -> MessageKind {
        match self {
            ObjectsMessage::Request { .. }
            | ObjectsMessage::Batch { .. }
            | ObjectsMessage::Spawn { .. }
            | ObjectsMessage::SpawnInChain { .. }
            | ObjectsMessage::Withdraw { .. } => MessageKind::OperationRequest,
            ObjectsMessage::Reply { .. }
            | ObjectsMessage::BatchReply { .. }
            | ObjectsMessage::Blocked { .. }
            | ObjectsMessage::NotWithdrawn { .. }
            | ObjectsMessage::Elsewhere { .. } => MessageKind::OperationReply,
            ObjectsMessage::Create { .. }
            | ObjectsMessage::CreateIn { .. }
            | ObjectsMessage::Migrate { .. } => MessageKind::ObjectState,
            ObjectsMessage::Digests { .. } => MessageKind::Digests,
            ObjectsMessage::Group(_) => MessageKind::Ordered,
        }
    }

    /// What the message tells of intervals.
    pub fn news(&self) -> Option<&WriteNotices> {
        match self {
            ObjectsMessage::Request { news, .. }
            | ObjectsMessage::Batch { news, .. }
            | ObjectsMessage::Spawn { news, .. }
            | ObjectsMessage::SpawnInChain { news, .. }
            | ObjectsMessage::Reply { news, .. }
            | ObjectsMessage::BatchReply { news, .. }
            | ObjectsMessage::Migrate { news, .. } => news.as_deref(),
            _ => None,
        }
    }

    /// The same, or what it tells of them to all.
    pub fn told(&self) -> Option<&WriteNotices> {
        match self {
            ObjectsMessage::Group(message) => message.body().and_then(|body| body.news()),
            message => message.news(),
        }
    }
}

impl Ordered {
    /// The call that it belongs to, if it is one that a worker waits for.
    pub fn by(&self) -> Option<CallId> {
        match self {
            Ordered::Create { by, .. }
            | Ordered::Change { by, .. }
            | Ordered::Free { by, .. }
            | Ordered::Compare { by, .. }
            | Ordered::Placed { by, .. }
            | Ordered::Constructed { by, .. }
            | Ordered::Meet { by, .. } => Some(*by),
            Ordered::Operate { call, .. } => Some(call.id),
            // The call itself is what the worker waits for.
            Ordered::Install { .. } | Ordered::Withdraw { .. } => None,
        }
    }
}
