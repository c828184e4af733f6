//! Lists of ranges in ascending order, as they go on a wire: of each range the gap behind the one
//! before and its length, seven bits a byte. A write notice of an object takes two or three bytes.
//!
//! The first range of objects takes eight bytes or more, wherever it begins. Ids depend on how many
//! clusters the process had before, and a simulated run must not: it repeats with its seed. Pages
//! are numbered from 0 in every run.
//!
//! Ranges in any other order come back as they were too, in more bytes.

use dhole_model::{Oid, OidRange, PageId, PageRange};
use dhole_wire::{Tail, WireAs, WireError, count, take_varint, varint_len, write_varint};

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

/// Encodes a list of ranges so.
pub struct Ranges;

impl<S: Span> WireAs<Vec<S>> for Ranges {
    /// How many ranges there are.
    type Head = u32;

    fn head(ranges: &Vec<S>) -> u32 {
        count(ranges.len())
    }

    fn tail_len(ranges: &Vec<S>) -> usize {
        let each = gaps(ranges).map(|(gap, count)| varint_len(gap) + varint_len(count.into()));
        each.sum()
    }

    fn write_tail(ranges: &Vec<S>, out: &mut Vec<u8>) {
        for (gap, count) in gaps(ranges) {
            write_varint(gap, out);
            write_varint(count.into(), out);
        }
    }

    fn read(head: &u32, tail: &mut Tail<'_>) -> Result<Vec<S>, WireError> {
        let mut ranges = Vec::new();
        let mut end = S::BEFORE;
        // It grows with what is really there.
        for _ in 0..*head {
            let first = end.wrapping_add(take_varint(tail)?);
            let count = u32::try_from(take_varint(tail)?);
            let count = count.map_err(|_| WireError::Value("a range of 2^32 or more"))?;
            end = first.wrapping_add(u64::from(count));
            ranges.push(S::of(first, count));
        }
        Ok(ranges)
    }
}

#[cfg(test)]
mod tests {
    use dhole_wire::Wire;
    use proptest::prelude::*;

    use super::*;

    #[derive(Wire, PartialEq, Debug)]
    struct Told {
        #[wire(with = Ranges)]
        objects: Vec<OidRange>,
        #[wire(with = Ranges)]
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

    fn wire_bytes<S: Span>(ranges: &Vec<S>) -> usize {
        Ranges::tail_len(ranges)
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
            let bytes = told.to_bytes();
            prop_assert_eq!(&Told::parse(&bytes).unwrap(), &told);
            prop_assert_eq!(bytes.len(), told.wire_len());
        }

        #[test]
        fn ranges_in_no_order_come_back_too(
            ranges in prop::collection::vec((any::<u64>(), any::<u32>()), 0..9),
        ) {
            let told = told(&ranges);
            let bytes = told.to_bytes();
            prop_assert_eq!(&Told::parse(&bytes).unwrap(), &told);
            prop_assert_eq!(bytes.len(), told.wire_len());
        }
    }
}
