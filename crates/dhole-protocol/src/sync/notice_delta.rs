//! Write-notice reduction: an interval that wrote much the same as an earlier one of its node is
//! told as the difference (DOSA, section 3.1).
//!
//! Every node keeps the last intervals of each node whole, so that it can make out a difference
//! against them: a *base* is never older than that. Whoever passes on what it was told of another
//! node passes the difference on.
//!
//! A base must be whole wherever the difference arrives. A log leaves its last intervals of each
//! node whole too when it is compacted, however long it is. So, by induction over messages, the
//! last intervals of each node that a node has seen came to it whole: they were among the last
//! ones of whoever told. A difference is told where its base is either one that the receiver has
//! seen, and then it is among its last, or goes in the same message, whole.

use std::collections::VecDeque;
use std::sync::Arc;

use dhole_model::{IntervalIndex, NodeId, Oid, OidRange};
use dhole_wire::Wire;

use crate::sync::interval::{Base, Interval};

/// An interval that a node may have to tell others of.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Record {
    /// Everything about it.
    pub whole: Arc<Interval>,
    /// The same, as the difference against an earlier one, where that is shorter.
    pub reduced: Option<Arc<Interval>>,
    /// Compaction has left something out, or made it stand for several.
    pub compacted: bool,
}

impl Record {
    pub fn new(whole: Arc<Interval>, reduced: Option<Arc<Interval>>) -> Record {
        Record {
            whole,
            reduced,
            compacted: false,
        }
    }

    /// The interval, to be changed by compaction: no other can be told against it any more.
    pub fn change(&mut self) -> &mut Interval {
        self.reduced = None;
        self.compacted = true;
        Arc::make_mut(&mut self.whole)
    }

    /// What to send to a node that has a base where `has_base` says so.
    pub fn told(&self, has_base: impl FnOnce(IntervalIndex) -> bool) -> &Arc<Interval> {
        let based =
            |reduced: &&Arc<Interval>| reduced.base.as_ref().is_some_and(|b| has_base(b.index));
        self.reduced.as_ref().filter(based).unwrap_or(&self.whole)
    }
}

/// The last intervals of each node, whole.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Bases {
    reach: Reach,
    nodes: Vec<VecDeque<Arc<Interval>>>,
}

/// Against which intervals one may be told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reach {
    /// The last so many of the same node; none, and all are told whole.
    pub intervals: u32,
    /// Those of them that wrote so many ranges of objects at least; what is shorter is kept
    /// nowhere for this.
    pub ranges: usize,
}

impl Reach {
    /// As far back as so many intervals.
    pub const fn of(intervals: u32) -> Reach {
        Reach {
            intervals,
            ranges: 4,
        }
    }
}

impl Bases {
    pub fn new(nodes: usize, reach: Reach) -> Bases {
        Bases {
            reach,
            nodes: vec![VecDeque::new(); nodes],
        }
    }

    /// Keeps the newest interval of its node, and forgets those that are too old now.
    pub fn keep(&mut self, whole: &Arc<Interval>) {
        let of_node = &mut self.nodes[whole.node.index()];
        let oldest = whole.index.saturating_sub(self.reach.intervals);
        while of_node.front().is_some_and(|base| base.index <= oldest) {
            of_node.pop_front();
        }
        if self.reach.intervals > 0 && whole.written.len() >= self.reach.ranges {
            of_node.push_back(Arc::clone(whole));
        }
    }

    fn find(&self, node: NodeId, index: IntervalIndex) -> Option<&Arc<Interval>> {
        self.nodes[node.index()]
            .iter()
            .find(|base| base.index == index)
    }

    /// The shortest way to tell of an interval that follows on those kept of its node, if that is
    /// shorter than telling it whole.
    pub fn reduce(&self, whole: &Interval) -> Option<Interval> {
        let of_node = self.nodes[whole.node.index()].iter().rev();
        let reduced = of_node
            .filter(|base| whole.index - base.index <= self.reach.intervals)
            .map(|base| against(whole, base));
        let shortest = reduced.min_by_key(Interval::wire_len)?;
        (shortest.wire_len() < whole.wire_len()).then_some(shortest)
    }

    /// The whole of what was told as a difference; `before` are the intervals told with it, whole.
    ///
    /// # Errors
    /// When its base is not known here.
    pub fn restore(&self, told: &Arc<Interval>, before: &[Record]) -> Result<Record, &'static str> {
        let Some(base) = &told.base else {
            return Ok(Record::new(Arc::clone(told), None));
        };
        let is_base = |one: &Interval| one.node == told.node && one.index == base.index;
        let near = before.iter().rev().take(self.reach.intervals as usize);
        let mut near = near.map(|record| &record.whole);
        let found = near
            .find(|one| is_base(one))
            .or_else(|| self.find(told.node, base.index));
        let found = found.ok_or("an interval told against one that is not known")?;
        let kept = minus(&found.written, &base.unwritten);
        let whole = Interval {
            written: plus(&kept, &told.written),
            base: None,
            ..Interval::clone(told)
        };
        Ok(Record::new(Arc::new(whole), Some(Arc::clone(told))))
    }
}

/// An interval as the difference against an earlier one.
fn against(whole: &Interval, base: &Interval) -> Interval {
    Interval {
        written: minus(&whole.written, &base.written),
        base: Some(Base {
            index: base.index,
            unwritten: minus(&base.written, &whole.written),
        }),
        elements: whole.elements.clone(),
        freed: whole.freed.clone(),
        attached: whole.attached.clone(),
        ..*whole
    }
}

fn end(range: &OidRange) -> u64 {
    range.first.0.saturating_add(u64::from(range.count))
}

/// The objects of the first list that are not in the second one; both are in ascending order.
fn minus(all: &[OidRange], without: &[OidRange]) -> Vec<OidRange> {
    let (mut left, mut without) = (Vec::new(), without.iter().peekable());
    let mut push = |first: u64, end: u64| {
        if first < end {
            left.push(OidRange {
                first: Oid(first),
                count: (end - first) as u32,
            });
        }
    };
    for range in all {
        let mut first = range.first.0;
        while let Some(cut) = without.next_if(|cut| end(cut) <= end(range)) {
            push(first, cut.first.0);
            first = first.max(end(cut));
        }
        let rest = without.peek().map_or(u64::MAX, |cut| cut.first.0);
        push(first, end(range).min(rest));
    }
    left
}

/// The objects of both lists, in ascending order and as few ranges as there can be.
fn plus(one: &[OidRange], other: &[OidRange]) -> Vec<OidRange> {
    let mut all = [one, other].concat();
    all.sort_unstable();
    all.dedup_by(|next, last| {
        let joined = (end(next).max(end(last))).saturating_sub(last.first.0);
        let joins = next.first.0 <= end(last) && joined <= u64::from(u32::MAX);
        if joins {
            last.count = joined as u32;
        }
        joins
    });
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Attached;

    fn interval(index: IntervalIndex, oids: &[u64]) -> Interval {
        let (mut written, mut oids) = (Vec::new(), oids.to_vec());
        oids.sort_unstable();
        oids.dedup();
        oids.iter()
            .for_each(|oid| OidRange::push(&mut written, Oid(*oid)));
        Interval {
            node: NodeId(0),
            first: index,
            index,
            lamport: 7,
            written,
            base: None,
            attached: Attached::Nothing,
            elements: vec![],
            freed: vec![],
        }
    }

    fn bases(reach: Reach, intervals: &[Interval]) -> Bases {
        let mut bases = Bases::new(1, reach);
        intervals
            .iter()
            .for_each(|one| bases.keep(&Arc::new(one.clone())));
        bases
    }

    #[test]
    fn the_most_similar_of_the_last_intervals_is_the_base() {
        let reach = Reach {
            intervals: 3,
            ranges: 2,
        };
        let even: Vec<u64> = (1..=20).map(|i| 2 * i).collect();
        let odd: Vec<u64> = even.iter().map(|oid| oid + 1).collect();
        let before = [interval(1, &even), interval(2, &odd), interval(3, &[50])];
        let reduced = |index, oids: &[u64]| bases(reach, &before).reduce(&interval(index, oids));
        let mut other: Vec<u64> = even.iter().copied().filter(|oid| *oid != 8).collect();
        other.push(60);
        let like_even = reduced(4, &other).expect("much the same");
        let base = like_even.base.expect("a difference");
        assert_eq!((base.index, base.unwritten.len()), (1, 1));
        assert_eq!(like_even.written, [OidRange::one(Oid(60))]);
        assert_eq!(
            reduced(4, &odd).and_then(|one| one.base).map(|b| b.index),
            Some(2)
        );
        assert_eq!(reduced(4, &[50]), None, "3 wrote too little to be kept");
        assert_eq!(reduced(5, &even), None, "1 is too old");
        assert_eq!(reduced(4, &[20, 30, 40]), None, "nothing is alike");
        assert_eq!(
            bases(Reach::of(0), &before).reduce(&interval(4, &even)),
            None
        );
    }

    #[test]
    fn a_difference_against_an_interval_that_is_not_kept_is_refused() {
        let reach = Reach {
            intervals: 2,
            ranges: 1,
        };
        let mut told = against(&interval(4, &[1, 3]), &interval(3, &[1, 3]));
        let kept = bases(reach, &[interval(2, &[1]), interval(3, &[1, 3])]);
        assert!(kept.restore(&Arc::new(told.clone()), &[]).is_ok());
        told.base.as_mut().expect("a difference").index = 1;
        assert!(kept.restore(&Arc::new(told), &[]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_restored_is_what_was_reduced(
            one in prop::collection::vec(0_u64..60, 0..40),
            other in prop::collection::vec(0_u64..60, 0..40),
        ) {
            let (base, whole) = (interval(1, &one), interval(2, &other));
            let told = Arc::new(against(&whole, &base));
            let kept = bases(Reach { intervals: 1, ranges: 0 }, std::slice::from_ref(&base));
            let restored = kept.restore(&told, &[]).expect("the base is kept");
            prop_assert_eq!(&*restored.whole, &whole);
            let told_with = kept.restore(&told, &[Record::new(Arc::new(base), None)]);
            prop_assert_eq!(&*told_with.expect("its base goes with it").whole, &whole);
        }

        #[test]
        fn ranges_in_no_order_are_no_more_than_nonsense(
            one in prop::collection::vec((any::<u64>(), any::<u32>()), 0..9),
            other in prop::collection::vec((any::<u64>(), any::<u32>()), 0..9),
        ) {
            let ranges = |all: &[(u64, u32)]| -> Vec<OidRange> {
                all.iter().map(|&(first, count)| OidRange { first: Oid(first), count }).collect()
            };
            let (one, other) = (ranges(&one), ranges(&other));
            let (_less, _more) = (minus(&one, &other), plus(&one, &other));
        }
    }
}
