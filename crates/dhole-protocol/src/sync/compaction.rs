//! Making interval records fewer while they wait for a node that has not seen them.

use std::collections::VecDeque;

use dhole_model::{Elements, Oid, OidRange, RangeSet, SortedMap};

use crate::sync::interval::Attached;
use crate::sync::notice_delta::Record;

/// Leaves each object, and each element of an array, in the newest of one node's records that names
/// it. An older write need not be told beside a newer one: whoever hears of both, in either order,
/// keeps the newer. A record that says nothing any more becomes part of the next. So no more
/// records are left than objects and elements were written, and one. The last few stay `whole`.
///
/// Writes of the objects and arrays `freed`, which some node's record tells of, need not be told
/// either.
///
/// Whoever applies a record has heard of its older part, or needs it no more.
pub(crate) fn keep_newest(records: &mut VecDeque<Record>, whole: usize, freed: &[OidRange]) {
    let (mut told, mut told_of_arrays) = (RangeSet::new(), CoveredElements::default());
    add(&mut told, freed);
    let mut kept: VecDeque<Record> = VecDeque::with_capacity(records.len());
    // What the records freed that became part of the first that is kept.
    let mut older = Vec::new();
    for (place, mut record) in records.drain(..).rev().enumerate() {
        let written = add(&mut told, &record.whole.written);
        let elements = told_of_arrays.add(&record.whole.elements, &told);
        match kept.front_mut() {
            _ if place < whole => kept.push_front(record),
            Some(newer)
                if place > whole
                    && written.is_empty()
                    && elements.is_empty()
                    && record.whole.attached == Attached::Nothing =>
            {
                let newer = newer.change();
                newer.first = record.whole.first;
                older.extend_from_slice(&record.whole.freed);
            }
            _ => {
                add_freed(&mut kept, &mut older);
                if written != record.whole.written || elements != record.whole.elements {
                    let record = record.change();
                    (record.written, record.elements) = (written, elements);
                }
                kept.push_front(record);
            }
        }
    }
    add_freed(&mut kept, &mut older);
    kept.shrink_to_fit();
    *records = kept;
}

/// Adds to the first record what the older ones freed that became part of it: it is freed for a
/// node that hears of it later, too.
fn add_freed(records: &mut VecDeque<Record>, older: &mut Vec<OidRange>) {
    if let Some(first) = records.front_mut().filter(|_| !older.is_empty()) {
        let first = first.change();
        older.append(&mut first.freed);
        first.freed = joined(std::mem::take(older));
    }
}

/// The same ids in ascending order, in as few ranges as they fill.
pub(crate) fn joined(mut ranges: Vec<OidRange>) -> Vec<OidRange> {
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let end = last.first.0 + u64::from(last.count);
        let next_end = next.first.0 + u64::from(next.count);
        let count = u32::try_from(next_end.max(end) - last.first.0);
        let Some(count) = count.ok().filter(|_| next.first.0 <= end) else {
            return false;
        };
        last.count = count;
        true
    });
    ranges.shrink_to_fit();
    ranges
}

/// Adds objects to those told of, and returns the parts of them that were not there.
fn add(told: &mut RangeSet, ranges: &[OidRange]) -> Vec<OidRange> {
    let mut new = Vec::new();
    for objects in ranges {
        let first = objects.first.0;
        told.update(first..first + u64::from(objects.count), |part, is_told| {
            if !std::mem::replace(is_told, true) {
                new.push(range(part.start, part.end));
            }
        });
    }
    new
}

/// Elements of arrays.
#[derive(Default)]
struct CoveredElements(SortedMap<Oid, RangeSet>);

impl CoveredElements {
    /// Adds elements, and returns those of them that were not there and whose array is not `gone`.
    fn add(&mut self, written: &[Elements], gone: &RangeSet) -> Vec<Elements> {
        let mut new = Vec::new();
        for elements in written {
            let array = elements.array.0;
            if gone.of(array..array + 1).any(|(_, is_gone)| is_gone) {
                continue;
            }
            let told = self.0.get_or_default(elements.array);
            let untold = told.of(elements.range()).filter(|(_, told)| !told);
            new.extend(untold.map(|(part, _)| Elements::new(elements.array, part)));
            told.set(elements.range(), true);
        }
        new
    }
}

/// A part of a range, whose length fits as the whole one's did.
fn range(first: u64, end: u64) -> OidRange {
    OidRange {
        first: Oid(first),
        count: (end - first) as u32,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use dhole_model::NodeId;
    use proptest::prelude::*;

    use super::*;
    use crate::Interval;

    fn record(index: u32, written: &[(u64, u32)]) -> Record {
        let written = written.iter().map(|&(first, count)| OidRange {
            first: Oid(first),
            count,
        });
        let whole = Interval {
            node: NodeId(0),
            first: index,
            index,
            lamport: u64::from(index),
            written: written.collect(),
            base: None,
            elements: vec![],
            freed: vec![],
            attached: Attached::Nothing,
        };
        Record::new(Arc::new(whole), None)
    }

    /// The newest record of each object.
    fn newest(records: &VecDeque<Record>) -> BTreeMap<Oid, u64> {
        let each = |r: &Record| {
            let r = &r.whole;
            let lamport = r.lamport;
            let oids: Vec<Oid> = r.written.iter().flat_map(|range| range.iter()).collect();
            oids.into_iter().map(move |oid| (oid, lamport))
        };
        records.iter().flat_map(each).collect()
    }

    #[test]
    fn an_object_written_over_and_over_leaves_one_record() {
        let mut records: VecDeque<_> = (1..=100).map(|i| record(i, &[(64, 2)])).collect();
        keep_newest(&mut records, 0, &[]);
        assert_eq!(records.len(), 1);
        assert_eq!((records[0].whole.first, records[0].whole.index), (1, 100));
        assert_eq!(records[0].whole.lamport, 100);
    }

    #[test]
    fn what_only_an_old_interval_wrote_keeps_its_version() {
        let mut records: VecDeque<_> = [
            record(1, &[(64, 8)]),
            record(2, &[(70, 1)]),
            record(3, &[(66, 1)]),
        ]
        .into();
        keep_newest(&mut records, 0, &[]);
        assert_eq!(records.len(), 3);
        let left: Vec<_> = records[0]
            .whole
            .written
            .iter()
            .map(|r| (r.first.0, r.count))
            .collect();
        assert_eq!(left, [(64, 2), (67, 3), (71, 1)]);
    }

    #[test]
    fn elements_are_told_once_and_keep_a_record_alive() {
        let part = |range| Elements::new(Oid(128), range);
        let mut records: VecDeque<_> = (1..=3).map(|i| record(i, &[(64, 1)])).collect();
        records[0].change().elements = vec![part(0..10)];
        records[1].change().elements = vec![part(4..6)];
        records[2].change().elements = vec![part(4..6), part(8..20)];
        keep_newest(&mut records, 0, &[]);
        let left: Vec<_> = records
            .iter()
            .map(|r| (r.whole.first, r.whole.elements.clone()))
            .collect();
        assert_eq!(
            left,
            [
                (1, vec![part(0..4), part(6..8)]),
                (2, vec![part(4..6), part(8..20)])
            ],
            "the second says nothing any more"
        );
    }

    #[test]
    fn objects_that_come_and_go_leave_one_record() {
        let freed = |oid| OidRange::one(Oid(oid));
        let mut records: VecDeque<_> = (1..=100)
            .map(|i| record(i, &[(64 + u64::from(i), 1)]))
            .collect();
        for (record, oid) in records.iter_mut().zip(64..).skip(1) {
            record.change().freed = vec![freed(oid)];
        }
        let all: Vec<_> = records.iter().flat_map(|r| r.whole.freed.clone()).collect();
        keep_newest(&mut records, 0, &all);
        assert_eq!(records.len(), 1);
        assert_eq!(
            records[0].whole.freed,
            [OidRange {
                first: Oid(65),
                count: 99
            }]
        );
        assert_eq!(records[0].whole.written, [OidRange::one(Oid(164))]);
    }

    #[test]
    fn the_last_records_stay_whole_and_count_as_newer() {
        let mut records: VecDeque<_> = (1..=9).map(|i| record(i, &[(64, 2)])).collect();
        keep_newest(&mut records, 3, &[]);
        let left: Vec<_> = records
            .iter()
            .map(|r| {
                (
                    r.whole.first,
                    r.whole.index,
                    r.whole.written.len(),
                    r.compacted,
                )
            })
            .collect();
        let whole = [7, 8, 9].map(|index| (index, index, 1, false));
        assert_eq!(left[0], (1, 6, 0, true), "it stands for six");
        assert_eq!(left[1..], whole);
    }

    proptest! {
        #[test]
        fn every_object_is_told_once_and_in_its_newest_version(
            written in prop::collection::vec(
                prop::collection::vec((0_u64..40, 1_u32..9), 0..4), 1..20)
        ) {
            let mut records = VecDeque::new();
            for (ranges, index) in written.iter().zip(1..) {
                let mut oids: Vec<u64> = ranges.iter().flat_map(|&(f, c)| f..f + u64::from(c))
                    .collect();
                oids.sort_unstable();
                oids.dedup();
                let mut disjoint = Vec::new();
                oids.into_iter().for_each(|oid| OidRange::push(&mut disjoint, Oid(oid)));
                let disjoint: Vec<_> = disjoint.iter().map(|r| (r.first.0, r.count)).collect();
                records.push_back(record(index, &disjoint));
            }
            let (before, last) = (newest(&records), records.len() as u32);
            keep_newest(&mut records, 0, &[]);
            let told: u32 = records.iter().flat_map(|r| &r.whole.written).map(|r| r.count).sum();
            prop_assert_eq!(told as usize, before.len());
            prop_assert_eq!(newest(&records), before);
            let mut next = 1;
            for Record { whole, .. } in &records {
                prop_assert_eq!(whole.first, next);
                next = whole.index + 1;
            }
            prop_assert_eq!(next, last + 1);
        }
    }
}
