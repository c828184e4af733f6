//! The central barrier: every node tells node 0 that it has arrived, and is told by node 0 that
//! all have: 2(n-1) messages. Both carry the write notices that the receiver lacks. Where no node
//! is expected to have any, a barrier of the program begins with [`rounds`].

mod rounds;

use dhole_model::{CallSite, Coherence, IntervalIndex, NodeId, Oid, OidRange, VectorTime};

use crate::error::ProtocolError;
use crate::{BarrierId, Untold, Waiter, WaitingFor, WriteNotices};
pub use rounds::BarrierRound;
use rounds::Rounds;
pub(crate) use rounds::rounds;

/// The node that manages the barrier.
pub(crate) const MANAGER: NodeId = NodeId(0);

/// One node's view of the barrier, and, on node 0, who has arrived.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Barrier {
    /// Barriers and collectives of the program passed so far.
    passed: u64,
    /// The barrier this node waits at.
    waiting_at: Option<BarrierId>,
    /// Our first interval that was not told at a barrier that is over.
    first_untold: IntervalIndex,
    /// Our newest interval that was told at the barrier this node waits at.
    told: IntervalIndex,
    /// How often this node has told there what it did.
    arrivals: u32,
    /// Where the program arrived there.
    site: Option<CallSite>,
    /// At the manager: who has arrived.
    arrived: Vec<Option<Arrival>>,
    rounds: Rounds,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Arrival {
    barrier: BarrierId,
    news: WriteNotices,
    site: CallSite,
    /// How often the node has told of itself.
    count: u32,
    /// What it knew when it told so first, others may lack.
    has_news: bool,
}

impl BarrierId {
    /// Its number among the barriers and collectives of the program.
    pub(crate) fn number(self) -> u64 {
        match self {
            BarrierId::Program(number)
            | BarrierId::Once(number)
            | BarrierId::Collection(number)
            | BarrierId::Switch { number, .. }
            | BarrierId::SwitchArray { number, .. }
            | BarrierId::End(number) => number,
        }
    }
}

impl Arrival {
    /// The newest interval of a node that it tells of.
    fn told(&self, node: NodeId) -> IntervalIndex {
        self.news.time.of(node)
    }
}

/// What an arrival leads to.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// Others are still missing.
    NotAll,
    /// All are here; what each of them lacks, in the order of the nodes, and how many of the next
    /// barriers begin with rounds.
    All(BarrierId, Vec<WriteNotices>, u32),
    /// All wait, but not for the same barrier, so none will ever go on.
    Apart(Vec<Waiter>),
}

impl Barrier {
    pub fn new(me: NodeId, nodes: usize) -> Barrier {
        Barrier {
            passed: 0,
            waiting_at: None,
            first_untold: 1,
            told: 0,
            arrivals: 0,
            site: None,
            arrived: vec![None; nodes],
            rounds: Rounds::new(me, nodes),
        }
    }

    /// The worker arrives: the barrier's name, and the first of its own intervals to tell.
    pub fn arrive(&mut self, once: bool, finish: bool) -> (BarrierId, IntervalIndex) {
        let barrier = match (finish, once) {
            (true, _) => BarrierId::End(self.passed),
            (false, true) => BarrierId::Once(self.passed),
            (false, false) => BarrierId::Program(self.passed),
        };
        self.waiting_at = Some(barrier);
        (barrier, self.first_untold)
    }

    /// As [`arrive`](Barrier::arrive), where objects change protocol.
    pub fn arrive_to_switch(
        &mut self,
        objects: OidRange,
        to: Coherence,
    ) -> (BarrierId, IntervalIndex) {
        let barrier = BarrierId::Switch {
            number: self.passed,
            objects,
            to,
        };
        self.waiting_at = Some(barrier);
        (barrier, self.first_untold)
    }

    /// As [`arrive`](Barrier::arrive), where an array changes protocol.
    pub fn arrive_to_switch_array(
        &mut self,
        array: Oid,
        to: Coherence,
    ) -> (BarrierId, IntervalIndex) {
        let barrier = BarrierId::SwitchArray {
            number: self.passed,
            array,
            to,
        };
        self.waiting_at = Some(barrier);
        (barrier, self.first_untold)
    }

    /// As [`arrive`](Barrier::arrive), where diffs are collected.
    pub fn arrive_to_collect(&mut self) -> (BarrierId, IntervalIndex) {
        let barrier = BarrierId::Collection(self.passed);
        self.waiting_at = Some(barrier);
        (barrier, self.first_untold)
    }

    /// What this node tells as it arrives ends with this interval.
    pub fn tells(&mut self, last: IntervalIndex, site: CallSite) {
        (self.told, self.arrivals, self.site) = (last, 1, Some(site));
    }

    /// If this node's processes did something since it arrived, of which `last` is the newest
    /// interval: the barrier, the first interval to tell, and where the program arrived. All that
    /// was told is told again, so that whatever comes last suffices.
    pub fn untold(&mut self, last: IntervalIndex) -> Option<(BarrierId, IntervalIndex, CallSite)> {
        if !self.has_untold(last) {
            return None;
        }
        let (barrier, site) = (self.waiting_at?, self.site?);
        self.told = last;
        self.arrivals += 1;
        Some((barrier, self.first_untold, site))
    }

    /// Whether this node has arrived at the manager and has ended intervals since that it has not
    /// told of. What its processes do while it waits in rounds is told when those end, or at the
    /// next barrier.
    #[inline]
    pub fn has_untold(&self, last: IntervalIndex) -> bool {
        last > self.told && self.site.is_some() && self.waiting_at.is_some() && !self.is_in_rounds()
    }

    /// At the manager: a node, perhaps this one, has arrived, or has more to tell since. For
    /// processes of a node that has arrived go on: who has seen what they did arrives with that,
    /// and the barrier is not over before they have told of it.
    pub fn arrived(
        &mut self,
        from: NodeId,
        barrier: BarrierId,
        (news, has_news): (WriteNotices, bool),
        site: CallSite,
    ) -> Result<Arrived, ProtocolError> {
        let bad = |what| ProtocolError::BadMessage { from, what };
        let passed = self.has_passed(barrier);
        let place = self.arrived.get_mut(from.index());
        match place.ok_or(bad("no such node"))? {
            // It tells of that at the next one, if it has not yet.
            _ if passed => return Ok(Arrived::NotAll),
            Some(before)
                if before.barrier == barrier && before.told(from) != news.time.of(from) =>
            {
                before.count += 1;
                if before.told(from) < news.time.of(from) {
                    before.news = news;
                }
            }
            Some(_) => return Err(bad("a second arrival at a barrier")),
            place => {
                *place = Some(Arrival {
                    barrier,
                    news,
                    site,
                    count: 1,
                    has_news,
                });
            }
        }
        if self.arrived.iter().any(Option::is_none) || self.lacks_what_was_seen() {
            return Ok(Arrived::NotAll);
        }
        let arrivals: Vec<Arrival> = self.arrived.iter_mut().filter_map(Option::take).collect();
        if arrivals.iter().all(|arrival| arrival.barrier == barrier) {
            let next = match barrier {
                BarrierId::Program(_) => {
                    let news = arrivals.iter().any(|arrival| arrival.has_news);
                    self.rounds.plan(news)
                }
                _ => 0,
            };
            return Ok(Arrived::All(barrier, departures(&arrivals), next));
        }
        let waiters = arrivals.iter().enumerate().map(|(node, arrival)| {
            let waiting_for = WaitingFor::Barrier(arrival.barrier);
            Waiter::of_worker(NodeId::at(node), waiting_for, arrival.site, 0)
        });
        Ok(Arrived::Apart(waiters.collect()))
    }

    /// Whether one has seen what the node that did it has not told of yet.
    fn lacks_what_was_seen(&self) -> bool {
        self.untold_by_others().next().is_some()
    }

    /// At the manager, when all have arrived: what somebody has seen and the node that did it has
    /// not told of, with that node. It is on its way, or somebody lies: if this takes long, the
    /// node is asked.
    pub fn untold_by_others(&self) -> impl Iterator<Item = (NodeId, Untold)> {
        let all = self.arrived.iter().all(Option::is_some);
        let arrivals = move || {
            let known = self.arrived.iter().filter(move |_| all).flatten();
            known.enumerate().map(|(node, own)| (NodeId::at(node), own))
        };
        arrivals().filter_map(move |(node, own)| {
            let (by, newest) = arrivals().max_by_key(|(_, arrival)| arrival.told(node))?;
            let (barrier, index) = (own.barrier, newest.told(node));
            let untold = Untold { barrier, by, index };
            (index > own.told(node)).then_some((node, untold))
        })
    }

    /// What this node answers when it is asked for such an interval, if it waits at the barrier:
    /// how often it has told there what it did. What it did since is told before it answers.
    pub fn arrivals_at(&self, barrier: BarrierId) -> Option<u32> {
        (self.waiting_at == Some(barrier)).then_some(self.arrivals)
    }

    /// At the manager: the answer of a node that was asked.
    pub fn told_again(
        &self,
        from: NodeId,
        of: Untold,
        ended: IntervalIndex,
        arrivals: u32,
    ) -> Result<(), ProtocolError> {
        let Untold { barrier, by, index } = of;
        let at = |node: NodeId| self.arrived.get(node.index()).and_then(Option::as_ref);
        // That barrier may be over; where it is not, whoever claims it may stand at another one.
        let own = at(from).filter(|own| own.barrier == barrier);
        let (Some(own), Some(claim)) = (own, at(by)) else {
            return Ok(());
        };
        let bad = |what| Err(ProtocolError::BadMessage { from, what });
        if claim.told(from) < index {
            return bad("an answer to what was not asked");
        }
        if ended < index {
            return Err(ProtocolError::NeverDone {
                by,
                barrier,
                of: from,
                claimed: index,
                ended,
            });
        }
        match own.told(from) < index && own.count >= arrivals {
            true => bad("an interval that it has ended, and has not told of at a barrier"),
            false => Ok(()),
        }
    }

    /// Whether this node waits at the barrier.
    pub fn check_departure(&self, barrier: BarrierId, from: NodeId) -> Result<(), ProtocolError> {
        if self.waiting_at != Some(barrier) {
            let what = "the departure from a barrier that this node does not wait at";
            return Err(ProtocolError::BadMessage { from, what });
        }
        Ok(())
    }

    /// The manager's departure says how many of the next barriers of the program begin with rounds,
    /// if this is one.
    pub fn told_next(&mut self, next: u32) {
        if let Some(BarrierId::Program(_)) = self.waiting_at {
            self.rounds.told_next(next);
        }
    }

    /// All have arrived; `last_told` is the newest of our own intervals that all know now.
    pub fn depart(&mut self, last_told: IntervalIndex) {
        let collects = matches!(self.waiting_at.take(), Some(BarrierId::Collection(_)));
        if !collects {
            self.passed += 1;
            self.rounds.passed();
        }
        self.first_untold = last_told + 1;
    }

    /// This node has passed a collective.
    pub fn pass(&mut self) {
        self.passed += 1;
        self.rounds.passed();
    }

    /// The number of what this node passes next.
    pub fn next_number(&self) -> u64 {
        self.passed
    }

    /// The barrier that this node waits at, and where the program arrived there.
    pub fn waits_at(&self) -> Option<(BarrierId, CallSite)> {
        let site = self.site.unwrap_or(CallSite::runtime("a barrier"));
        Some((self.waiting_at?, site))
    }

    /// Whether this node waits at a barrier.
    pub fn is_waiting(&self) -> bool {
        self.waiting_at.is_some()
    }

    /// Whether this node has gone on from there.
    pub fn has_passed(&self, barrier: BarrierId) -> bool {
        barrier.number() < self.passed
    }

    /// At the manager: whether a node has arrived at `barrier`, and all have not yet.
    pub fn has_arrived(&self, node: NodeId, barrier: BarrierId) -> bool {
        let arrival = self.arrived.get(node.index()).and_then(Option::as_ref);
        arrival.is_some_and(|arrival| arrival.barrier == barrier)
    }
}

/// What each node lacks once all have told what they did.
fn departures(arrivals: &[Arrival]) -> Vec<WriteNotices> {
    let mut time = VectorTime::zero(arrivals.len());
    arrivals
        .iter()
        .for_each(|arrival| time.merge(&arrival.news.time));
    let lamport = arrivals
        .iter()
        .map(|arrival| arrival.news.lamport)
        .max()
        .unwrap_or(0);
    let all = || arrivals.iter().flat_map(|arrival| &arrival.news.intervals);
    let lacking = |arrival: &Arrival| WriteNotices {
        time: time.clone(),
        lamport,
        intervals: all()
            .filter(|interval| interval.index > arrival.news.time.of(interval.node))
            .cloned()
            .collect(),
    };
    arrivals.iter().map(lacking).collect()
}
