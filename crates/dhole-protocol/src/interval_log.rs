use std::collections::VecDeque;
use std::sync::Arc;

use dhole_model::{IntervalIndex, NodeId, VectorTime};

use crate::Interval;

/// The intervals of all nodes that someone may still have to be told of, by node and number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct IntervalLog {
    nodes: Vec<VecDeque<Arc<Interval>>>,
}

impl IntervalLog {
    pub fn new(nodes: usize) -> IntervalLog {
        IntervalLog {
            nodes: vec![VecDeque::new(); nodes],
        }
    }

    /// Adds an interval, which follows on the last one of its node.
    pub fn push(&mut self, interval: Arc<Interval>) {
        let of_node = &mut self.nodes[interval.node.index()];
        debug_assert!(
            of_node
                .back()
                .is_none_or(|last| last.index + 1 == interval.index)
        );
        of_node.push_back(interval);
    }

    /// The intervals of `node` with numbers of at least `index`, in order.
    pub fn of_node_from(
        &self,
        node: NodeId,
        index: IntervalIndex,
    ) -> impl Iterator<Item = &Arc<Interval>> {
        let of_node = &self.nodes[node.index()];
        let skipped = of_node
            .front()
            .map_or(0, |first| index.saturating_sub(first.index));
        of_node.iter().skip(skipped as usize)
    }

    /// The intervals that `time` has not seen.
    pub fn since(&self, time: &VectorTime) -> impl Iterator<Item = Arc<Interval>> {
        (0..self.nodes.len())
            .map(NodeId::at)
            .flat_map(|node| self.of_node_from(node, time.of(node) + 1).cloned())
    }

    /// Drops the intervals that `time` has seen.
    pub fn forget_up_to(&mut self, time: &VectorTime) {
        for (node, of_node) in self.nodes.iter_mut().enumerate() {
            let seen = time.of(NodeId::at(node));
            while of_node.front().is_some_and(|first| first.index <= seen) {
                of_node.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(node: u16, index: u32) -> Arc<Interval> {
        Arc::new(Interval {
            node: NodeId(node),
            index,
            lamport: 9,
            written: vec![],
        })
    }

    #[test]
    fn a_node_is_told_just_what_it_has_not_seen() {
        let mut log = IntervalLog::new(2);
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
