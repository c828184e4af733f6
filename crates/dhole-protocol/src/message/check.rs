//! What no node of a sound cluster says, whatever has happened there.

use dhole_model::{Elements, NodeId, OidRange, PageRange, VectorTime, Version};
use dhole_sync::Conditions;

use crate::memory::sync::MOST_WAITING;
use crate::objects::MOST_BEGUN;
use crate::page_command::{Applied, SentDiff};
use crate::race::Raced;
use crate::sync::barrier::{BarrierRound, rounds};
use crate::sync::collection::Gossip;
use crate::sync::interval::{MemberNotice, Untold};
use crate::sync::probes::DeadlockProbe;
use crate::sync::written_pages::WrittenPages;
use crate::transfer::{Fetch, FetchReply, Follow, MOST_ALONG, MOST_WANTED, Wanted};
use crate::{Interval, Message, Waiter, WriteNotices};

/// What makes no sense, if anything.
pub(super) type Checked = Result<(), &'static str>;

/// Lamport times of messages are below this, which no run comes near to: half of what a record of
/// an object has room for, so that a node may count on from any of them.
const LAMPORT_END: u64 = 1 << 46;

impl WriteNotices {
    /// What makes no sense in a cluster of `nodes`.
    pub(crate) fn check(&self, nodes: usize) -> Checked {
        time(&self.time, nodes)?;
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

fn check_interval(interval: &Interval, nodes: usize) -> Checked {
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
    interval.elements.iter().try_for_each(elements)?;
    let mut notices = interval.attached.notices().iter();
    if !notices.all(MemberNotice::is_sound) {
        return Err("a notice that is none of its protocol");
    }
    let pages = interval.attached.pages();
    pages.map_or(Ok(()), |pages| check_pages(pages, nodes))
}

fn check_pages(pages: &WrittenPages, nodes: usize) -> Checked {
    time(&pages.seen, nodes)?;
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

pub(super) fn time(time: &VectorTime, nodes: usize) -> Checked {
    match time.nodes() == nodes {
        true => Ok(()),
        false => Err("a vector time of a cluster of another size"),
    }
}

pub(super) fn elements(elements: &Elements) -> Checked {
    match elements.first.checked_add(elements.count) {
        Some(_) if elements.count > 0 => Ok(()),
        _ => Err("no elements, or elements beyond every array"),
    }
}

pub(super) fn bytes_of(of: &Elements, bytes: u64) -> Checked {
    elements(of)?;
    match bytes > 0 && bytes.is_multiple_of(of.count) {
        true => Ok(()),
        false => Err("elements that are not all of one length"),
    }
}

pub(super) fn wanted(wanted: usize) -> Checked {
    match (1..=MOST_WANTED).contains(&wanted) {
        true => Ok(()),
        false => Err("a fetch of nothing, or of more than one message may ask for"),
    }
}

/// What makes no sense in a fetch.
pub(crate) fn fetch(fetch: &Fetch, nodes: usize) -> Checked {
    let Fetch {
        wanted: all,
        beside,
        follow,
        ..
    } = fetch;
    wanted(all.len())?;
    if all.len() < usize::from(*beside) {
        return Err("a fetch with more objects beside those missed than there are");
    }
    if follow.references.len() > Follow::MOST_TYPES || usize::from(follow.most) > MOST_ALONG {
        return Err("a fetch along with which more should come than goes along");
    }
    versions(all.iter().map(|it| it.need), nodes)
}

/// What makes no sense in its reply.
pub(crate) fn fetch_reply<R>(reply: &FetchReply<R>, nodes: usize) -> Checked {
    versions(reply.sent.iter().map(|sent| sent.version), nodes)
}

/// Whether a run of so many nodes may come to a version.
pub(crate) fn may_be(Version { lamport, node }: Version, nodes: usize) -> bool {
    lamport < LAMPORT_END && node.index() < nodes
}

pub(super) fn versions(mut versions: impl Iterator<Item = Version>, nodes: usize) -> Checked {
    match versions.all(|version| may_be(version, nodes)) {
        true => Ok(()),
        false => Err("a version of a node that is not in the cluster, or that no run reaches"),
    }
}

fn check_nodes(
    mut them: impl Iterator<Item = NodeId>,
    nodes: usize,
    what: &'static str,
) -> Checked {
    match them.all(|node| node.index() < nodes) {
        true => Ok(()),
        false => Err(what),
    }
}

pub(super) fn waiters<'a>(waiters: impl IntoIterator<Item = &'a Waiter>, nodes: usize) -> Checked {
    let what = "a waiter that is not in the cluster";
    check_nodes(waiters.into_iter().map(|waiter| waiter.node), nodes, what)
}

pub(super) fn probe(probe: &DeadlockProbe, nodes: usize) -> Checked {
    let edges = &probe.edges;
    let rounds = || edges.first.iter().chain([&edges.round]);
    let most = nodes * (2 + MOST_BEGUN + MOST_WAITING);
    if rounds().any(|round| round.waits.len() > most) {
        return Err("more waits than there may be threads and processes");
    }
    // In the first round nodes answer about the wait of the thread that asks.
    let asked = edges.first.as_ref().map_or(1, |first| first.waits.len());
    let mut places = edges.keepers.iter().map(|keeper| keeper.wait);
    let places_are_sound = places.all(|place| (place as usize) < asked)
        && edges.ending.iter().all(|place| (*place as usize) < asked);
    let are_few = edges.keepers.len() <= asked * nodes && edges.ending.len() <= asked * nodes;
    if !(places_are_sound && are_few && probe.made.len() <= asked) {
        return Err("an answer about waits that were not asked about");
    }
    if edges.is_over && edges.first.is_none() {
        return Err("a probe that is over after one round");
    }
    let keepers = edges.keepers.iter().map(|keeper| keeper.by.node);
    let what = "a keeper, or a lost node, that is not in the cluster";
    check_nodes(keepers.chain(edges.without.iter().copied()), nodes, what)?;
    let waits = rounds().flat_map(|round| &round.waits);
    waiters(waits.chain([&edges.asker]), nodes)
}

pub(crate) fn round(said: &BarrierRound, nodes: usize) -> Checked {
    if u32::from(said.round) >= rounds(nodes) {
        return Err("a round that a barrier of so many nodes has not");
    }
    if said.round > 0 && said.site.is_some() {
        return Err("a place of the program in a round that says none");
    }
    Ok(())
}

pub(super) fn fetch_elements(all: &[Wanted<Elements>], beside: u16, nodes: usize) -> Checked {
    wanted(all.len())?;
    if all.len() < usize::from(beside) {
        return Err("a fetch with more elements beside those missed than there are");
    }
    versions(all.iter().map(|it| it.need), nodes)?;
    all.iter().try_for_each(|it| elements(&it.region))
}

pub(super) fn freed_by(by: &Option<NodeId>, nodes: usize) -> Checked {
    let what = "an object freed by a node that is not in the cluster";
    check_nodes(by.iter().copied(), nodes, what)
}

pub(super) fn applied(applied: &Applied, nodes: usize) -> Checked {
    let writers = applied.iter().map(|(node, _)| *node);
    check_nodes(
        writers,
        nodes,
        "changes of a node that is not in the cluster",
    )
}

pub(super) fn diffs(diffs: &[SentDiff]) -> Checked {
    match diffs.iter().all(|diff| diff.lamport < LAMPORT_END) {
        true => Ok(()),
        false => Err("a Lamport time that no run reaches"),
    }
}

pub(super) fn request(requester: NodeId, at: &VectorTime, nodes: usize) -> Checked {
    match requester.index() < nodes {
        true => time(at, nodes),
        false => Err("a requester that is not in the cluster"),
    }
}

pub(super) fn granted(
    news: &WriteNotices,
    waiting: &Conditions<u64, NodeId>,
    nodes: usize,
) -> Checked {
    let waiting = waiting.waiters().iter().map(|(_, node)| *node);
    check_nodes(waiting, nodes, "a waiter that is not in the cluster")?;
    news.check(nodes)
}

pub(super) fn untold(of: &Untold, nodes: usize) -> Checked {
    let what = "an interval seen by a node that is not in the cluster";
    check_nodes([of.by].into_iter(), nodes, what)
}

pub(super) fn raced(raced: &Raced) -> Checked {
    raced.elements().as_ref().map_or(Ok(()), elements)
}

pub(super) fn gossiped(gossip: &Gossip, carrier: &Message, nodes: usize) -> Checked {
    match carrier.can_piggyback() {
        true => gossip.check(nodes).and_then(|()| carrier.check(nodes)),
        false => Err("gossip on a message that carries none"),
    }
}

pub(super) fn after(delivered: u64, carrier: &Message, nodes: usize) -> Checked {
    match delivered > 0 && carrier.passes_order_on() {
        true => carrier.check(nodes),
        false => Err("an order beside a message that passes none on"),
    }
}
