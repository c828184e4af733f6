//! The sizes of messages as the papers' systems would have sent them: a cost model.
//!
//! A message counts as its fields would if each took the bytes that it needs and bits lay in bytes
//! that are there anyway: a source line as 8 bytes, not as the name of a file. The tables of the
//! papers are made with these sizes ([`Network::paper_sizes`](crate::Network)). Every
//! other run counts the bytes that are sent.

use std::sync::Arc;

use dhole_model::{NodeId, NodeMap, VectorTime};
use dhole_protocol::group::{Cast, GroupMessage, Wants};
use dhole_protocol::objects::chain::ChainLink;
use dhole_protocol::objects::{
    Bytes, Call, ObjectsMessage, Ordered, Outcome, Refusal, Saved, Start, Waiting,
};
use dhole_protocol::{
    AbortReason, BarrierRound, DeadlockProbe, Flush, FlushedAt, Gossip, Interval, Message, Raced,
    Ranges, RegionKind, RegionMessage, SyncObject, UpdateBatch, Waiter, WaitingFor, WriteNotices,
};
use dhole_wire::{Wire, WireAs};

const COUNT: u64 = 4;
const LENGTH: u64 = 4;
const NODE: u64 = 2;
const INDEX: u64 = 4;
const OID: u64 = 8;
const LAMPORT: u64 = 8;
const VERSION: u64 = LAMPORT + NODE;
const SITE: u64 = 8;
/// An array, the first element, and how many.
const ELEMENTS: u64 = 8 + 8 + 4;
const FLAG: u64 = 1;
/// A number, a serial, an incarnation.
const NUMBER: u64 = 8;

fn vector(time: &VectorTime) -> u64 {
    INDEX * time.nodes() as u64
}

/// Bytes of the write notices in a message.
pub fn notice_bytes(message: &Message) -> u64 {
    message.told().map_or(0, notices)
}

fn notices(news: &WriteNotices) -> u64 {
    news.intervals.iter().map(|it| interval(it)).sum()
}

fn interval(interval: &Interval) -> u64 {
    let first = if interval.first < interval.index {
        INDEX
    } else {
        0
    };
    let elements = match interval.elements.len() as u64 {
        0 => 0,
        ranges => COUNT + ELEMENTS * ranges,
    };
    let ranges = |ranges| Ranges::tail_len(ranges) as u64;
    let base = interval.base.as_ref();
    let base = base.map_or(0, |base| INDEX + COUNT + ranges(&base.unwritten));
    // Bits of the node's number say what there is of these.
    let freed = match interval.freed.is_empty() {
        true => 0,
        false => COUNT + ranges(&interval.freed),
    };
    let pages = interval.attached.pages();
    let pages = pages.map_or(0, |pages| COUNT + pages.tail_len() as u64);
    let fixed = NODE + INDEX + LAMPORT + COUNT;
    fixed + first + ranges(&interval.written) + base + elements + freed + pages
}

fn news(news: &WriteNotices) -> u64 {
    vector(&news.time) + LAMPORT + COUNT + notices(news)
}

/// The epoch, a bit for each node, and two times.
fn gossip(gossip: &Gossip) -> u64 {
    let nodes = gossip.floor.nodes() as u64;
    8 + nodes.div_ceil(8) + 2 * INDEX * nodes
}

fn flushed_at(at: &Option<Arc<FlushedAt>>) -> u64 {
    at.as_ref()
        .map_or(0, |at| vector(&at.time) + SITE * at.sites.len() as u64)
}

fn sync_object(sync_object: SyncObject) -> u64 {
    match sync_object {
        SyncObject::Read(_) | SyncObject::Write(_) => 1 + 8,
        SyncObject::Permit(_) => 1 + 8 + 4,
    }
}

fn raced(raced: Raced) -> u64 {
    raced.elements().map_or(OID, |_| ELEMENTS)
}

fn waiting_for(what: WaitingFor) -> u64 {
    1 + match what {
        WaitingFor::Lock(_) | WaitingFor::Barrier(_) => 8,
        WaitingFor::SyncObject(it) => sync_object(it),
        WaitingFor::Condition(_) => 16,
        WaitingFor::Operation(operation) => 16 + operation.made.map_or(0, |_| SITE),
        WaitingFor::Begin(_) => 8,
        WaitingFor::Process(_) => 18,
        WaitingFor::Collective(_) => 9,
        WaitingFor::Thread(_) | WaitingFor::RwLockCondition(_) => 8,
    }
}

fn waiters(waiters: &[Waiter]) -> u64 {
    const NODE_SITE_WAIT: u64 = NODE + SITE + 8;
    let each = waiters.iter();
    each.map(|waiter| NODE_SITE_WAIT + waiting_for(waiter.waiting_for))
        .sum()
}

/// Updates of elements, for each array that they are of.
fn updates(batches: &[UpdateBatch]) -> u64 {
    let of_one =
        |batch: &UpdateBatch| OID + NODE + 2 + SITE + COUNT + 16 * batch.updates.len() as u64;
    COUNT + batches.iter().map(of_one).sum::<u64>()
}

fn probe(probe: &DeadlockProbe) -> u64 {
    const SENT_AND_RECEIVED: u64 = 8 + 8;
    const OBJECT_AND_SITE: u64 = 8 + SITE;
    const WAIT_THREAD_SITE: u64 = 4 + NODE + 8 + SITE;
    const PLACE: u64 = 4;
    let edges = &probe.edges;
    let rounds = edges.first.iter().chain([&edges.round]);
    let rounds: u64 = rounds
        .map(|round| SENT_AND_RECEIVED + waiters(&round.waits))
        .sum();
    let answers = WAIT_THREAD_SITE * edges.keepers.len() as u64 + PLACE * edges.ending.len() as u64;
    let lost = NODE * edges.without.len() as u64;
    waiters(&[edges.asker]) + rounds + answers + lost + OBJECT_AND_SITE * probe.made.len() as u64
}

/// Bytes of a message about regions, each named by so many bytes, and of the name of the node that
/// freed one.
fn about_regions<R: RegionKind>(message: &RegionMessage<R>, region: u64, freed_by: u64) -> u64 {
    const NUMBER_OF_FLUSH: u64 = 4;
    match message {
        RegionMessage::Update { pushed } => {
            COUNT + (region + VERSION + LENGTH) * pushed.len() as u64
        }
        RegionMessage::DropOut { regions } => COUNT + region * regions.len() as u64,
        RegionMessage::Flush(Flush { flushed, at, .. }) => {
            let flushed = COUNT + (region + LENGTH) * flushed.len() as u64;
            NUMBER_OF_FLUSH + flushed + flushed_at(at)
        }
        RegionMessage::FlushAck { .. } | RegionMessage::OutdatedAck { .. } => NUMBER_OF_FLUSH,
        RegionMessage::Outdated { regions, .. } => {
            NUMBER_OF_FLUSH + COUNT + region * regions.len() as u64
        }
        RegionMessage::Gone { .. } => 4 + OID + freed_by,
    }
}

/// Bytes of a message without its payload.
pub fn message_bytes(message: &Message) -> u64 {
    const ROUND_AND_COUNT: u64 = 4 + COUNT;
    const ROUND_AND_PAGE: u64 = 4 + 4;
    const LOCK: u64 = 8;
    const BARRIER: u64 = 8;
    const WAIT: u64 = 8;
    const PARTS: u64 = 4;
    const PLACE: u64 = 4;
    const ROUNDS: u64 = 4;
    const DELIVERED: u64 = 8;
    // The name of a type, and a bit for each slot of references.
    const FOLLOWED: u64 = 12;
    let body = match message {
        Message::Gossiped {
            gossip: it,
            carrier,
        } => return gossip(it) + message_bytes(carrier),
        Message::After { carrier, .. } => return DELIVERED + message_bytes(carrier),
        // Both counts of a fetch are small: two bytes each. A bit of the reply's says whether to
        // keep the objects.
        Message::Fetch(it) => {
            let followed = it.follow.references.len() as u64;
            ROUND_AND_COUNT + (OID + VERSION) * it.wanted.len() as u64 + FOLLOWED * followed
        }
        Message::FetchReply(it) => ROUND_AND_COUNT + (OID + VERSION) * it.sent.len() as u64,
        Message::Region(it) => about_regions(it, OID, NODE),
        Message::Elements(it) => about_regions(it, ELEMENTS, 0),
        Message::FetchElements { wanted, .. } => {
            ROUND_AND_COUNT + (ELEMENTS + VERSION) * wanted.len() as u64
        }
        Message::ElementsReply(it) => ROUND_AND_COUNT + (ELEMENTS + VERSION) * it.sent.len() as u64,
        Message::Combine(it) => 4 + vector(&it.time) + updates(&it.batches),
        Message::Combined { news: it, left, .. } => 4 + news(it) + updates(left),
        Message::AskIds { .. } => 8,
        Message::HandIdsOut(_) => 3 * 8,
        Message::PageRequest { .. } => ROUND_AND_PAGE,
        Message::PageReply { applied, .. } => {
            ROUND_AND_PAGE + COUNT + (NODE + INDEX) * applied.len() as u64
        }
        Message::DiffRequest { wanted, .. } => {
            ROUND_AND_PAGE + COUNT + (NODE + 2 * INDEX) * wanted.len() as u64
        }
        Message::DiffReply { got, diffs, .. } => {
            const DIFF: u64 = NODE + INDEX + LAMPORT + 2;
            let got = (NODE + INDEX) * got.len() as u64;
            ROUND_AND_PAGE + 2 * COUNT + got + DIFF * diffs.len() as u64
        }
        Message::LockRequest { time, .. } => LOCK + vector(time),
        Message::LockForward { time, .. } => LOCK + NODE + vector(time),
        Message::LockGrant {
            news: it, waiting, ..
        } => {
            const CONDITION_AND_NODE: u64 = 8 + NODE;
            LOCK + news(it) + CONDITION_AND_NODE * waiting.waiters().len() as u64
        }
        Message::Notify { .. } => LOCK + 8,
        Message::SyncRequest {
            sync_object: it,
            time,
            ..
        } => sync_object(*it) + WAIT + vector(time),
        Message::SyncForward {
            sync_object: it,
            time,
            ..
        } => sync_object(*it) + NODE + WAIT + PARTS + vector(time),
        Message::SyncGrant {
            sync_object: it,
            news: told,
            ..
        } => sync_object(*it) + WAIT + PARTS + news(told),
        Message::SyncRelease {
            sync_object: it,
            time,
            ..
        } => sync_object(*it) + SITE + vector(time),
        Message::SyncReleaseAndWake {
            sync_object: it,
            time,
            waits,
            ..
        } => {
            const WAKES: u64 = 4;
            sync_object(*it) + SITE + vector(time) + WAKES + waits.map_or(0, |_| WAIT)
        }
        Message::Probe(it) => probe(it),
        // Bits of the barrier's number say whether the node is full and whether it has news.
        Message::BarrierArrive { news: it, .. } => BARRIER + SITE + news(it),
        Message::BarrierRound(BarrierRound { site, .. }) => {
            BARRIER + PLACE + site.map_or(0, |_| SITE)
        }
        // A bit of the barrier's number says whether diffs are collected.
        Message::BarrierDepart {
            news: it, rounds, ..
        } => {
            let rounds = if *rounds > 0 { ROUNDS } else { 0 };
            BARRIER + rounds + news(it)
        }
        Message::Objects(it) => objects(it),
        Message::Collective(it) => {
            const NUMBER_KIND_TYPE: u64 = 8 + 1 + 8;
            NUMBER_KIND_TYPE + SITE + news(&it.news)
        }
        Message::Untold(_) => BARRIER + NODE + INDEX,
        Message::Told { .. } => BARRIER + NODE + INDEX + 4 + 4,
        Message::WhereWritten { raced: it, .. } => raced(*it) + LAMPORT,
        Message::WrittenAt { raced: it, .. } => raced(*it) + LAMPORT + SITE,
        Message::Deadlock { cycle } => waiters(cycle),
        Message::Coherence(it) => 1 + COUNT + it.body.len() as u64 + LENGTH * it.sizes.len() as u64,
        // Millipage's header is the whole message (MultiView, section 3.3).
        // No paper says how long messages about threads are; they are of Millipage's kind.
        Message::Part(_) => return 32,
        Message::Abort { reason, .. } => {
            let reason = match reason {
                AbortReason::Panicked(words)
                | AbortReason::Failed(words)
                | AbortReason::Lost(words) => words.len() as u64,
                AbortReason::Deadlocked(cycle) => waiters(cycle),
            };
            1 + NODE + reason
        }
    };
    Message::HEADER_BYTES + body
}

/// Node, number, object, type, operation.
const CALL: u64 = NODE + NUMBER + 8 + 8 + 2;
/// A call's node and number.
const BY: u64 = NODE + NUMBER;
const OBJECT: u64 = 8;
const KIND: u64 = 8;

fn optional_time(time: &Option<VectorTime>) -> u64 {
    FLAG + time.as_ref().map_or(0, vector)
}

fn optional_news(told: &Option<Arc<WriteNotices>>) -> u64 {
    told.as_ref().map_or(0, |told| news(told))
}

fn bytes(bytes: &Bytes) -> u64 {
    LENGTH + bytes.len() as u64
}

fn words(words: &str) -> u64 {
    LENGTH + words.len() as u64
}

fn call(call: &Call) -> u64 {
    CALL + chain(&call.chain) + bytes(&call.arguments)
}

/// Most calls have none, and no bytes for it.
fn chain(chain: &Bytes) -> u64 {
    match chain.is_empty() {
        true => 0,
        false => bytes(chain),
    }
}

fn blocked(blocked: &[Waiting]) -> u64 {
    let each = |waiting: &Waiting| call(&waiting.call) + optional_time(&waiting.time);
    LENGTH + blocked.iter().map(each).sum::<u64>()
}

fn refusal(refusal: &Refusal) -> u64 {
    1 + match refusal {
        Refusal::Unknown
        | Refusal::Unmade
        | Refusal::HoldsLock
        | Refusal::TakesWorker
        | Refusal::Resident
        | Refusal::Elsewhere
        | Refusal::Withdrawn => 0,
        Refusal::Reentrant { chain } => {
            let each = |link: &ChainLink| OBJECT + words(&link.operation) + FLAG + SITE;
            COUNT + chain.iter().map(each).sum::<u64>()
        }
        Refusal::Rest { arguments, .. } => NUMBER + bytes(arguments),
        Refusal::Poisoned {
            operation,
            words: said,
        } => words(operation) + words(said),
        Refusal::Malformed(said)
        | Refusal::OtherType(said)
        | Refusal::Panicked(said)
        | Refusal::Failed(said)
        | Refusal::Apart(said) => words(said),
        Refusal::TooMany(_) | Refusal::TooManyStarted(_) | Refusal::TooManyProcesses(_) => 8,
        Refusal::Diverged { nodes, operation } => words(nodes) + words(operation),
        Refusal::Lost(_)
        | Refusal::Unanswered(_)
        | Refusal::NoNode(_)
        | Refusal::Freed(_)
        | Refusal::WentWith(_) => NODE,
    }
}

fn saved(saved: &Saved) -> u64 {
    match saved {
        Ok((_, state)) => 1 + KIND + bytes(state),
        Err(why) => 1 + refusal(why),
    }
}

fn outcome(outcome: &Outcome) -> u64 {
    match outcome {
        Ok(result) => bytes(result),
        Err(why) => refusal(why),
    }
}

fn ordered(ordered: &Ordered) -> u64 {
    match ordered {
        Ordered::Create { state, .. } => BY + OBJECT + KIND + bytes(state),
        Ordered::Operate {
            call: it,
            time,
            news,
        } => call(it) + optional_time(time) + optional_news(news),
        Ordered::Change { .. } => BY + OBJECT + 4,
        Ordered::Install {
            state,
            blocked: calls,
            news,
            ..
        } => OBJECT + saved(state) + blocked(calls) + optional_news(news),
        Ordered::Compare { .. } | Ordered::Free { .. } | Ordered::Withdraw { .. } => BY + OBJECT,
        Ordered::Placed { .. } => BY + NODE + OBJECT,
        Ordered::Constructed { comes_back, .. } => BY + NODE + OBJECT + bytes(comes_back),
        Ordered::Meet { value, news, .. } => {
            let value = value.as_ref().map_or(0, bytes);
            BY + 1 + SITE + FLAG + value + optional_news(news)
        }
    }
}

fn objects(message: &ObjectsMessage) -> u64 {
    match message {
        ObjectsMessage::Request {
            call: it,
            time,
            news,
            ..
        } => call(it) + NUMBER + optional_time(time) + optional_news(news),
        ObjectsMessage::Batch {
            calls, time, news, ..
        } => {
            let each = (CALL + LENGTH) * calls.len() as u64;
            let calls = LENGTH + each + calls.arguments() as u64;
            calls + NUMBER + optional_time(time) + optional_news(news)
        }
        ObjectsMessage::Spawn { start, news, .. }
        | ObjectsMessage::SpawnInChain { start, news, .. } => {
            let Start {
                arguments,
                time,
                chain: callers,
                ..
            } = start;
            let fixed = BY + 4 + SITE + NUMBER + chain(callers);
            fixed + bytes(arguments) + optional_time(time) + optional_news(news)
        }
        ObjectsMessage::Reply {
            outcome: it, news, ..
        } => NUMBER + outcome(it) + NUMBER + optional_news(news),
        ObjectsMessage::BatchReply {
            results,
            refused,
            blocked,
            news,
            ..
        } => {
            let results = (NUMBER + LENGTH) * results.len() as u64 + results.bytes() as u64;
            let refused = refused.iter().map(|(_, why)| NUMBER + refusal(why));
            let blocked = NUMBER * blocked.len() as u64;
            LENGTH + results + refused.sum::<u64>() + blocked + NUMBER + optional_news(news)
        }
        ObjectsMessage::Blocked { .. } => 2 * NUMBER,
        ObjectsMessage::Elsewhere { .. } => 3 * NUMBER + 3,
        ObjectsMessage::Create { state, .. } => BY + OBJECT + KIND + bytes(state),
        ObjectsMessage::CreateIn { state, .. } => {
            const CLERK: u64 = NODE + OBJECT + 4;
            BY + OBJECT + KIND + CLERK + bytes(state)
        }
        ObjectsMessage::Withdraw { .. } => BY + OBJECT + NUMBER,
        ObjectsMessage::NotWithdrawn { .. } => NUMBER + OBJECT + NUMBER,
        ObjectsMessage::Migrate {
            state,
            blocked: calls,
            news,
            ..
        } => OBJECT + 2 * NUMBER + saved(state) + blocked(calls) + optional_news(news),
        ObjectsMessage::Digests { digests, .. } => {
            NUMBER + LENGTH + (8 + 2 + 8) * digests.len() as u64
        }
        ObjectsMessage::Group(it) => group(it) + it.body().map_or(0, |body| ordered(body)),
    }
}

fn nodes(nodes: &[NodeId]) -> u64 {
    COUNT + NODE * nodes.len() as u64
}

fn wants(wants: &Wants) -> u64 {
    let bytes = |lives: &NodeMap<u64>| COUNT + (NODE + NUMBER) * lives.len() as u64;
    bytes(&wants.lost) + bytes(&wants.leaving) + bytes(&wants.joining)
}

/// Without what is broadcast.
fn group<B>(message: &GroupMessage<B>) -> u64 {
    const VIEW: u64 = NUMBER + NODE;
    const PARTS: u64 = 4;
    const PART: u64 = NODE + NUMBER + 2 * PARTS;
    match message {
        GroupMessage::Submit { .. } | GroupMessage::Announce { .. } => VIEW + PART + NUMBER,
        GroupMessage::Ask { .. } => VIEW + NUMBER + PARTS + NUMBER,
        GroupMessage::Grant { .. } => VIEW + 3 * NUMBER,
        GroupMessage::Accept { .. } => VIEW + NODE + NUMBER + PARTS + 2 * NUMBER,
        GroupMessage::Data { .. } => VIEW + NUMBER + PART + NUMBER,
        GroupMessage::Fetch { .. } | GroupMessage::Token { .. } => VIEW + 3 * NUMBER,
        GroupMessage::Relay { cast, .. } => {
            let cast = match cast {
                Cast::Data { .. } => NUMBER + PART + NUMBER,
                Cast::Announce { .. } => PART + NUMBER,
                Cast::Accept { .. } => NODE + NUMBER + PARTS + 2 * NUMBER,
            };
            VIEW + NODE + NUMBER + FLAG + cast
        }
        GroupMessage::Credit { .. } => VIEW + NUMBER,
        GroupMessage::Have { .. } => VIEW + NUMBER + FLAG,
        GroupMessage::Join { .. } => NUMBER,
        GroupMessage::Suspect { wants: it, .. } => VIEW + wants(it),
        GroupMessage::Collect { wants: it, .. } => VIEW + 2 * NUMBER + wants(it),
        GroupMessage::State { state, .. } => {
            let lists = nodes(&state.members) + nodes(&state.electors);
            let held = COUNT + NUMBER * state.held.len() as u64;
            NUMBER + VIEW + lists + 2 * NUMBER + held + wants(&state.wants)
        }
        GroupMessage::Gather { numbers, .. } => NUMBER + COUNT + NUMBER * numbers.len() as u64,
        GroupMessage::Gathered { .. } => NUMBER + NUMBER + PART,
        GroupMessage::Install {
            members, electors, ..
        } => {
            let members = COUNT + (NODE + 2 * NUMBER) * members.len() as u64;
            NUMBER + VIEW + members + nodes(electors) + NUMBER
        }
        GroupMessage::Installed { .. } | GroupMessage::Active { .. } => VIEW,
        GroupMessage::Out { .. } => VIEW + FLAG + 2 * NUMBER,
    }
}
