//! What the protocols of two nodes say to each other, and how many bytes it takes on a wire.

use std::sync::Arc;

use dhole_model::{
    CallSite, Elements, IntervalIndex, MessageKind, NodeId, Oid, PageId, VectorTime,
};
use smallvec::SmallVec;

use crate::array_command::{FlushedElements, PushedElements, SentElements, WantedElements};
use crate::barrier::BarrierRound;
use crate::collection::Gossip;
use crate::collective::CollectiveMessage;
use crate::few;
use crate::handed_out::HandedOut;
use crate::interval::{ELEMENTS, News, Untold, vector_bytes};
use crate::objects::ObjectsMessage;
use crate::page_command::{Applied, SentDiff, WantedDiffs};
use crate::passage::{ConditionId, Passage, passage_bytes};
use crate::race::Raced;
use crate::stall_probe::Stall;
use crate::sync_id::{BarrierId, LockId};
use crate::transfer::{Flushed, FlushedAt, Pushed, SentList, WantedList};
use crate::waiting::{Waiter, WaitingFor};
use serde::{Deserialize, Serialize};

pub mod barrier_round;
mod carrier;
pub(crate) mod check;
mod codec;
pub mod fetch;
mod haste;
mod wire;

pub use codec::{Appending, DecodeError, EncodeError};

fn raced_bytes(raced: Raced) -> u64 {
    raced.elements().map_or(8, |_| ELEMENTS)
}

/// A node that waits on a condition of a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Waiting {
    /// The condition's number among those of the lock.
    pub condition: u64,
    /// The node.
    pub node: NodeId,
}

/// Why a run is ended early.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum AbortReason {
    /// The program on that node panicked, with these words.
    Panicked(Arc<str>),
    /// The program on that node returned an error, or the runtime there met one.
    Failed(Arc<str>),
    /// That node lay on this cycle of the wait-for graph.
    Deadlocked(Arc<[Waiter]>),
    /// That node is lost to the others, in this way.
    Lost(Arc<str>),
}

/// A message between the protocols of two nodes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Asks the last writer of objects for their bytes.
    Fetch {
        /// The asker's round; the reply repeats it.
        round: u32,
        /// The objects.
        #[serde(with = "few")]
        wanted: WantedList,
        /// So many of them, the last ones, are asked for only because they lie on the page of one
        /// that is missed. Those that are being written are left out of the reply.
        beside: u16,
    },
    /// Answers a [`Fetch`](Message::Fetch); the bytes are the payload.
    FetchReply {
        /// The asker's round.
        round: u32,
        /// The objects asked for, and then those that they own.
        #[serde(with = "few")]
        sent: SentList,
        /// Whether the copies of those asked for, which have a home, stay over acquires.
        keep: bool,
    },
    /// New versions of objects, for a node that read them before; the bytes are the payload.
    Update {
        /// The objects.
        #[serde(with = "few")]
        pushed: SmallVec<[Pushed; 1]>,
    },
    /// The sender does not read what is pushed to it.
    DropOut {
        /// The objects.
        #[serde(with = "few")]
        objects: SmallVec<[Oid; 1]>,
    },
    /// What the sender has changed in objects at home here; the differences are the payload.
    Flush {
        /// The number of the sender's flush; the acknowledgement repeats it.
        number: u32,
        /// The objects.
        #[serde(with = "few")]
        flushed: SmallVec<[Flushed; 1]>,
        /// When and where they were written, if races are looked for.
        at: Option<Arc<FlushedAt>>,
    },
    /// What was flushed is part of the objects at their home.
    FlushAck {
        /// The number of the flush.
        number: u32,
    },
    /// Copies that the receiver keeps over acquires, of objects at home at the sender, are
    /// outdated.
    Outdated {
        /// The answer repeats it.
        number: u32,
        /// The objects.
        #[serde(with = "few")]
        objects: SmallVec<[Oid; 1]>,
    },
    /// The sender knows it, and drops them at its next acquire.
    OutdatedAck {
        /// The number of the [`Outdated`](Message::Outdated).
        number: u32,
    },
    /// As [`Outdated`](Message::Outdated), of elements of arrays.
    OutdatedElements {
        /// The answer repeats it.
        number: u32,
        /// The elements.
        #[serde(with = "few")]
        elements: SmallVec<[Elements; 1]>,
    },
    /// The sender knows it, and drops them at its next acquire.
    OutdatedElementsAck {
        /// The number of the [`OutdatedElements`](Message::OutdatedElements).
        number: u32,
    },
    /// Asks the last writer of elements of arrays for their bytes.
    FetchElements {
        /// The asker's round; the reply repeats it.
        round: u32,
        /// The elements.
        #[serde(with = "few")]
        wanted: SmallVec<[WantedElements; 1]>,
    },
    /// Answers [`FetchElements`](Message::FetchElements); the bytes are the payload.
    ElementsReply {
        /// The asker's round.
        round: u32,
        /// The elements.
        #[serde(with = "few")]
        sent: SmallVec<[SentElements; 1]>,
        /// Whether the copies of them, which have a home, stay over acquires.
        keep: bool,
    },
    /// New versions of elements, for a node that read them before; the bytes are the payload.
    UpdateElements {
        /// The elements.
        #[serde(with = "few")]
        pushed: SmallVec<[PushedElements; 1]>,
    },
    /// The sender does not read what is pushed to it of arrays.
    DropOutElements {
        /// The elements.
        #[serde(with = "few")]
        elements: SmallVec<[Elements; 1]>,
    },
    /// What the sender has written of elements at home here; the bytes are the payload.
    FlushElements {
        /// The number of the sender's flush; the acknowledgement repeats it.
        number: u32,
        /// The elements.
        #[serde(with = "few")]
        flushed: SmallVec<[FlushedElements; 1]>,
        /// When and where they were written, if races are looked for.
        at: Option<Arc<FlushedAt>>,
    },
    /// The elements that were flushed are in their place at home.
    ElementsFlushed {
        /// The number of the flush.
        number: u32,
    },
    /// Answers [`FetchElements`](Message::FetchElements): an array was freed, and nothing is sent.
    ElementsGone {
        /// The asker's round.
        round: u32,
        /// The array.
        array: Oid,
    },
    /// Answers a [`Fetch`](Message::Fetch): one of the objects was freed, and none is sent.
    Gone {
        /// The asker's round.
        round: u32,
        /// The object.
        oid: Oid,
        /// Who freed it, if that is still known.
        by: Option<NodeId>,
    },
    /// Asks for a page.
    PageRequest {
        /// The asker's round.
        round: u32,
        /// The page.
        page: PageId,
    },
    /// Answers a [`PageRequest`](Message::PageRequest); the bytes are the payload.
    PageReply {
        /// The asker's round.
        round: u32,
        /// The page.
        page: PageId,
        /// Whose changes it contains.
        #[serde(with = "few")]
        applied: Applied,
    },
    /// Asks for diffs of a page, the receiver's own and others.
    DiffRequest {
        /// The asker's round.
        round: u32,
        /// The page.
        page: PageId,
        /// The diffs.
        #[serde(with = "few")]
        wanted: SmallVec<[WantedDiffs; 1]>,
    },
    /// Answers a [`DiffRequest`](Message::DiffRequest); the diffs are the payload.
    DiffReply {
        /// The asker's round.
        round: u32,
        /// The page.
        page: PageId,
        /// What of the question it answers.
        #[serde(with = "few")]
        got: SmallVec<[WantedDiffs; 1]>,
        /// The diffs.
        #[serde(with = "few")]
        diffs: SmallVec<[SentDiff; 1]>,
    },
    /// Asks a lock's manager for the lock.
    LockRequest {
        /// The lock.
        lock: LockId,
        /// What the asker has seen.
        time: VectorTime,
    },
    /// The manager passes a request on to the node that asked last before.
    LockForward {
        /// The lock.
        lock: LockId,
        /// Who asks.
        requester: NodeId,
        /// What the asker has seen.
        time: VectorTime,
    },
    /// The lock.
    LockGrant {
        /// The lock.
        lock: LockId,
        /// What happened before the release.
        news: Box<News>,
        /// Who waits on the lock's conditions, the longest first.
        waiting: Vec<Waiting>,
    },
    /// Wakes a node that waits on a condition: it asks for the lock again.
    Notify {
        /// The condition.
        condition: ConditionId,
    },
    /// Asks a gate's manager to let a node pass.
    GateRequest {
        /// Through what.
        passage: Passage,
        /// Which of the asker's waits this is; the grant repeats it.
        wait: u64,
        /// What the asker has seen.
        time: VectorTime,
    },
    /// The manager asks a node whose release the requester has not seen to tell it the news.
    GateForward {
        /// Through what the requester passes.
        passage: Passage,
        /// Who passes.
        requester: NodeId,
        /// Which of its waits.
        wait: u64,
        /// What it has seen.
        time: VectorTime,
        /// How many nodes are asked.
        parts: u32,
    },
    /// Lets a node pass, when as many have come as each says.
    GateGrant {
        /// Through what.
        passage: Passage,
        /// Which of the receiver's waits ends.
        wait: u64,
        /// How many grants there are.
        parts: u32,
        /// What happened before the sender's release.
        news: Box<News>,
    },
    /// Gives something back to a gate.
    GateRelease {
        /// What.
        passage: Passage,
        /// What the sender has seen.
        time: VectorTime,
        /// Where in the program.
        site: CallSite,
    },
    /// A node has reached a barrier.
    BarrierArrive {
        /// Which one.
        barrier: BarrierId,
        /// The node's own intervals since the last barrier.
        news: Box<News>,
        /// Where in the program.
        site: CallSite,
        /// The node's memory for diffs is full.
        full: bool,
        /// Whether another node may lack what the sender knows.
        has_news: bool,
    },
    /// A node has reached a barrier of the program that begins with rounds, and has heard what goes
    /// before this round.
    BarrierRound(BarrierRound),
    /// All nodes have reached it. The payload is the value that node 0 brought, if any.
    BarrierDepart {
        /// Which one.
        barrier: BarrierId,
        /// What the receiver lacks.
        news: Box<News>,
        /// Diffs are collected next.
        collect: bool,
        /// How many of the next barriers of the program begin with
        /// [rounds](Message::BarrierRound), if this is one.
        rounds: u32,
    },
    /// Follows the edges of the wait-for graph from the first node of the path on.
    Probe {
        /// The nodes passed so far, each waiting for the next.
        path: Vec<Waiter>,
        /// The cycle that an earlier probe found, which this one confirms; empty on the first.
        confirms: Vec<Waiter>,
        /// Set while the probe asks the manager of this lock or barrier whom the last node of the
        /// path waits for; otherwise the receiver is whom it waits for.
        at_manager_of: Option<Box<WaitingFor>>,
    },
    /// From the manager of a barrier that all have reached: one of them has seen an interval of the
    /// receiver that the receiver has not told there.
    Untold(Untold),
    /// The answer.
    Told {
        /// What was asked.
        of: Untold,
        /// The newest interval that the sender has ended.
        ended: IntervalIndex,
        /// How often it has told at the barrier what it did.
        arrivals: u32,
    },
    /// The sender has found a race with a write of the receiver, and asks where that was.
    WhereWritten {
        /// The object, or the elements.
        raced: Raced,
        /// The Lamport time of the receiver's interval that wrote it.
        lamport: u64,
    },
    /// Answers a [`WhereWritten`](Message::WhereWritten).
    WrittenAt {
        /// The object, or the elements: the first of those asked about, as many as were
        /// written there.
        raced: Raced,
        /// The Lamport time of the sender's interval that wrote it.
        lamport: u64,
        /// Where in the program, if the sender still knows.
        site: Option<CallSite>,
    },
    /// Looks whether all nodes wait and none can be woken.
    Stall(Box<Stall>),
    /// The receiver is on a cycle of the wait-for graph.
    Deadlock {
        /// The cycle, each node waiting for the next and the last for the first.
        cycle: Arc<[Waiter]>,
    },
    /// A node has failed and the run ends.
    Abort {
        /// The node that failed.
        node: NodeId,
        /// Why.
        reason: AbortReason,
    },
    /// About objects with operations.
    Objects(Box<ObjectsMessage>),
    /// Asks node 0 for object ids that follow on each other.
    AskIds {
        /// How many at least.
        ids: u64,
    },
    /// Answers [`AskIds`](Message::AskIds).
    HandIdsOut(HandedOut),
    /// A value of a collective; its bytes are the payload.
    Collective(Box<CollectiveMessage>),
    /// A message that also tells what can be collected; counted as what it carries it on.
    /// On a wire it is told beside the message ([`Message::encode`]), so that none nests in
    /// another.
    #[serde(skip)]
    Gossiped {
        /// What can be collected.
        gossip: Arc<Gossip>,
        /// The message.
        carrier: Box<Message>,
    },
    /// A message after which its receiver's worker may go on only when what was ordered before has
    /// been delivered there; counted as what it carries, and told beside it too.
    #[serde(skip)]
    After {
        /// The last ordered message of the objects that the sender knows of.
        delivered: u64,
        /// The message, which may be gossiped.
        carrier: Box<Message>,
    },
}

impl Message {
    /// Bytes of a message's frame: length, kind, sender, receiver, sequence.
    pub const HEADER_BYTES: u64 = 16;

    /// What the message is counted as.
    pub fn kind(&self) -> MessageKind {
        match self {
            Message::Fetch { .. } | Message::FetchElements { .. } => MessageKind::Fetch,
            Message::FetchReply { .. } | Message::ElementsReply { .. } => MessageKind::FetchReply,
            Message::Update { .. } | Message::UpdateElements { .. } => MessageKind::Update,
            Message::DropOut { .. } | Message::DropOutElements { .. } => MessageKind::DropOut,
            Message::Flush { .. } | Message::FlushElements { .. } => MessageKind::Flush,
            Message::FlushAck { .. } | Message::ElementsFlushed { .. } => MessageKind::FlushAck,
            Message::Outdated { .. } | Message::OutdatedElements { .. } => MessageKind::Outdated,
            Message::OutdatedAck { .. } | Message::OutdatedElementsAck { .. } => {
                MessageKind::OutdatedAck
            }
            Message::Gone { .. } | Message::ElementsGone { .. } => MessageKind::Gone,
            Message::AskIds { .. } => MessageKind::IdsRequest,
            Message::HandIdsOut(_) => MessageKind::IdsReply,
            Message::PageRequest { .. } => MessageKind::PageRequest,
            Message::PageReply { .. } => MessageKind::PageReply,
            Message::DiffRequest { .. } => MessageKind::DiffRequest,
            Message::DiffReply { .. } => MessageKind::DiffReply,
            Message::LockRequest { .. } => MessageKind::LockRequest,
            Message::LockForward { .. } => MessageKind::LockForward,
            Message::LockGrant { .. } => MessageKind::LockGrant,
            Message::BarrierArrive { .. } => MessageKind::BarrierArrive,
            Message::BarrierRound(_) => MessageKind::BarrierRound,
            Message::BarrierDepart { .. } => MessageKind::BarrierDepart,
            Message::Notify { .. } => MessageKind::Notify,
            Message::GateRequest { .. } => MessageKind::GateRequest,
            Message::GateForward { .. } => MessageKind::GateForward,
            Message::GateGrant { .. } => MessageKind::GateGrant,
            Message::GateRelease { .. } => MessageKind::GateRelease,
            Message::Probe { .. }
            | Message::Stall(_)
            | Message::Untold(_)
            | Message::Told { .. } => MessageKind::Probe,
            Message::WhereWritten { .. } => MessageKind::WhereWritten,
            Message::WrittenAt { .. } => MessageKind::WrittenAt,
            Message::Deadlock { .. } => MessageKind::Deadlock,
            Message::Abort { .. } => MessageKind::Abort,
            Message::Objects(message) => message.kind(),
            Message::Collective(_) => MessageKind::Collective,
            Message::Gossiped { carrier, .. } | Message::After { carrier, .. } => carrier.kind(),
        }
    }

    /// Bytes of write notices in the message.
    pub fn notice_bytes(&self) -> u64 {
        match self {
            Message::Objects(message) => message.notice_bytes(),
            message => message.news().map_or(0, News::notice_bytes),
        }
    }

    /// What the message tells of intervals.
    pub fn news(&self) -> Option<&News> {
        match self {
            Message::LockGrant { news, .. }
            | Message::GateGrant { news, .. }
            | Message::BarrierArrive { news, .. }
            | Message::BarrierDepart { news, .. } => Some(news),
            Message::Gossiped { carrier, .. } | Message::After { carrier, .. } => carrier.news(),
            Message::Objects(message) => message.news(),
            Message::Collective(message) => Some(&message.news),
            _ => None,
        }
    }
}
