//! How many bytes a message takes on a wire.

use super::*;

const ROUND_AND_COUNT: u64 = 4 + 4;
const OID_AND_VERSION: u64 = 8 + 8 + 2;

impl Message {
    /// Bytes that a fetch of so many objects takes on a wire, and its reply without its payload.
    pub const fn fetch_bytes(objects: usize) -> u64 {
        // Both counts of a fetch are small: two bytes each. A bit of the reply's says whether to
        // keep the objects.
        Message::HEADER_BYTES + ROUND_AND_COUNT + OID_AND_VERSION * objects as u64
    }

    /// Bytes that the message takes on a wire, without its payload.
    pub fn wire_bytes(&self) -> u64 {
        const ROUND_AND_PAGE: u64 = 4 + 4;
        const INDEX: u64 = 4;
        const COUNT: u64 = 4;
        const OID: u64 = 8;
        const LENGTH: u64 = 4;
        const LAMPORT: u64 = 8;
        const VERSION: u64 = 8 + 2;
        const LOCK: u64 = 8;
        const NODE: u64 = 2;
        const BARRIER: u64 = 8;
        const SITE: u64 = 8;
        const WAIT: u64 = 8;
        const PARTS: u64 = 4;
        const PLACE: u64 = 4;
        const ORDERED: u64 = 8;
        let body = match self {
            Message::Gossiped { gossip, carrier } => {
                return gossip.wire_bytes() + carrier.wire_bytes();
            }
            Message::After { carrier, .. } => return ORDERED + carrier.wire_bytes(),
            Message::Fetch(it) => return Message::fetch_bytes(it.wanted.len()),
            Message::FetchReply(it) => return Message::fetch_bytes(it.sent.len()),
            Message::Update { pushed } => COUNT + (OID_AND_VERSION + LENGTH) * pushed.len() as u64,
            Message::DropOut { objects } => COUNT + OID * objects.len() as u64,
            Message::Flush { flushed, at, .. } => {
                let at = at.as_ref().map_or(0, |at| at.wire_bytes());
                ROUND_AND_COUNT + (OID + LENGTH) * flushed.len() as u64 + at
            }
            Message::FlushAck { .. }
            | Message::ElementsFlushed { .. }
            | Message::OutdatedAck { .. }
            | Message::OutdatedElementsAck { .. } => 4,
            Message::Outdated { objects, .. } => ROUND_AND_COUNT + OID * objects.len() as u64,
            Message::OutdatedElements { elements, .. } => {
                ROUND_AND_COUNT + ELEMENTS * elements.len() as u64
            }
            Message::UpdateElements { pushed } => {
                COUNT + (ELEMENTS + VERSION + LENGTH) * pushed.len() as u64
            }
            Message::DropOutElements { elements } => COUNT + ELEMENTS * elements.len() as u64,
            Message::FlushElements { flushed, at, .. } => {
                let at = at.as_ref().map_or(0, |at| at.wire_bytes());
                ROUND_AND_COUNT + (ELEMENTS + LENGTH) * flushed.len() as u64 + at
            }
            Message::ElementsGone { .. } => 4 + OID,
            Message::FetchElements { wanted, .. } => {
                ROUND_AND_COUNT + (ELEMENTS + VERSION) * wanted.len() as u64
            }
            Message::ElementsReply { sent, .. } => {
                ROUND_AND_COUNT + (ELEMENTS + VERSION) * sent.len() as u64
            }
            Message::Gone { .. } => 4 + 8 + NODE,
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
                const NODE_INDEX_LAMPORT_LENGTH: u64 = 2 + 4 + 8 + 2;
                let got = (NODE + INDEX) * got.len() as u64;
                ROUND_AND_PAGE + 2 * COUNT + got + NODE_INDEX_LAMPORT_LENGTH * diffs.len() as u64
            }
            Message::LockRequest { time, .. } => LOCK + vector_bytes(time),
            Message::LockForward { time, .. } => LOCK + NODE + vector_bytes(time),
            Message::LockGrant { news, waiting, .. } => {
                const CONDITION_AND_NODE: u64 = 8 + 2;
                LOCK + news.wire_bytes() + CONDITION_AND_NODE * waiting.len() as u64
            }
            Message::Notify { .. } => LOCK + 8,
            Message::GateRequest { passage, time, .. } => {
                passage_bytes(*passage) + WAIT + vector_bytes(time)
            }
            Message::GateForward { passage, time, .. } => {
                passage_bytes(*passage) + NODE + WAIT + PARTS + vector_bytes(time)
            }
            Message::GateGrant { passage, news, .. } => {
                passage_bytes(*passage) + WAIT + PARTS + news.wire_bytes()
            }
            Message::GateRelease { passage, time, .. } => {
                passage_bytes(*passage) + SITE + vector_bytes(time)
            }
            Message::Stall(stall) => {
                const SENT_AND_RECEIVED: u64 = 8 + 8;
                let round = |round: &crate::stall_probe::Round| {
                    let without = NODE * round.without.len() as u64;
                    let waits = [&round.waiters, &round.beside];
                    let waits = waits.map(|waits| Waiter::all_bytes(waits));
                    SENT_AND_RECEIVED + waits.iter().sum::<u64>() + without
                };
                const OBJECT_AND_SITE: u64 = 8 + 8;
                let made = OBJECT_AND_SITE * stall.made.len() as u64;
                NODE + round(&stall.round) + stall.first.as_ref().map_or(0, round) + made
            }
            // Bits of the barrier's number say whether the node is full and whether it has news.
            Message::BarrierArrive { news, .. } => BARRIER + SITE + news.wire_bytes(),
            Message::BarrierRound(said) => BARRIER + PLACE + said.site.map_or(0, |_| SITE),
            // A bit of the barrier's number says whether diffs are collected.
            Message::BarrierDepart { news, rounds, .. } => {
                const ROUNDS: u64 = 4;
                let rounds = if *rounds > 0 { ROUNDS } else { 0 };
                BARRIER + rounds + news.wire_bytes()
            }
            Message::Probe { path, confirms, .. } => {
                9 + Waiter::all_bytes(path) + Waiter::all_bytes(confirms)
            }
            Message::Objects(message) => message.wire_bytes(),
            Message::Collective(message) => {
                const NUMBER_KIND_TYPE: u64 = 8 + 1 + 8;
                NUMBER_KIND_TYPE + SITE + message.news.wire_bytes()
            }
            Message::Untold(_) => BARRIER + NODE + 4,
            Message::Told { .. } => BARRIER + NODE + 4 + 4 + 4,
            Message::WhereWritten { raced, .. } => raced_bytes(*raced) + LAMPORT,
            Message::WrittenAt { raced, .. } => raced_bytes(*raced) + LAMPORT + SITE,
            Message::Deadlock { cycle } => Waiter::all_bytes(cycle),
            Message::Abort { reason, .. } => {
                1 + NODE
                    + match reason {
                        AbortReason::Panicked(words)
                        | AbortReason::Failed(words)
                        | AbortReason::Lost(words) => words.len() as u64,
                        AbortReason::Deadlocked(cycle) => Waiter::all_bytes(cycle),
                    }
            }
        };
        Message::HEADER_BYTES + body
    }
}
