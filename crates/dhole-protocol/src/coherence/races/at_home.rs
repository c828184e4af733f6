//! Races for objects and elements of arrays that have a home, found there, leaf by leaf.
//!
//! A flush says what its node had seen when it wrote. The home keeps who wrote each leaf last, and
//! in which interval: two flushes of one leaf race if the later one had not seen the interval of
//! the earlier one. Whoever saw it saw all writes of the leaf before it, unless they raced and
//! were told of, so the last one is enough (Flanagan and Freund: *FastTrack*, section 3). Flushes
//! come home in an order that extends happens-before, for a release waits for them.

use std::ops::Range;

use dhole_model::{IntervalIndex, NodeId, Oid, OidRange, Segments, SortedMap, VectorTime};

use super::SiteId;

/// The most segments of leaves whose last writers are kept. What is written beyond them is not
/// looked at until some are forgotten.
const MOST_SEGMENTS: usize = 1 << 16;

/// The last write of a leaf: which interval of which node, and where in the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub(super) struct Last {
    pub node: NodeId,
    /// 0 where nobody wrote the leaf, or everybody has seen it.
    pub index: IntervalIndex,
    pub site: SiteId,
}

impl Last {
    fn is_seen_by(self, node: NodeId, time: &VectorTime) -> bool {
        self.index == 0 || self.node == node || self.index <= time.of(self.node)
    }

    fn is_beside(self, other: Last) -> bool {
        (self.node, self.site) == (other.node, other.site)
    }
}

/// Who last wrote the leaves of the objects, and the elements of the arrays, at home here.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct HomeWrites {
    objects: SortedMap<Oid, Segments<Last>>,
    segments: usize,
}

impl HomeWrites {
    /// An interval that had seen `time` wrote these leaves, as places in the object, or these
    /// elements. Those that race with an earlier write, and with which, joined where neighbours
    /// were written from one place of one node.
    pub fn wrote(
        &mut self,
        oid: Oid,
        leaves: impl Iterator<Item = Range<u64>>,
        by: Last,
        time: &VectorTime,
    ) -> Vec<(Range<u64>, Last)> {
        let mut raced: Vec<(Range<u64>, Last)> = Vec::new();
        for range in leaves {
            if self.segments >= MOST_SEGMENTS {
                break;
            }
            let object = self.objects.get_or_default(oid);
            self.segments -= object.len();
            object.update(range, |part, last| {
                if !last.is_seen_by(by.node, time) {
                    match raced.last_mut() {
                        Some((before, of)) if before.end == part.start && of.is_beside(*last) => {
                            before.end = part.end;
                        }
                        _ => raced.push((part, *last)),
                    }
                }
                *last = by;
            });
            self.segments += object.len();
        }
        raced
    }

    /// Forgets what every node has seen that writes from now on: all that happened before `time`.
    pub fn forget_up_to(&mut self, time: &VectorTime) {
        self.objects.retain(|_, object| {
            object.update(0..u64::MAX, |_, last| {
                if last.index <= time.of(last.node) {
                    *last = Last::default();
                }
            });
            !object.is_empty()
        });
        self.segments = self.objects.values().map(Segments::len).sum();
    }

    /// Objects or arrays were freed, or have no home any more.
    pub fn forget(&mut self, ids: OidRange) {
        while let Some((&oid, object)) = self.objects.range(ids.first..=ids.last()).next() {
            self.segments -= object.len();
            self.objects.remove(&oid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(node: u16, index: u32) -> Last {
        let (node, site) = (NodeId(node), SiteId::default());
        Last { node, index, site }
    }

    fn seen(of: &[u32]) -> VectorTime {
        let mut time = VectorTime::zero(of.len());
        (0..)
            .zip(of)
            .for_each(|(node, index)| time.see(NodeId(node), *index));
        time
    }

    #[test]
    fn a_write_races_with_the_last_one_of_the_leaf_unless_it_has_seen_it() {
        let (mut writes, oid) = (HomeWrites::default(), Oid(64));
        let mut wrote = |leaves: Range<u64>, last, time: &[u32]| {
            writes.wrote(oid, [leaves].into_iter(), last, &seen(time))
        };
        assert_eq!(wrote(0..8, by(1, 1), &[0, 1, 0]), []);
        assert_eq!(wrote(8..16, by(2, 1), &[0, 0, 1]), [], "another leaf");
        assert_eq!(wrote(4..8, by(2, 2), &[0, 0, 2]), [(4..8, by(1, 1))]);
        assert_eq!(wrote(0..16, by(0, 1), &[1, 1, 2]), [], "it has seen both");
        assert_eq!(wrote(0..4, by(1, 2), &[0, 2, 2]), [(0..4, by(0, 1))]);
    }

    #[test]
    fn a_write_over_those_of_several_races_with_each_and_once_with_one_place() {
        let (mut writes, oid) = (HomeWrites::default(), Oid(64));
        let mut wrote = |leaves: Range<u64>, last, time: &[u32]| {
            writes.wrote(oid, [leaves].into_iter(), last, &seen(time))
        };
        assert_eq!(wrote(0..2, by(1, 1), &[0, 1, 0]), []);
        assert_eq!(wrote(2..4, by(1, 2), &[0, 2, 0]), []);
        assert_eq!(wrote(4..6, by(2, 1), &[0, 0, 1]), []);
        let raced = [(1..4, by(1, 1)), (4..5, by(2, 1))];
        assert_eq!(wrote(1..5, by(0, 1), &[1, 0, 0]), raced);
    }

    #[test]
    fn what_all_have_seen_is_forgotten() {
        let (mut writes, oid) = (HomeWrites::default(), Oid(64));
        for (node, leaf) in [(0, 0..4), (1, 4..8)] {
            writes.wrote(oid, [leaf].into_iter(), by(node, 3), &seen(&[0, 0]));
        }
        writes.forget_up_to(&seen(&[3, 2]));
        assert_eq!(writes.segments, 2, "node 1's, and what follows it");
        writes.forget_up_to(&seen(&[3, 3]));
        assert_eq!(writes, HomeWrites::default());
    }
}
