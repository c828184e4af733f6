use dhole_wire::Wire;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// The number of a page of the global space of addresses.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, Wire,
)]
pub struct PageId(pub u64);

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {:#x}", self.0)
    }
}

impl fmt::Debug for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{:#x}", self.0)
    }
}

/// Consecutive pages.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, Wire,
)]
pub struct PageRange {
    /// The first page.
    pub first: PageId,
    /// How many, at least 1.
    pub count: u32,
}

impl PageRange {
    /// The pages that `bytes` lie in, of `page_bytes` bytes each.
    pub fn of(bytes: Range<u64>, page_bytes: u64) -> PageRange {
        let first = bytes.start / page_bytes;
        let last = bytes.end.saturating_sub(1).max(bytes.start) / page_bytes;
        PageRange {
            first: PageId(first),
            count: u32::try_from(last - first + 1).unwrap_or(u32::MAX),
        }
    }

    /// The pages, in order.
    pub fn iter(self) -> impl Iterator<Item = PageId> {
        (self.first.0..self.first.0 + u64::from(self.count)).map(PageId)
    }

    /// Appends `page` to a list of ranges. The last range grows if `page` follows on it.
    pub fn push(ranges: &mut Vec<PageRange>, page: PageId) {
        match ranges.last_mut() {
            Some(last)
                if last.first.0 + u64::from(last.count) == page.0 && last.count < u32::MAX =>
            {
                last.count += 1
            }
            _ => ranges.push(PageRange {
                first: page,
                count: 1,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_in_the_pages_that_they_touch() {
        let of = |bytes| {
            let PageRange { first, count } = PageRange::of(bytes, 4096);
            (first.0, count)
        };
        assert_eq!(of(0..1), (0, 1));
        assert_eq!(of(4095..4097), (0, 2));
        assert_eq!(of(4096..8192), (1, 1));
        assert_eq!(
            of(4096..4096),
            (1, 1),
            "an object without bytes lies somewhere"
        );
    }

    #[test]
    fn consecutive_pages_share_a_range() {
        let mut ranges = Vec::new();
        for page in [4, 5, 7] {
            PageRange::push(&mut ranges, PageId(page));
        }
        let all: Vec<u64> = ranges.iter().flat_map(|r| r.iter()).map(|p| p.0).collect();
        assert_eq!((ranges.len(), all), (2, vec![4, 5, 7]));
    }
}
