//! The division of space among the nodes that build the tree: node `n` has the keys from the `n`-th
//! start to the next.

use std::ops::Range;

use super::objects::Cut;
use crate::place::{KEYS, Place, Root};

/// Cuts that a node should make in its part, for the next division to choose from.
const CUTS_PER_NODE: u64 = 16;

/// The parts of all nodes. Ranges may be empty.
#[derive(Clone, PartialEq, Debug)]
pub struct Parts {
    /// Where the parts of nodes 1, 2, ... start, in ascending order.
    starts: Vec<u64>,
}

impl Parts {
    /// The parts that these starts of nodes 1, 2, ... make in the cube `now`, when they were
    /// chosen in the cube `then`.
    pub fn new(starts: &[u64], then: Root, now: Root) -> Parts {
        let mut starts = starts.to_vec();
        if then != now {
            starts
                .iter_mut()
                .for_each(|start| *start = now.key(then.corner(*start)));
            starts.sort_unstable();
        }
        Parts { starts }
    }

    /// Which node's part a key is in.
    #[inline]
    pub fn node_of(&self, key: u64) -> usize {
        self.starts.partition_point(|&start| start <= key)
    }

    /// The keys of a node's part.
    pub fn part(&self, node: usize) -> Range<u64> {
        let start = if node == 0 { 0 } else { self.starts[node - 1] };
        start..self.starts.get(node).copied().unwrap_or(KEYS)
    }
}

/// Cuts sorted places, with what each costs, into runs of about equal cost, of which there are
/// sixteen to a fair share of `total`. Where there is a choice, a run starts at the
/// first key of a large cube, so that the part which begins there has few branches.
pub fn cuts(places: &[(Place, u64)], start: u64, total: u64, nodes: usize) -> Vec<Cut> {
    let share = (total / (CUTS_PER_NODE * nodes as u64)).max(1);
    let mut cuts = Vec::new();
    let (mut start, mut rest) = (start, places);
    while !rest.is_empty() {
        let reaching = |cost: u64| {
            let mut sum = 0;
            rest.iter().position(|(_, of_one)| {
                sum += of_one;
                sum >= cost
            })
        };
        let end = match (reaching(share - share / 4), reaching(share + share / 4)) {
            (Some(first), Some(last)) if rest[first].0.key < rest[last].0.key => {
                Some(roundest(rest[first].0.key, rest[last].0.key))
            }
            _ => None,
        };
        let count = end.map_or(rest.len(), |end| rest.partition_point(|(p, _)| p.key < end));
        let (run, after) = rest.split_at(count);
        cuts.push(Cut {
            start,
            cost: run.iter().map(|(_, cost)| cost).sum(),
        });
        start = end.unwrap_or(start);
        rest = after;
    }
    cuts
}

/// Chooses from the cuts of all nodes, in order, where the parts of nodes 1, 2, ... start, so
/// that all cost about the same.
pub fn divide(cuts: &[Cut], nodes: usize) -> Vec<u64> {
    let total: u64 = cuts.iter().map(|cut| cut.cost).sum();
    let mut before = 0;
    let mut starts = Vec::with_capacity(nodes - 1);
    for cut in cuts {
        // The nearest cut to each share, not the first one past it.
        let middle = before + cut.cost / 2;
        while starts.len() + 1 < nodes && middle >= share(total, starts.len() + 1, nodes) {
            starts.push(cut.start);
        }
        before += cut.cost;
    }
    starts.resize(nodes - 1, KEYS);
    starts
}

/// What comes before node `node`'s share of `total`.
pub fn share(total: u64, node: usize, nodes: usize) -> u64 {
    (u128::from(total) * node as u128 / nodes as u128) as u64
}

/// The key above `below` and up to `up_to` with the most zeros at its end.
fn roundest(below: u64, up_to: u64) -> u64 {
    let differ = below ^ up_to;
    up_to & !((1u64 << differ.ilog2()) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roundest_key_of_a_range_starts_the_largest_cube() {
        assert_eq!(roundest(0b0101, 0b0110), 0b0110);
        assert_eq!(roundest(0b0101, 0b1011), 0b1000);
        assert_eq!(roundest(6, 7), 7);
    }

    #[test]
    fn every_key_is_in_the_part_of_its_node() {
        let root = Root::around(0.5);
        let parts = Parts::new(&[10, 10, 500], root, root);
        for (key, node) in [(0, 0), (9, 0), (10, 2), (499, 2), (500, 3), (KEYS - 1, 3)] {
            assert_eq!(parts.node_of(key), node);
            assert!(parts.part(node).contains(&key));
        }
        assert!(parts.part(1).is_empty());
    }

    #[test]
    fn parts_cost_about_the_same() {
        let places: Vec<(Place, u64)> = (0..10_000)
            .map(|n| {
                (
                    Place {
                        key: u64::from(n) * 977,
                        body: n,
                    },
                    3,
                )
            })
            .collect();
        let cuts = cuts(&places, 0, 30_000, 8);
        assert_eq!(cuts.iter().map(|cut| cut.cost).sum::<u64>(), 30_000);
        let root = Root::around(0.5);
        let parts = Parts::new(&divide(&cuts, 8), root, root);
        for node in 0..8 {
            let part = parts.part(node);
            let bodies = places
                .iter()
                .filter(|(place, _)| part.contains(&place.key))
                .count();
            assert!(
                (1100..1400).contains(&bodies),
                "node {node} has {bodies} of 10000"
            );
        }
    }

    #[test]
    fn a_root_that_doubles_keeps_bodies_where_they_are() {
        let (small, large) = (Root::around(0.5), Root::around(1.5));
        let at = |x: f64| [x, 0.3 * x, -0.2];
        let starts = [small.key(at(-0.2)), small.key(at(0.4))];
        let parts = Parts::new(&starts, small, large);
        assert_eq!(
            [-0.9, -0.1, 0.9].map(|x| parts.node_of(large.key(at(x)))),
            [0, 1, 2]
        );
    }
}
