//! What no node of a sound cluster says, whatever has happened there.

use dhole_model::{Elements, NodeId, OidRange, PageRange, VectorTime, Version};

use crate::barrier::rounds;
use crate::objects::MOST_BEGUN;
use crate::page_command::PagesOf;
use crate::pending_fetches::MOST_WANTED;
use crate::stall_probe::Stall;
use crate::{FlushedAt, Interval, Message, News, Sent, Waiter, Wanted};

/// Lamport times of messages are below this, which no run comes near to: half of what a record of
/// an object has room for, so that a node may count on from any of them.
const LAMPORT_END: u64 = 1 << 46;

impl News {
    /// What makes no sense in a cluster of `nodes`.
    pub(crate) fn check(&self, nodes: usize) -> Result<(), &'static str> {
        check_time(&self.time, nodes)?;
        if self.lamport >= LAMPORT_END {
            return Err("a Lamport time that no run reaches");
        }
        if self.intervals.iter().any(|i| i.lamport > self.lamport) {
            return Err("an interval that is newer than who tells it");
        }
        let mut intervals = self.intervals.iter();
        intervals.try_for_each(|interval| check_interval(interval, nodes))
    }
}

fn check_interval(interval: &Interval, nodes: usize) -> Result<(), &'static str> {
    if interval.node.index() >= nodes {
        return Err("an interval of a node that is not in the cluster");
    }
    if interval.first == 0 || interval.first > interval.index {
        return Err("an interval that ends before it begins");
    }
    let ends = |range: &OidRange| range.first.0.checked_add(u64::from(range.count));
    let base = interval.base.as_ref();
    if base.is_some_and(|base| base.index >= interval.first) {
        return Err("an interval told against one that is no older");
    }
    let unwritten = base.into_iter().flat_map(|base| &base.unwritten);
    let freed = interval.freed.iter();
    let mut ranges = interval.written.iter().chain(freed).chain(unwritten);
    if !ranges.all(|range| range.count > 0 && ends(range).is_some()) {
        return Err("a range of objects beyond all ids");
    }
    let is_sorted =
        |ranges: &[OidRange]| ranges.is_sorted_by(|one, next| ends(one) <= Some(next.first.0));
    let unwritten = base.map_or(&[][..], |base| &base.unwritten);
    if ![&interval.written, &interval.freed, unwritten]
        .into_iter()
        .all(is_sorted)
    {
        return Err("ranges of objects that are not in order");
    }
    interval.elements.iter().try_for_each(check_elements)?;
    check_pages(&interval.pages, nodes)
}

fn check_pages(pages: &PagesOf, nodes: usize) -> Result<(), &'static str> {
    let Some(pages) = pages else { return Ok(()) };
    check_time(&pages.seen, nodes)?;
    let ends = |range: &PageRange| range.first.0.checked_add(u64::from(range.count));
    let fits = |range: &PageRange| range.count > 0 && ends(range).is_some_and(|end| end <= PAGES);
    let all: u64 = pages
        .ranges
        .iter()
        .map(|range| u64::from(range.count))
        .sum();
    match pages.ranges.iter().all(fits) && all <= MOST_PAGES {
        true => Ok(()),
        false => Err("no pages, too many, or pages beyond the space of addresses"),
    }
}

/// Pages are numbered with 4 bytes on a wire.
const PAGES: u64 = 1 << 32;

/// No interval writes more: 4 GiB.
const MOST_PAGES: u64 = 1 << 20;

fn check_time(time: &VectorTime, nodes: usize) -> Result<(), &'static str> {
    match time.nodes() == nodes {
        true => Ok(()),
        false => Err("a vector time of a cluster of another size"),
    }
}

fn check_flushed_at(
    at: Option<&FlushedAt>,
    flushed: usize,
    nodes: usize,
) -> Result<(), &'static str> {
    at.map_or(Ok(()), |at| match at.sites.len() == flushed {
        true => check_time(&at.time, nodes),
        false => Err("a flush that does not say of each part where it was written"),
    })
}

fn check_elements(elements: &Elements) -> Result<(), &'static str> {
    match elements.first.checked_add(elements.count) {
        Some(_) if elements.count > 0 => Ok(()),
        _ => Err("no elements, or elements beyond every array"),
    }
}

fn check_bytes(elements: Elements, bytes: u64) -> Result<(), &'static str> {
    check_elements(&elements)?;
    match bytes > 0 && bytes.is_multiple_of(elements.count) {
        true => Ok(()),
        false => Err("elements that are not all of one length"),
    }
}

fn check_wanted(wanted: usize) -> Result<(), &'static str> {
    match (1..=MOST_WANTED).contains(&wanted) {
        true => Ok(()),
        false => Err("a fetch of nothing, or of more than one message may ask for"),
    }
}

/// What makes no sense in a fetch.
pub(crate) fn fetch(wanted: &[Wanted], beside: u16, nodes: usize) -> Result<(), &'static str> {
    check_wanted(wanted.len())?;
    if wanted.len() < usize::from(beside) {
        return Err("a fetch with more objects beside those missed than there are");
    }
    check_versions(wanted.iter().map(|wanted| wanted.need), nodes)
}

/// What makes no sense in its reply.
pub(crate) fn fetch_reply(sent: &[Sent], nodes: usize) -> Result<(), &'static str> {
    check_versions(sent.iter().map(|sent| sent.version), nodes)
}

/// Whether a run of so many nodes may come to a version.
fn may_be(Version { lamport, node }: Version, nodes: usize) -> bool {
    lamport < LAMPORT_END && node.index() < nodes
}

fn check_versions(
    mut versions: impl Iterator<Item = Version>,
    nodes: usize,
) -> Result<(), &'static str> {
    match versions.all(|version| may_be(version, nodes)) {
        true => Ok(()),
        false => Err("a version of a node that is not in the cluster, or that no run reaches"),
    }
}

fn check_nodes(
    mut them: impl Iterator<Item = NodeId>,
    nodes: usize,
    what: &'static str,
) -> Result<(), &'static str> {
    match them.all(|node| node.index() < nodes) {
        true => Ok(()),
        false => Err(what),
    }
}

fn check_waiters<'a>(
    waiters: impl IntoIterator<Item = &'a Waiter>,
    nodes: usize,
) -> Result<(), &'static str> {
    let what = "a waiter that is not in the cluster";
    check_nodes(waiters.into_iter().map(|waiter| waiter.node), nodes, what)
}

fn check_stall(stall: &Stall, nodes: usize) -> Result<(), &'static str> {
    let rounds = stall.first.iter().chain([&stall.round]);
    let asker = [stall.asker].into_iter();
    check_nodes(asker, nodes, "an asker that is not in the cluster")?;
    let waiters = |round: &'_ crate::StallRound| round.waiters.len() + round.beside.len();
    if rounds
        .clone()
        .any(|round| waiters(round) > nodes * (2 + MOST_BEGUN))
    {
        return Err("more waits than there may be processes");
    }
    if stall.made.len() > stall.first.as_ref().map_or(0, waiters) {
        return Err("more objects than are waited for");
    }
    check_waiters(
        rounds.flat_map(|round| round.waiters.iter().chain(&round.beside)),
        nodes,
    )
}

impl Message {
    /// What makes no sense in a cluster of `nodes`, whatever has happened there.
    pub(crate) fn check(&self, nodes: usize) -> Result<(), &'static str> {
        match self {
            Message::Fetch { wanted, beside, .. } => fetch(wanted, *beside, nodes),
            Message::PageReply { applied, .. } => {
                let writers = applied.iter().map(|(node, _)| *node);
                check_nodes(
                    writers,
                    nodes,
                    "changes of a node that is not in the cluster",
                )
            }
            Message::DiffRequest { wanted, .. } => check_wanted(wanted.len()),
            Message::PageRequest { .. } => Ok(()),
            Message::DiffReply { diffs, .. } => {
                match diffs.iter().all(|diff| diff.lamport < LAMPORT_END) {
                    true => Ok(()),
                    false => Err("a Lamport time that no run reaches"),
                }
            }
            Message::FetchReply { sent, .. } => fetch_reply(sent, nodes),
            Message::Update { pushed } => {
                check_versions(pushed.iter().map(|pushed| pushed.sent.version), nodes)
            }
            Message::FetchElements { wanted, .. } => {
                check_wanted(wanted.len())?;
                check_versions(wanted.iter().map(|wanted| wanted.need), nodes)?;
                let mut all = wanted.iter().map(|wanted| &wanted.elements);
                all.try_for_each(check_elements)
            }
            Message::ElementsReply { sent, .. } => {
                check_versions(sent.iter().map(|sent| sent.version), nodes)
            }
            Message::Gone { by, .. } => {
                let what = "an object freed by a node that is not in the cluster";
                check_nodes(by.iter().copied(), nodes, what)
            }
            Message::Flush { flushed, at, .. } => {
                check_flushed_at(at.as_deref(), flushed.len(), nodes)
            }
            Message::UpdateElements { pushed } => {
                check_versions(pushed.iter().map(|pushed| pushed.sent.version), nodes)?;
                let mut all = pushed.iter();
                all.try_for_each(|pushed| check_bytes(pushed.sent.elements, pushed.bytes))
            }
            Message::FlushElements { flushed, at, .. } => {
                check_flushed_at(at.as_deref(), flushed.len(), nodes)?;
                let mut all = flushed.iter();
                all.try_for_each(|flushed| check_bytes(flushed.elements, flushed.bytes))
            }
            Message::DropOutElements { elements } | Message::OutdatedElements { elements, .. } => {
                elements.iter().try_for_each(check_elements)
            }
            Message::LockRequest { time, .. } => check_time(time, nodes),
            Message::LockForward {
                requester, time, ..
            }
            | Message::GateForward {
                requester, time, ..
            } => match requester.index() < nodes {
                true => check_time(time, nodes),
                false => Err("a requester that is not in the cluster"),
            },
            Message::LockGrant { news, waiting, .. } => {
                let waiting = waiting.iter().map(|waiting| waiting.node);
                check_nodes(waiting, nodes, "a waiter that is not in the cluster")?;
                news.check(nodes)
            }
            Message::BarrierArrive { news, .. }
            | Message::BarrierDepart { news, .. }
            | Message::GateGrant { news, .. } => news.check(nodes),
            Message::Collective(message) => message.news.check(nodes),
            Message::GateRequest { time, .. } | Message::GateRelease { time, .. } => {
                check_time(time, nodes)
            }
            Message::WhereWritten { raced, .. } | Message::WrittenAt { raced, .. } => {
                raced.elements().as_ref().map_or(Ok(()), check_elements)
            }
            Message::Gossiped { gossip, carrier } => match carrier.may_carry_gossip() {
                true => gossip.check(nodes).and_then(|()| carrier.check(nodes)),
                false => Err("gossip on a message that carries none"),
            },
            Message::After { carrier, .. } => match carrier.passes_order_on() {
                true => carrier.check(nodes),
                false => Err("an order beside a message that passes none on"),
            },
            Message::Probe { path, confirms, .. } => {
                check_waiters(path.iter().chain(confirms), nodes)
            }
            Message::Stall(stall) => check_stall(stall, nodes),
            Message::Untold(of) | Message::Told { of, .. } => {
                let what = "an interval seen by a node that is not in the cluster";
                check_nodes([of.by].into_iter(), nodes, what)
            }
            Message::Deadlock { cycle } => check_waiters(cycle.iter(), nodes),
            Message::BarrierRound(said) if u32::from(said.round) >= rounds(nodes) => {
                Err("a round that a barrier of so many nodes has not")
            }
            Message::BarrierRound(said) if said.round > 0 && said.site.is_some() => {
                Err("a place of the program in a round that says none")
            }
            // The objects check them, for they need to know the sender.
            Message::Objects(_) => Ok(()),
            Message::DropOut { .. }
            | Message::BarrierRound(_)
            | Message::FlushAck { .. }
            | Message::Outdated { .. }
            | Message::OutdatedAck { .. }
            | Message::OutdatedElementsAck { .. }
            | Message::ElementsFlushed { .. }
            | Message::ElementsGone { .. }
            | Message::AskIds { .. }
            | Message::HandIdsOut(_)
            | Message::Notify { .. }
            | Message::Abort { .. } => Ok(()),
        }
    }
}
