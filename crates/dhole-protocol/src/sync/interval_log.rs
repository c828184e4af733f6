use std::collections::VecDeque;
use std::sync::Arc;

use dhole_model::{IntervalIndex, NodeId, VectorTime};

use crate::Interval;
use crate::sync::compaction::keep_newest;
use crate::sync::notice_delta::{Reach, Record};

/// The intervals of all nodes that someone may still have to be told of, by node and number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct IntervalLog {
    nodes: Vec<VecDeque<Record>>,
    records: usize,
    /// Records and ranges of objects in them: what the log takes in memory.
    weight: usize,
    limits: LogLimits,
    /// The weight at which records are made fewer.
    compact_at: usize,
}

/// How long the log of intervals grows before something is done about it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LogLimits {
    /// With so many records, a node asks the others what they have seen, on messages that are
    /// sent anyway, so that records which all have seen can be dropped.
    pub collect_from: usize,
    /// With so many records and ranges of objects, or twice what was left the last time, a node
    /// leaves each object in the newest record alone.
    pub compact_from: usize,
    /// Where diffs, twins and records of pages take so many bytes on a node, the next barrier
    /// collects them.
    pub collect_pages_from: u64,
    /// Against which earlier intervals one may be told.
    pub reach: Reach,
    /// How much a node keeps of what others have written or freed: chunks of states of objects
    /// that it has not allocated, arrays, segments of states of their elements, and ranges of
    /// freed ids. A message that tells of more is refused.
    pub most_heard: usize,
}

/// The chunks are 134 million objects, whose states take 3.2 GB.
const MOST_HEARD: usize = 1 << 21;

/// Half of the memory that a node of DOSA's cluster had.
const COLLECT_PAGES_FROM: u64 = 128 << 20;

impl Default for LogLimits {
    fn default() -> LogLimits {
        LogLimits {
            collect_from: 128,
            compact_from: 1024,
            collect_pages_from: COLLECT_PAGES_FROM,
            reach: Reach::of(0),
            most_heard: MOST_HEARD,
        }
    }
}

impl Interval {
    /// What it takes in memory: itself, and ranges of objects.
    pub(crate) fn weight(&self) -> usize {
        let pages = self.attached.pages().map_or(0, |pages| pages.ranges.len());
        let ranges = self.written.len() + self.freed.len();
        1 + ranges + self.elements.len() + pages + self.attached.notices().len()
    }
}

impl IntervalLog {
    pub fn new(nodes: usize, limits: LogLimits) -> IntervalLog {
        IntervalLog {
            nodes: vec![VecDeque::new(); nodes],
            records: 0,
            weight: 0,
            limits,
            compact_at: limits.compact_from,
        }
    }

    /// Adds an interval, which follows on the last one of its node.
    pub fn push(&mut self, record: Record) {
        let interval = &record.whole;
        let of_node = &mut self.nodes[interval.node.index()];
        debug_assert!(of_node.back().is_none_or(|last| {
            interval.first <= last.whole.index + 1 && last.whole.index < interval.index
        }));
        self.records += 1;
        self.weight += interval.weight();
        of_node.push_back(record);
        if self.weight >= self.compact_at {
            self.compact();
        }
    }

    /// How many intervals are kept.
    pub fn len(&self) -> usize {
        self.records
    }

    /// Whether there is so much that the others should be asked what they have seen.
    pub fn is_long(&self) -> bool {
        self.records >= self.limits.collect_from
    }

    fn compact(&mut self) {
        let whole = self.limits.reach.intervals as usize;
        let all = self.nodes.iter().flatten();
        let freed: Vec<_> = all.flat_map(|r| &r.whole.freed).copied().collect();
        let nodes = self.nodes.iter_mut();
        nodes.for_each(|records| keep_newest(records, whole, &freed));
        self.records = self.nodes.iter().map(VecDeque::len).sum();
        self.weight = self.nodes.iter().flatten().map(|r| r.whole.weight()).sum();
        self.compact_at = self.limits.compact_from.max(2 * self.weight);
    }

    /// The intervals of `node` with numbers of at least `index`, in order, for a node that has
    /// seen those before.
    pub fn of_node_from(
        &self,
        node: NodeId,
        index: IntervalIndex,
    ) -> impl Iterator<Item = &Arc<Interval>> {
        let of_node = &self.nodes[node.index()];
        let place = |index| of_node.partition_point(|record| record.whole.index < index);
        let is_whole = move |base| {
            let found = of_node.get(place(base));
            found.is_some_and(|record| record.whole.index == base && !record.compacted)
        };
        of_node
            .range(place(index)..)
            .map(move |record| record.told(|base| base < index || is_whole(base)))
    }

    /// The intervals that `time` has not seen.
    pub fn since(&self, time: &VectorTime) -> impl Iterator<Item = Arc<Interval>> {
        let nodes = (0..self.nodes.len()).map(NodeId::at);
        // It is another node's time, and may be any.
        nodes.flat_map(|node| {
            let index = time.of(node).saturating_add(1);
            self.of_node_from(node, index).cloned()
        })
    }

    /// Drops the intervals that `time` has seen.
    pub fn forget_up_to(&mut self, time: &VectorTime) {
        for (node, of_node) in self.nodes.iter_mut().enumerate() {
            let seen = time.of(NodeId::at(node));
            while let Some(first) = of_node.front().filter(|first| first.whole.index <= seen) {
                self.records -= 1;
                self.weight -= first.whole.weight();
                of_node.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Attached;

    fn interval(node: u16, index: u32) -> Record {
        let whole = Interval {
            node: NodeId(node),
            first: index,
            index,
            lamport: 9,
            written: vec![],
            base: None,
            elements: vec![],
            freed: vec![],
            attached: Attached::Nothing,
        };
        Record::new(Arc::new(whole), None)
    }

    #[test]
    fn a_node_is_told_just_what_it_has_not_seen() {
        let mut log = IntervalLog::new(2, LogLimits::default());
        for (node, index) in [(0, 1), (0, 2), (1, 1), (0, 3)] {
            log.push(interval(node, index));
        }
        let mut time = VectorTime::zero(2);
        time.see(NodeId(0), 1);
        let told: Vec<_> = log.since(&time).map(|i| (i.node.0, i.index)).collect();
        assert_eq!(told, [(0, 2), (0, 3), (1, 1)]);
        log.forget_up_to(&time);
        let told: Vec<_> = log.since(&time).map(|i| (i.node.0, i.index)).collect();
        assert_eq!(
            told,
            [(0, 2), (0, 3), (1, 1)],
            "what was forgotten had been seen"
        );
        assert_eq!(log.of_node_from(NodeId(0), 3).count(), 1);
    }
}
