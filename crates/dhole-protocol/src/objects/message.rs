//! What the nodes say to each other about objects with operations.

use std::sync::Arc;

use dhole_model::{CallSite, MessageKind, NodeId, Notify, ObjectId, VectorTime};
use dhole_wire::Wire;

use super::bytes::Bytes;
use super::call::{Call, CallId, CallRef, Outcome, Refusal, Saved, Waiting};
use super::packed::{PackedCalls, PackedResults};
use crate::News;
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
}

/// A process that a worker starts.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
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
        news: Option<Arc<News>>,
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
        news: Option<Arc<News>>,
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
        news: Option<Arc<News>>,
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
        news: Option<Arc<News>>,
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
        news: Option<Arc<News>>,
    },
    /// Starts a process at the receiver; its end is the reply.
    Spawn {
        /// What is started.
        start: Start,
        /// The last ordered message delivered to the sender.
        delivered: u64,
        /// What happened before that the receiver may not know.
        news: Option<Arc<News>>,
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
        news: Option<Arc<News>>,
    },
    /// What those calls of a batch came to that are over.
    BatchReply {
        /// The results, also of calls of the same worker's that waited for these.
        results: PackedResults,
        /// Why others have none.
        refused: Vec<(u64, Refusal)>,
        /// As of a reply.
        delivered: u64,
        /// As of a reply.
        news: Option<Arc<News>>,
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
        news: Option<Arc<News>>,
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
}

impl Body for Arc<Ordered> {}

const CALL: u64 = 8 + 2 + 8 + 8 + 2;
const NUMBER: u64 = 8;
const LENGTH: u64 = 4;
const OBJECT: u64 = 8;
const KIND: u64 = 8;
const SITE: u64 = 8;

fn time_bytes(time: &Option<VectorTime>) -> u64 {
    1 + time.as_ref().map_or(0, |time| 4 * time.nodes() as u64)
}

fn news_bytes(news: &Option<Arc<News>>) -> u64 {
    news.as_ref().map_or(0, |news| news.wire_bytes())
}

fn blocked_bytes(blocked: &[Waiting]) -> u64 {
    let each = |waiting: &Waiting| waiting.call.wire_bytes() + time_bytes(&waiting.time);
    LENGTH + blocked.iter().map(each).sum::<u64>()
}

fn group_bytes(message: &GroupMessage<Arc<Ordered>>) -> u64 {
    message.wire_bytes() + message.body().map_or(0, |body| body.wire_bytes())
}

fn saved_bytes(saved: &Saved) -> u64 {
    match saved {
        Ok((_, state)) => 1 + KIND + LENGTH + state.len() as u64,
        Err(refusal) => 1 + refusal.wire_bytes(),
    }
}

fn words_bytes(words: &str) -> u64 {
    LENGTH + words.len() as u64
}

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
            arguments: &self.arguments,
        }
    }

    pub(super) fn wire_bytes(&self) -> u64 {
        CALL + LENGTH + self.arguments.len() as u64
    }
}

impl CallRef<'_> {
    /// Bytes that it takes on a wire where it is multicast and has nothing to tell.
    pub fn ordered_bytes(&self) -> u64 {
        CALL + LENGTH + self.arguments.len() as u64 + time_bytes(&None)
    }
}

/// Bytes of a request on a wire, without the header.
pub(super) fn request_bytes(
    arguments: &[u8],
    time: &Option<VectorTime>,
    news: &Option<Arc<News>>,
) -> u64 {
    let call = CALL + LENGTH + arguments.len() as u64;
    call + NUMBER + time_bytes(time) + news_bytes(news)
}

/// Bytes of a reply on a wire, without the header.
pub(super) fn reply_bytes(outcome: Result<&[u8], &Refusal>, news: &Option<Arc<News>>) -> u64 {
    let outcome = match outcome {
        Ok(result) => LENGTH + result.len() as u64,
        Err(refusal) => refusal.wire_bytes(),
    };
    2 * NUMBER + outcome + news_bytes(news)
}

impl Refusal {
    fn wire_bytes(&self) -> u64 {
        1 + match self {
            Refusal::Unknown => 0,
            Refusal::Poisoned { operation, words } => words_bytes(operation) + words_bytes(words),
            Refusal::Malformed(words)
            | Refusal::OtherType(words)
            | Refusal::Panicked(words)
            | Refusal::Failed(words) => words_bytes(words),
            Refusal::TooMany(_) | Refusal::TooManyStarted(_) | Refusal::TooManyProcesses(_) => 8,
            Refusal::Diverged { nodes, operation } => words_bytes(nodes) + words_bytes(operation),
            Refusal::Lost(_)
            | Refusal::Unanswered(_)
            | Refusal::NoNode(_)
            | Refusal::Freed(_)
            | Refusal::WentWith(_) => 2,
            Refusal::Unmade => 0,
            Refusal::Apart(words) => words_bytes(words),
        }
    }
}

impl Ordered {
    /// Bytes that it takes on a wire.
    pub fn wire_bytes(&self) -> u64 {
        match self {
            Ordered::Create { state, .. } => 10 + OBJECT + KIND + LENGTH + state.len() as u64,
            Ordered::Operate { call, time, news } => {
                call.wire_bytes() + time_bytes(time) + news_bytes(news)
            }
            Ordered::Change { .. } => 10 + OBJECT + 4,
            Ordered::Install {
                state,
                blocked,
                news,
                ..
            } => OBJECT + saved_bytes(state) + blocked_bytes(blocked) + news_bytes(news),
            Ordered::Compare { .. } | Ordered::Free { .. } => 10 + OBJECT,
            Ordered::Placed { .. } => 12 + OBJECT,
            Ordered::Meet { value, news, .. } => {
                let value = value
                    .as_ref()
                    .map_or(0, |value| LENGTH + value.len() as u64);
                10 + 1 + SITE + 1 + value + news_bytes(news)
            }
        }
    }

    /// What it tells of intervals.
    pub fn news(&self) -> Option<&News> {
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
    /// | a reply to one call | only a waiting worker needs it |
    /// | an operation on a replica, unless to its originator | only a read needs it |
    /// | that an operation was accepted, to its originator | what waits for that is small |
    /// | an operation that is to be numbered | its caller notifies before it waits |
    pub(crate) fn notify(&self, to: NodeId) -> Notify {
        let operates = |body: &Ordered| matches!(body, Ordered::Operate { .. });
        let lazy = match self {
            ObjectsMessage::Reply { .. } => true,
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
            | ObjectsMessage::Spawn { .. } => MessageKind::OperationRequest,
            ObjectsMessage::Reply { .. }
            | ObjectsMessage::BatchReply { .. }
            | ObjectsMessage::Elsewhere { .. } => MessageKind::OperationReply,
            ObjectsMessage::Create { .. } | ObjectsMessage::Migrate { .. } => {
                MessageKind::ObjectState
            }
            ObjectsMessage::Digests { .. } => MessageKind::Digests,
            ObjectsMessage::Group(_) => MessageKind::Ordered,
        }
    }

    /// Bytes that it takes on a wire, without the header.
    pub fn wire_bytes(&self) -> u64 {
        match self {
            ObjectsMessage::Request {
                call, time, news, ..
            } => request_bytes(&call.arguments, time, news),
            ObjectsMessage::Batch {
                calls, time, news, ..
            } => {
                let each = (CALL + LENGTH) * calls.len() as u64;
                let calls = LENGTH + each + calls.arguments() as u64;
                calls + NUMBER + time_bytes(time) + news_bytes(news)
            }
            ObjectsMessage::Spawn { start, news, .. } => {
                let Start {
                    arguments, time, ..
                } = start;
                let fixed = 10 + 4 + LENGTH + SITE + NUMBER;
                fixed + arguments.len() as u64 + time_bytes(time) + news_bytes(news)
            }
            ObjectsMessage::Reply { outcome, news, .. } => reply_bytes(outcome.as_deref(), news),
            ObjectsMessage::BatchReply {
                results,
                refused,
                news,
                ..
            } => {
                let results = (NUMBER + LENGTH) * results.len() as u64 + results.bytes() as u64;
                let refused = refused.iter().map(|(_, why)| NUMBER + why.wire_bytes());
                LENGTH + results + refused.sum::<u64>() + NUMBER + news_bytes(news)
            }
            ObjectsMessage::Elsewhere { .. } => 3 * NUMBER + 3,
            ObjectsMessage::Create { state, .. } => {
                10 + OBJECT + KIND + LENGTH + state.len() as u64
            }
            ObjectsMessage::Migrate {
                state,
                blocked,
                news,
                ..
            } => {
                let state = OBJECT + 2 * NUMBER + saved_bytes(state);
                state + blocked_bytes(blocked) + news_bytes(news)
            }
            ObjectsMessage::Digests { digests, .. } => NUMBER + LENGTH + 18 * digests.len() as u64,
            ObjectsMessage::Group(message) => group_bytes(message),
        }
    }

    /// What the message tells of intervals.
    pub fn news(&self) -> Option<&News> {
        match self {
            ObjectsMessage::Request { news, .. }
            | ObjectsMessage::Batch { news, .. }
            | ObjectsMessage::Spawn { news, .. }
            | ObjectsMessage::Reply { news, .. }
            | ObjectsMessage::BatchReply { news, .. }
            | ObjectsMessage::Migrate { news, .. } => news.as_deref(),
            _ => None,
        }
    }

    /// Bytes of write notices in the message.
    pub fn notice_bytes(&self) -> u64 {
        let ordered = match self {
            ObjectsMessage::Group(message) => message.body().and_then(|body| body.news()),
            message => message.news(),
        };
        ordered.map_or(0, News::notice_bytes)
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
            | Ordered::Meet { by, .. } => Some(*by),
            Ordered::Operate { call, .. } => Some(call.id),
            Ordered::Install { .. } => None,
        }
    }
}
