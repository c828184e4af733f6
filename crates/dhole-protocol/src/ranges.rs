//! Lists of ranges in ascending order, as they go on a wire: of each range the gap behind the one
//! before and its length, seven bits a byte. A write notice of an object takes two or three bytes.
//!
//! The first range of objects takes eight bytes or more, wherever it begins. Ids depend on how many
//! clusters the process had before, and a simulated run must not: it repeats with its seed. Pages
//! are numbered from 0 in every run.
//!
//! Ranges in any other order come back as they were too, in more bytes.

use dhole_model::{Oid, OidRange, PageId, PageRange};
use serde::{Deserialize, Deserializer, Serializer};

/// Consecutive numbers: a first one, and how many.
pub trait Span: Copy {
    /// As if a range had ended here before the first.
    const BEFORE: u64;

    fn of(first: u64, count: u32) -> Self;
    fn first(self) -> u64;
    fn count(self) -> u32;
}

impl Span for OidRange {
    /// So the gap of every first id, which are all below 2^42, takes as many bytes.
    const BEFORE: u64 = 0_u64.wrapping_sub(1 << 42);

    fn of(first: u64, count: u32) -> OidRange {
        OidRange {
            first: Oid(first),
            count,
        }
    }

    fn first(self) -> u64 {
        self.first.0
    }

    fn count(self) -> u32 {
        self.count
    }
}

impl Span for PageRange {
    const BEFORE: u64 = 0;

    fn of(first: u64, count: u32) -> PageRange {
        PageRange {
            first: PageId(first),
            count,
        }
    }

    fn first(self) -> u64 {
        self.first.0
    }

    fn count(self) -> u32 {
        self.count
    }
}

/// The gap before each range, and its length. A range that begins before the end of the one before
/// has a gap that wraps round.
fn gaps<S: Span>(ranges: &[S]) -> impl ExactSizeIterator<Item = (u64, u32)> {
    let mut end = S::BEFORE;
    ranges.iter().map(move |range| {
        let gap = range.first().wrapping_sub(end);
        end = range.first().wrapping_add(u64::from(range.count()));
        (gap, range.count())
    })
}

pub fn serialize<S: Span, Z: Serializer>(ranges: &[S], to: Z) -> Result<Z::Ok, Z::Error> {
    to.collect_seq(gaps(ranges))
}

pub fn deserialize<'de, S: Span, D: Deserializer<'de>>(from: D) -> Result<Vec<S>, D::Error> {
    let gaps = Vec::<(u64, u32)>::deserialize(from)?;
    let mut end = S::BEFORE;
    let ranges = gaps.into_iter().map(|(gap, count)| {
        let first = end.wrapping_add(gap);
        end = first.wrapping_add(u64::from(count));
        S::of(first, count)
    });
    Ok(ranges.collect())
}

/// Bytes of the ranges in a message, without their number.
pub fn wire_bytes<S: Span>(ranges: &[S]) -> u64 {
    let of = |number: u64| u64::from((number | 1).ilog2() / 7 + 1);
    let each = gaps(ranges).map(|(gap, count)| of(gap) + of(u64::from(count)));
    each.sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Serialize;

    use super::*;

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Told {
        #[serde(with = "super")]
        objects: Vec<OidRange>,
        #[serde(with = "super")]
        pages: Vec<PageRange>,
    }

    fn told(ranges: &[(u64, u32)]) -> Told {
        Told {
            objects: ranges
                .iter()
                .map(|&(f, count)| Span::of(f, count))
                .collect(),
            pages: ranges
                .iter()
                .map(|&(f, count)| Span::of(f, count))
                .collect(),
        }
    }

    /// The bytes of a list's length, for both lists.
    fn lengths(told: &Told) -> u64 {
        2 * postcard::to_allocvec(&told.objects.len()).unwrap().len() as u64
    }

    #[test]
    fn what_is_far_from_the_last_takes_three_bytes_and_what_is_near_two() {
        let bytes = |ranges: &[(u64, u32)]| wire_bytes(&told(ranges).objects);
        assert_eq!(bytes(&[]), 0);
        assert_eq!(bytes(&[(5, 1)]), 8);
        let all = bytes(&[(5, 1), (6 + 127, 1)]);
        assert_eq!(all, 8 + 2);
        assert_eq!(bytes(&[(5, 1), (6 + 128, 1)]), 8 + 3);
        assert_eq!(bytes(&[(1 << 30, 1), ((1 << 30) + 9, 127)]), 8 + 2);
        let bytes = |ranges: &[(u64, u32)]| wire_bytes(&told(ranges).pages);
        assert_eq!(bytes(&[(5, 1), (6 + 128, 1)]), 2 + 3);
    }

    #[test]
    fn where_the_first_range_begins_does_not_change_how_many_bytes_a_list_takes() {
        let ranges = [(7, 1), (20, 3), (4_000, 2)];
        let bytes = |at: u64| wire_bytes(&told(&ranges.map(|(f, count)| (f + at, count))).objects);
        for bits in 0..42 {
            assert_eq!(bytes(1 << bits), bytes(0), "{bits}");
        }
    }

    proptest! {
        #[test]
        fn what_is_told_in_gaps_comes_back_and_takes_the_bytes_that_are_counted(
            steps in prop::collection::vec((0_u64..1 << 20, 1_u32..1 << 16), 0..40),
        ) {
            let mut end = 0;
            let ascending: Vec<_> = steps.into_iter().map(|(gap, count)| {
                let first = end + gap;
                end = first + u64::from(count);
                (first, count)
            }).collect();
            let told = told(&ascending);
            let bytes = postcard::to_allocvec(&told).unwrap();
            prop_assert_eq!(&postcard::from_bytes::<Told>(&bytes).unwrap(), &told);
            let counted = wire_bytes(&told.objects) + wire_bytes(&told.pages);
            prop_assert_eq!(bytes.len() as u64, counted + lengths(&told));
        }

        #[test]
        fn ranges_in_no_order_come_back_too(
            ranges in prop::collection::vec((any::<u64>(), any::<u32>()), 0..9),
        ) {
            let told = told(&ranges);
            let bytes = postcard::to_allocvec(&told).unwrap();
            prop_assert_eq!(&postcard::from_bytes::<Told>(&bytes).unwrap(), &told);
            let counted = wire_bytes(&told.objects) + wire_bytes(&told.pages);
            prop_assert_eq!(bytes.len() as u64, counted + lengths(&told));
        }
    }
}
