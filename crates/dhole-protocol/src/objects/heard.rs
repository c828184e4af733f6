//! What operations have told a node of intervals, and its worker may not have seen.
//!
//! Objects are used while the worker computes, and operations on them carry write notices. Notices
//! must not take effect before the worker's next operation, and may have to be told to others
//! before that: so they are kept here. Whoever executes an operation is told everything that those
//! told who executed one here before, which is all that happened before in the object's order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use dhole_model::{NodeId, VectorTime};

use crate::{Interval, News};

/// The intervals that operations told of, and that someone may not have seen.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Heard {
    time: VectorTime,
    lamport: u64,
    intervals: BTreeMap<NodeId, VecDeque<Arc<Interval>>>,
}

impl Heard {
    pub fn new(nodes: usize) -> Heard {
        Heard {
            time: VectorTime::zero(nodes),
            lamport: 0,
            intervals: BTreeMap::new(),
        }
    }

    /// What was heard of, all in all.
    pub fn time(&self) -> &VectorTime {
        &self.time
    }

    /// Takes what an operation tells. Intervals that are missing before those that it tells are
    /// known to all: a log forgets no others.
    pub fn hear(&mut self, news: &News) {
        for interval in &news.intervals {
            if interval.index > self.time.of(interval.node) {
                self.time.see(interval.node, interval.index);
                let of_node = self.intervals.entry(interval.node).or_default();
                of_node.push_back(Arc::clone(interval));
            }
        }
        self.time.merge(&news.time);
        self.lamport = self.lamport.max(news.lamport);
    }

    /// What someone who has seen `time`, or nothing, has not heard.
    pub fn since(&self, time: Option<&VectorTime>) -> Option<Arc<News>> {
        let nothing = VectorTime::zero(self.time.nodes());
        let time = time.unwrap_or(&nothing);
        if time.covers(&self.time) {
            return None;
        }
        let of_nodes = self.intervals.iter();
        let intervals = of_nodes.flat_map(|(node, intervals)| {
            let seen = time.of(*node);
            let first = intervals.partition_point(|interval| interval.index <= seen);
            intervals.range(first..).cloned()
        });
        Some(Arc::new(News {
            time: self.time.clone(),
            lamport: self.lamport,
            intervals: intervals.collect(),
        }))
    }

    /// Forgets what every node has seen.
    pub fn forget_up_to(&mut self, time: &VectorTime) {
        self.intervals.retain(|node, intervals| {
            let seen = time.of(*node);
            while intervals.front().is_some_and(|first| first.index <= seen) {
                intervals.pop_front();
            }
            !intervals.is_empty()
        });
    }

    /// How many intervals are kept.
    pub fn kept(&self) -> usize {
        self.intervals.values().map(VecDeque::len).sum()
    }
}
