use std::fmt;
use std::ops::Range;

use crate::Oid;
use dhole_wire::Wire;
use serde::{Deserialize, Serialize};

/// Some elements of a shared array. The id of its first block names an array. Only the heap knows
/// where the blocks lie.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Wire)]
pub struct Elements {
    /// The array.
    pub array: Oid,
    /// The first element.
    pub first: u64,
    /// How many.
    pub count: u64,
}

impl Elements {
    /// The elements `range` of an array.
    pub const fn new(array: Oid, range: Range<u64>) -> Elements {
        Elements {
            array,
            first: range.start,
            count: range.end.saturating_sub(range.start),
        }
    }

    /// Their places in the array. A message may name elements that no array has; they end at
    /// the last number.
    pub const fn range(&self) -> Range<u64> {
        self.first..self.first.saturating_add(self.count)
    }

    /// Whether the two have an element in common.
    pub fn meets(&self, other: Elements) -> bool {
        let (one, two) = (self.range(), other.range());
        self.array == other.array && one.start < two.end && two.start < one.end
    }

    /// Appends `more` to a list. It is joined to the last entry if it follows on that.
    pub fn push(list: &mut Vec<Elements>, more: Elements) {
        match list.last_mut() {
            Some(last) if last.array == more.array && last.range().end == more.first => {
                last.count += more.count;
            }
            _ => list.push(more),
        }
    }
}

impl fmt::Display for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.range();
        write!(f, "elements {start}..{end} of array {:#x}", self.array.0)
    }
}

impl fmt::Debug for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}[{:?}]", self.array, self.range())
    }
}
