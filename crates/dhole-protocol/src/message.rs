//! What the protocols of two nodes say to each other, and how many bytes it takes on a wire.

use std::sync::Arc;

use dhole_model::{
    CallSite, Elements, IntervalIndex, MemberId, MessageKind, NodeId, Notify, PageId, VectorTime,
};
use dhole_sync::Conditions;
use smallvec::SmallVec;

use crate::combining::{CombineRequest, UpdateBatch, check_batches, check_combine};
use crate::frame::Frame;
use crate::handed_out::HandedOut;
use crate::objects::ObjectsMessage;
use crate::page_command::{Applied, SentDiff, WantedDiffs};
use crate::race::Raced;
use crate::sync::barrier::BarrierRound;
use crate::sync::collection::Gossip;
use crate::sync::collective::CollectiveMessage;
use crate::sync::interval::{Untold, WriteNotices};
use crate::sync::probes::DeadlockProbe;
use crate::sync_id::{BarrierId, LockId};
use crate::sync_object::{ConditionId, SyncObject};
use crate::transfer::{Fetch, FetchReply, WantedList};
use crate::waiting::Waiter;
use dhole_wire::Wire;

mod carrier;
pub(crate) mod check;
mod codec;
mod payload;
mod region;
mod short;
mod sizes;

use carrier::Carried;
pub use codec::DecodeError;
pub use payload::PayloadOf;
pub use region::{RegionKind, RegionMessage};
pub use short::Short;
use sizes::Sizes;

/// First bytes of messages that nodes take where they lie. Those of the others follow.
const FETCH: u8 = 0;
const FETCH_REPLY: u8 = 1;
const BARRIER_ROUND: u8 = 2;
const GOSSIPED: u8 = 3;
const AFTER: u8 = 4;

/// Why a run is ended early.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
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

/// A message of a member, which is a protocol that a program or dhole brings.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct MemberMessage {
    /// The protocol.
    pub member: MemberId,
    /// The message, in the protocol's own form.
    pub body: Vec<u8>,
    /// How many bytes the payload has of each unit, in their order.
    #[wire(with = Sizes)]
    pub sizes: SmallVec<[u64; 1]>,
}

/// A message between the protocols of two nodes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire, dhole_wire::Message)]
#[message(
    /// What the message is counted as.
    pub fn kind() -> MessageKind,
    /// Whether it notifies node `to`, whose worker computes. Of a lazy message nothing comes that
    /// another node could wait for, before the receiver waits or polls.
    pub fn notify(to: NodeId) -> Notify = Notify::Now,
    /// Whether it asks a number for an operation, which its sender may only have started: it goes
    /// lazily, and its sender notifies the receiver before it waits.
    pub fn is_started() -> bool = false,
    /// Whether a wait for a lock, at a barrier, at a sync object or on a condition may end because
    /// of the message.
    pub(crate) fn may_end_a_wait() -> bool = false,
    /// Whether the message brings what its receiver's worker waits for.
    pub(crate) fn ends_a_wait() -> bool = false,
    /// Whether gossip may be told beside it.
    pub(crate) fn can_piggyback() -> bool = false,
    /// Whether what its sender did with objects happened before what the receiver does next, or
    /// before what others do whom the receiver tells: such a message has to say up to where the
    /// order of the objects had come ([`After`](Message::After)).
    pub fn passes_order_on() -> bool = false,
    /// What its payload holds.
    pub fn payload() -> PayloadOf<'_> = PayloadOf::Bytes(0),
    /// What the message tells of intervals.
    pub fn news() -> Option<&WriteNotices> = None,
    /// What makes no sense in a cluster of `nodes`, whatever has happened there. Messages about
    /// objects are checked by the objects, which know the sender.
    pub(crate) fn check(nodes: usize) -> Result<(), &'static str> = Ok(()),
)]
pub enum Message {
    /// Asks the last writer of objects for their bytes.
    #[wire(tag = FETCH)]
    #[message(kind = MessageKind::Fetch, check = check::fetch(it, nodes))]
    Fetch(Fetch),
    /// Answers a [`Fetch`](Message::Fetch); the bytes are the payload.
    #[wire(tag = FETCH_REPLY)]
    #[message(
        kind = MessageKind::FetchReply, notify = Notify::Lazy,
        ends_a_wait, payload = PayloadOf::Objects(&it.sent),
        check = check::fetch_reply(it, nodes),
    )]
    FetchReply(FetchReply),
    /// A node has reached a barrier of the program that begins with rounds, and has heard what goes
    /// before this round.
    #[wire(tag = BARRIER_ROUND)]
    #[message(
        kind = MessageKind::BarrierRound, notify = Notify::Lazy,
        may_end_a_wait, ends_a_wait, passes_order_on,
        check = check::round(it, nodes),
    )]
    BarrierRound(BarrierRound),
    /// A message that also tells what can be collected; counted as what it carries it on.
    /// None nests in another.
    #[wire(tag = GOSSIPED)]
    #[message(
        kind = carrier.kind(), notify = carrier.notify(to), news = carrier.news(),
        payload = carrier.payload(),
        may_end_a_wait = carrier.may_end_a_wait(), passes_order_on = carrier.passes_order_on(),
        check = check::gossiped(gossip, carrier, nodes),
    )]
    Gossiped {
        /// What can be collected.
        gossip: Arc<Gossip>,
        /// The message.
        #[wire(with = Carried<false>)]
        carrier: Box<Message>,
    },
    /// A message after which its receiver's worker may go on only when what was ordered before has
    /// been delivered there; counted as what it carries.
    #[wire(tag = AFTER)]
    #[message(
        kind = carrier.kind(), notify = carrier.notify(to), news = carrier.news(),
        payload = carrier.payload(),
        may_end_a_wait = carrier.may_end_a_wait(),
        check = check::after(*delivered, carrier, nodes),
    )]
    After {
        /// The last ordered message of the objects that the sender knows of.
        delivered: u64,
        /// The message, which may be gossiped.
        #[wire(with = Carried<true>)]
        carrier: Box<Message>,
    },
    /// About objects.
    #[wire(tag = ..7)]
    #[message(
        kind = it.kind(), notify = it.notify(),
        may_end_a_wait = it.may_end_a_wait(), ends_a_wait = it.ends_a_wait(),
        payload = it.payload(), check = it.check(nodes),
    )]
    Region(RegionMessage),
    /// About elements of arrays.
    #[wire(tag = ..7)]
    #[message(
        kind = it.kind(), notify = it.notify(),
        may_end_a_wait = it.may_end_a_wait(), ends_a_wait = it.ends_a_wait(),
        payload = it.payload(), check = it.check(nodes),
    )]
    Elements(RegionMessage<Elements>),
    /// Asks the last writer of elements of arrays for their bytes.
    #[message(kind = MessageKind::Fetch, check = check::fetch_elements(wanted, *beside, nodes))]
    FetchElements {
        /// The asker's round; the reply repeats it.
        round: u32,
        /// The elements.
        wanted: WantedList<Elements>,
        /// So many of them, the last ones, are read ahead: nobody waits for them. Those that are
        /// being written are left out of the reply.
        beside: u16,
    },
    /// Answers [`FetchElements`](Message::FetchElements); the bytes are the payload.
    #[message(
        kind = MessageKind::FetchReply, notify = Notify::Lazy,
        ends_a_wait, payload = PayloadOf::Elements(&it.sent),
        check = check::fetch_reply(it, nodes),
    )]
    ElementsReply(FetchReply<Elements>),
    /// Asks for a page.
    #[message(kind = MessageKind::PageRequest)]
    PageRequest {
        /// The asker's round.
        round: u32,
        /// The page.
        page: PageId,
    },
    /// Answers a [`PageRequest`](Message::PageRequest); the bytes are the payload.
    #[message(
        kind = MessageKind::PageReply, notify = Notify::Lazy,
        ends_a_wait, payload = PayloadOf::Page,
        check = check::applied(applied, nodes),
    )]
    PageReply {
        /// The asker's round.
        round: u32,
        /// The page.
        page: PageId,
        /// Whose changes it contains.
        applied: Applied,
    },
    /// Asks for diffs of a page, the receiver's own and others.
    #[message(kind = MessageKind::DiffRequest, check = check::wanted(wanted.len()))]
    DiffRequest {
        /// The asker's round.
        round: u32,
        /// The page.
        page: PageId,
        /// The diffs.
        wanted: SmallVec<[WantedDiffs; 1]>,
    },
    /// Answers a [`DiffRequest`](Message::DiffRequest); the diffs are the payload.
    #[message(
        kind = MessageKind::DiffReply, notify = Notify::Lazy,
        ends_a_wait, payload = Message::parts(diffs.iter().map(|it| u64::from(it.bytes))),
        check = check::diffs(diffs),
    )]
    DiffReply {
        /// The asker's round.
        round: u32,
        /// The page.
        page: PageId,
        /// What of the question it answers.
        got: SmallVec<[WantedDiffs; 1]>,
        /// The diffs.
        diffs: SmallVec<[SentDiff; 1]>,
    },
    /// Asks a lock's manager for the lock.
    #[message(
        kind = MessageKind::LockRequest,
        may_end_a_wait, can_piggyback,
        check = check::time(time, nodes),
    )]
    LockRequest {
        /// The lock.
        lock: LockId,
        /// What the asker has seen.
        time: VectorTime,
    },
    /// The manager passes a request on to the node that asked last before.
    #[message(
        kind = MessageKind::LockForward,
        may_end_a_wait, can_piggyback,
        check = check::request(*requester, time, nodes),
    )]
    LockForward {
        /// The lock.
        lock: LockId,
        /// Who asks.
        requester: NodeId,
        /// What the asker has seen.
        time: VectorTime,
    },
    /// The lock.
    #[message(
        kind = MessageKind::LockGrant, notify = Notify::Lazy,
        may_end_a_wait, ends_a_wait, can_piggyback, passes_order_on,
        news = Some(news),
        check = check::granted(news, waiting, nodes),
    )]
    LockGrant {
        /// The lock.
        lock: LockId,
        /// What happened before the release.
        news: Box<WriteNotices>,
        /// Who waits on the lock's conditions, the longest first.
        waiting: Conditions<u64, NodeId>,
    },
    /// Wakes a node that waits on a condition: it asks for the lock again.
    #[message(kind = MessageKind::Notify, may_end_a_wait, ends_a_wait)]
    Notify {
        /// The condition.
        condition: ConditionId,
    },
    /// Asks the manager of a read-write lock or a semaphore for it.
    #[message(
        kind = MessageKind::SyncRequest,
        may_end_a_wait, can_piggyback,
        check = check::time(time, nodes),
    )]
    SyncRequest {
        /// Through what.
        sync_object: SyncObject,
        /// Which of the asker's waits this is; the grant repeats it.
        wait: u64,
        /// What the asker has seen.
        time: VectorTime,
    },
    /// The manager asks a node whose release the requester has not seen to tell it the news.
    #[message(
        kind = MessageKind::SyncForward,
        may_end_a_wait, can_piggyback, passes_order_on,
        check = check::request(*requester, time, nodes),
    )]
    SyncForward {
        /// Through what the requester passes.
        sync_object: SyncObject,
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
    #[message(
        kind = MessageKind::SyncGrant, notify = Notify::Lazy,
        may_end_a_wait, ends_a_wait, can_piggyback, passes_order_on,
        news = Some(news),
        check = news.check(nodes),
    )]
    SyncGrant {
        /// Through what.
        sync_object: SyncObject,
        /// Which of the receiver's waits ends.
        wait: u64,
        /// How many grants there are.
        parts: u32,
        /// What happened before the sender's release.
        news: Box<WriteNotices>,
    },
    /// Releases a read-write lock, or permits of a semaphore.
    #[message(
        kind = MessageKind::SyncRelease,
        may_end_a_wait, can_piggyback, passes_order_on,
        check = check::time(time, nodes),
    )]
    SyncRelease {
        /// What.
        sync_object: SyncObject,
        /// What the sender has seen.
        time: VectorTime,
        /// Where in the program.
        site: CallSite,
    },
    /// A node has reached a barrier.
    #[message(
        kind = MessageKind::BarrierArrive, notify = Notify::Lazy,
        may_end_a_wait, passes_order_on,
        news = Some(news),
        check = news.check(nodes),
    )]
    BarrierArrive {
        /// Which one.
        barrier: BarrierId,
        /// The node's own intervals since the last barrier.
        news: Box<WriteNotices>,
        /// Where in the program.
        site: CallSite,
        /// The node's memory for diffs is full.
        full: bool,
        /// Whether another node may lack what the sender knows.
        has_news: bool,
    },
    /// All nodes have reached it. The payload is the value that node 0 brought, if any.
    #[message(
        kind = MessageKind::BarrierDepart, notify = Notify::Lazy,
        may_end_a_wait, ends_a_wait, passes_order_on,
        payload = match barrier {
            BarrierId::Once(_) => PayloadOf::Value,
            _ => PayloadOf::Bytes(0),
        },
        news = Some(news),
        check = news.check(nodes),
    )]
    BarrierDepart {
        /// Which one.
        barrier: BarrierId,
        /// What the receiver lacks.
        news: Box<WriteNotices>,
        /// Diffs are collected next.
        collect: bool,
        /// How many of the next barriers of the program begin with
        /// [rounds](Message::BarrierRound), if this is one.
        rounds: u32,
    },
    /// Brings the edges of the wait-for graph together, in search of a deadlock.
    #[message(kind = MessageKind::Probe, check = check::probe(it, nodes))]
    Probe(Box<DeadlockProbe>),
    /// From the manager of a barrier that all have reached: one of them has seen an interval of the
    /// receiver that the receiver has not told there.
    #[message(kind = MessageKind::Probe, check = check::untold(it, nodes))]
    Untold(Untold),
    /// The answer.
    #[message(kind = MessageKind::Probe, check = check::untold(of, nodes))]
    Told {
        /// What was asked.
        of: Untold,
        /// The newest interval that the sender has ended.
        ended: IntervalIndex,
        /// How often it has told at the barrier what it did.
        arrivals: u32,
    },
    /// The sender has found a race with a write of the receiver, and asks where that was.
    #[message(kind = MessageKind::WhereWritten, check = check::raced(raced))]
    WhereWritten {
        /// The object, or the elements.
        raced: Raced,
        /// The Lamport time of the receiver's interval that wrote it.
        lamport: u64,
    },
    /// Answers a [`WhereWritten`](Message::WhereWritten).
    #[message(kind = MessageKind::WrittenAt, check = check::raced(raced))]
    WrittenAt {
        /// The object, or the elements: the first of those asked about, as many as were
        /// written there.
        raced: Raced,
        /// The Lamport time of the sender's interval that wrote it.
        lamport: u64,
        /// Where in the program, if the sender still knows.
        site: Option<CallSite>,
    },
    /// The receiver is on a cycle of the wait-for graph.
    #[message(kind = MessageKind::Deadlock, check = check::waiters(cycle.iter(), nodes))]
    Deadlock {
        /// The cycle, each node waiting for the next and the last for the first.
        cycle: Arc<[Waiter]>,
    },
    /// A node has failed and the run ends.
    #[message(kind = MessageKind::Abort)]
    Abort {
        /// The node that failed.
        node: NodeId,
        /// Why.
        reason: AbortReason,
    },
    /// About objects with operations.
    #[message(
        kind = it.kind(), notify = it.notify(to), is_started = it.is_started(), news = it.news(),
    )]
    Objects(Box<ObjectsMessage>),
    /// Asks node 0 for object ids that follow on each other.
    #[message(kind = MessageKind::IdsRequest)]
    AskIds {
        /// How many at least.
        ids: u64,
    },
    /// Answers [`AskIds`](Message::AskIds).
    #[message(kind = MessageKind::IdsReply, notify = Notify::Lazy, ends_a_wait)]
    HandIdsOut(HandedOut),
    /// A value of a collective; its bytes are the payload.
    #[message(
        kind = MessageKind::Collective, notify = Notify::Lazy,
        may_end_a_wait, ends_a_wait, can_piggyback, passes_order_on,
        payload = PayloadOf::Value, news = Some(&it.news),
        check = it.news.check(nodes),
    )]
    Collective(Box<CollectiveMessage>),
    /// What a member says. The bytes of units, or changes of them, are the payload.
    #[message(
        kind = MessageKind::Coherence, ends_a_wait,
        payload = Message::parts(it.sizes.iter().copied()),
    )]
    Coherence(MemberMessage),
    /// Of a part of the node that is not the protocol's. Bytes that the part names may be the
    /// payload.
    #[wire(tag = ..2)]
    #[message(kind = it.kind(), payload = PayloadOf::Value)]
    Part(Frame),
    /// Releases a read-write lock. Nodes that wait on its condition want the lock from here on, and
    /// the sender may wait on it.
    #[message(
        kind = MessageKind::SyncRelease,
        may_end_a_wait, can_piggyback, passes_order_on,
        check = check::time(time, nodes),
    )]
    SyncReleaseAndWake {
        /// The lock, as the sender held it.
        sync_object: SyncObject,
        /// What the sender has seen.
        time: VectorTime,
        /// Where in the program.
        site: CallSite,
        /// So many nodes are woken, those that have waited longest.
        wakes: u32,
        /// Which of the sender's waits begins, if it waits on the condition.
        waits: Option<u64>,
        /// It waits until a node has written under the lock, and has not written itself. Otherwise
        /// it waits until it is notified.
        until_written: bool,
    },
    /// Asks the last writer of elements of arrays to combine them with updates.
    #[message(kind = MessageKind::Flush, check = check_combine(it, nodes))]
    Combine(Box<CombineRequest>),
    /// Answers a [`Combine`](Message::Combine).
    #[message(
        kind = MessageKind::FlushAck, notify = Notify::Lazy,
        ends_a_wait,
        news = Some(news),
        check = news.check(nodes).and_then(|()| check_batches(left, nodes)),
    )]
    Combined {
        /// The asker's number.
        number: u32,
        /// What the sender has seen, and the asker had not.
        news: Box<WriteNotices>,
        /// Updates of elements of which the sender knows a later writer.
        left: Vec<UpdateBatch>,
    },
}

impl Message {
    /// Bytes of a frame before its message: its kind, the run, and lengths.
    pub const HEADER_BYTES: u64 = 16;

    /// Says how many bytes its payload has of each unit.
    pub fn set_sizes(&mut self, sizes: &[u64]) {
        match self {
            Message::Region(it) => it.set_sizes(sizes),
            Message::Elements(it) => it.set_sizes(sizes),
            Message::Coherence(it) => it.sizes = sizes.into(),
            _ => {}
        }
    }

    /// Bytes of the message's frame, without a payload.
    pub fn frame_bytes(&self) -> u64 {
        Message::HEADER_BYTES + self.encoded_len() as u64
    }

    /// What the message tells of intervals, also as one that is multicast.
    pub fn told(&self) -> Option<&WriteNotices> {
        match self {
            Message::Objects(message) => message.told(),
            message => message.news(),
        }
    }

    /// Bytes of write notices in the message.
    pub fn notice_bytes(&self) -> u64 {
        self.told().map_or(0, WriteNotices::notice_bytes)
    }
}
