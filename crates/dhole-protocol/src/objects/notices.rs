//! What operations have told a node of intervals, and its worker may not have seen.
//!
//! Objects are used while the worker computes, and operations on them carry write notices. Notices
//! must not take effect before the worker's next operation, and may have to be told to others
//! before that: so they are kept here. Whoever executes an operation is told everything that those
//! told who executed one here before, which is all that happened before in the object's order.

use std::collections::VecDeque;
use std::sync::Arc;

use dhole_model::{NodeMap, VectorTime};

use crate::sync::compaction::keep_newest;
use crate::sync::notice_delta::Record;
use crate::{Interval, WriteNotices};

/// The intervals that operations told of, and that someone may not have seen.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct KnownNotices {
    time: VectorTime,
    lamport: u64,
    intervals: NodeMap<VecDeque<Arc<Interval>>>,
    /// What they take in memory, and with how much of it something is done about it.
    weight: usize,
    compact_at: usize,
}

/// As many intervals and ranges of objects are kept before any are left out.
const COMPACT_FROM: usize = 1024;

impl KnownNotices {
    pub fn new(nodes: usize) -> KnownNotices {
        KnownNotices {
            time: VectorTime::zero(nodes),
            lamport: 0,
            intervals: NodeMap::new(),
            weight: 0,
            compact_at: COMPACT_FROM,
        }
    }

    /// What was heard of, all in all.
    pub fn time(&self) -> &VectorTime {
        &self.time
    }

    /// Takes what an operation tells. Intervals that are missing before those that it tells are
    /// known to all: a log forgets no others.
    pub fn hear(&mut self, news: &WriteNotices) {
        for interval in &news.intervals {
            if interval.index > self.time.of(interval.node) {
                self.time.see(interval.node, interval.index);
                let of_node = self.intervals.get_or_default(interval.node);
                of_node.push_back(Arc::clone(interval));
                self.weight += interval.weight();
            }
        }
        if self.weight >= self.compact_at {
            self.compact();
        }
        self.time.merge(&news.time);
        self.lamport = self.lamport.max(news.lamport);
    }

    /// Whether no interval is kept.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Whether someone who has seen `time`, or nothing, has not heard something.
    pub fn is_more(&self, time: Option<&VectorTime>) -> bool {
        match time {
            Some(time) => !time.covers(&self.time),
            None => !self.time.is_zero(),
        }
    }

    /// What someone who has seen `time`, or nothing, has not heard.
    pub fn since(&self, time: Option<&VectorTime>) -> Option<Arc<WriteNotices>> {
        if !self.is_more(time) {
            return None;
        }
        let of_nodes = self.intervals.iter();
        let intervals = of_nodes.flat_map(|(node, intervals)| {
            let seen = time.map_or(0, |time| time.of(*node));
            let first = intervals.partition_point(|interval| interval.index <= seen);
            intervals.range(first..).cloned()
        });
        Some(Arc::new(WriteNotices {
            time: self.time.clone(),
            lamport: self.lamport,
            intervals: intervals.collect(),
        }))
    }

    /// Forgets what every node has seen.
    pub fn forget_up_to(&mut self, time: &VectorTime) {
        self.intervals.retain(|node, intervals| {
            let seen = time.of(*node);
            while let Some(first) = intervals.pop_front_if(|first| first.index <= seen) {
                self.weight -= first.weight();
            }
            !intervals.is_empty()
        });
    }

    /// Leaves each object in the newest interval of its node alone: while nobody says what all have
    /// seen, no more is kept than objects were written.
    fn compact(&mut self) {
        let all = self.intervals.values().flatten();
        let freed: Vec<_> = all.flat_map(|interval| &interval.freed).copied().collect();
        for intervals in self.intervals.values_mut() {
            // What is told against an earlier one says no more than what differs.
            if intervals.iter().any(|interval| interval.base.is_some()) {
                continue;
            }
            let records = intervals
                .drain(..)
                .map(|interval| Record::new(interval, None));
            let mut records = records.collect();
            keep_newest(&mut records, 0, &freed);
            *intervals = records.into_iter().map(|record| record.whole).collect();
        }
        let all = self.intervals.values().flatten();
        self.weight = all.map(|interval| interval.weight()).sum();
        self.compact_at = COMPACT_FROM.max(2 * self.weight);
    }

    /// How many intervals are kept.
    pub fn kept(&self) -> usize {
        self.intervals.values().map(VecDeque::len).sum()
    }
}
