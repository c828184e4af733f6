//! What a node has seen of intervals, what it keeps of them, and what it tells others.
//!
//! Intervals know no protocol: what each wrote, freed and has attached is carried here, and read
//! by the protocols. A record is kept until all nodes have seen it. They say so at barriers, and
//! by gossip on lock messages.

use std::sync::Arc;

use dhole_model::{IntervalIndex, NodeId, VectorTime, Version};

use crate::error::ProtocolError;
use crate::sync::collection::{Collector, Gossip};
use crate::sync::interval_log::{IntervalLog, LogLimits};
use crate::sync::notice_delta::{Bases, Record};
use crate::{Interval, WriteNotices};

/// One node's intervals, and those of others that it has heard of.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Intervals {
    me: NodeId,
    /// The intervals whose notices were applied here, our own among them.
    time: VectorTime,
    lamport: u64,
    seen_by_all: VectorTime,
    log: IntervalLog,
    bases: Bases,
    collector: Collector,
}

impl Intervals {
    pub fn new(me: NodeId, nodes: usize, limits: LogLimits) -> Intervals {
        Intervals {
            me,
            time: VectorTime::zero(nodes),
            lamport: 0,
            seen_by_all: VectorTime::zero(nodes),
            log: IntervalLog::new(nodes, limits),
            bases: Bases::new(nodes, limits.reach),
            collector: Collector::new(me, nodes),
        }
    }

    /// What this node has seen.
    #[inline]
    pub fn time(&self) -> &VectorTime {
        &self.time
    }

    /// What this node has seen, the interval among it that is going on.
    pub fn open_time(&self) -> VectorTime {
        let mut time = self.time.clone();
        time.see(self.me, self.open());
        time
    }

    /// The number of the interval that is going on.
    pub fn open(&self) -> IntervalIndex {
        self.time.of(self.me) + 1
    }

    /// This node's Lamport time.
    pub fn lamport(&self) -> u64 {
        self.lamport
    }

    /// This node has seen something of that Lamport time, told of it or not: what it writes next
    /// is newer.
    #[inline]
    pub fn sees(&mut self, lamport: u64) {
        self.lamport = self.lamport.max(lamport);
    }

    /// What all nodes have seen.
    pub fn seen_by_all(&self) -> &VectorTime {
        &self.seen_by_all
    }

    /// Whether all nodes have seen what this one has.
    pub fn are_known_to_all(&self) -> bool {
        self.seen_by_all.covers(&self.time)
    }

    /// The version of what is written in the interval that is going on.
    pub fn open_version(&self) -> Version {
        Version {
            lamport: self.lamport + 1,
            node: self.me,
        }
    }

    /// Ends the interval that is going on: its number, and its version.
    pub fn end(&mut self) -> (IntervalIndex, Version) {
        let (index, version) = (self.open(), self.open_version());
        self.lamport = version.lamport;
        self.time.see(self.me, index);
        (index, version)
    }

    /// Keeps the interval that has ended.
    pub fn keep_own(&mut self, interval: Interval) {
        let reduced = self.bases.reduce(&interval).map(Arc::new);
        self.keep(Record::new(Arc::new(interval), reduced));
    }

    /// Another node's interval is seen.
    pub fn see(&mut self, interval: &Interval) {
        self.time.see(interval.node, interval.index);
    }

    /// Keeps an interval for others to be told of it, and of later ones against it.
    pub fn keep(&mut self, record: Record) {
        self.bases.keep(&record.whole);
        self.log.push(record);
    }

    /// How many intervals are kept for nodes that may not have seen them.
    pub fn kept(&self) -> usize {
        self.log.len()
    }

    /// Everything known here that a node which has seen `time` lacks.
    pub fn since(&self, time: &VectorTime) -> WriteNotices {
        self.tell(self.log.since(time).collect())
    }

    /// Our own intervals from number `index` on.
    pub fn own_from(&self, index: IntervalIndex) -> WriteNotices {
        self.tell(self.log.of_node_from(self.me, index).cloned().collect())
    }

    fn tell(&self, intervals: Vec<Arc<Interval>>) -> WriteNotices {
        WriteNotices {
            time: self.time.clone(),
            lamport: self.lamport,
            intervals,
        }
    }

    /// What a releaser tells of that is news here, whole, if it follows on what is known without
    /// a gap.
    pub fn check(&self, notices: &WriteNotices) -> Result<Vec<Record>, &'static str> {
        let (mut time, mut records) = (self.time.clone(), Vec::new());
        for interval in &notices.intervals {
            let seen = time.of(interval.node);
            if interval.node == self.me && interval.index > seen {
                return Err("an interval of this node that it has not ended");
            }
            if interval.first > seen && interval.first - seen != 1 {
                return Err("an interval is missing");
            }
            if interval.index > seen {
                records.push(self.bases.restore(interval, &records)?);
                time.see(interval.node, interval.index);
            }
        }
        match time.covers(&notices.time) {
            true => Ok(records),
            false => Err("the newest interval is missing"),
        }
    }

    /// Whether what a node tells at a barrier are its own intervals, without a gap, and no more of
    /// ours than there are. What its processes did since may have been seen here before.
    pub fn check_own(&self, from: NodeId, notices: &WriteNotices) -> Result<(), &'static str> {
        let (mut seen, mut last) = (self.time.of(from), 0);
        for interval in &notices.intervals {
            if interval.node != from || (interval.first > seen && interval.first - seen != 1) {
                return Err("an interval is missing");
            }
            (seen, last) = (seen.max(interval.index), last.max(interval.index));
        }
        // Who tells of nothing may have been overtaken by what its processes told since.
        let told = notices.time.of(from);
        let newest = if last == 0 {
            told <= seen
        } else {
            told == last
        };
        match newest && notices.time.of(self.me) <= self.time.of(self.me) {
            true => Ok(()),
            false => Err("the newest interval is missing"),
        }
    }

    /// All have met at a barrier and told each other everything: forgets the intervals, which
    /// every node has seen. What was told there ends with `told`; processes of this node may have
    /// gone on since it arrived.
    pub fn met(&mut self, told: &VectorTime) {
        self.log.forget_up_to(told);
        self.seen_by_all.merge(told);
    }

    /// What a message to another node should tell it about what can be collected.
    pub fn gossip_for(&mut self, to: NodeId) -> Option<Arc<Gossip>> {
        if self.log.is_long() {
            self.collector.report(&self.time);
        }
        self.collector.gossip_for(to)
    }

    /// Whether what another node says of what can be collected may be true.
    pub fn check_gossip(&self, from: NodeId, gossip: &Gossip) -> Result<(), ProtocolError> {
        let checked = self.collector.check(gossip, &self.time);
        checked.map_err(|what| ProtocolError::BadMessage { from, what })
    }

    /// Takes gossip that was [checked](Intervals::check_gossip), and drops what all have seen: up
    /// to the time that is returned.
    pub fn hear(&mut self, gossip: &Gossip) -> &VectorTime {
        self.collector.hear(gossip, &self.time);
        self.log.forget_up_to(self.collector.floor());
        self.seen_by_all.merge(self.collector.floor());
        self.collector.floor()
    }
}
