//! Read-ahead: around what is missed, as much comes with it as came from there before.
//!
//! A program that accesses few units here and there, elements of an array or objects, misses each
//! by itself. Valid copies tell how dense these accesses are. Around a miss the largest
//! block is read ahead of which a quarter came from the same node, accessed or read ahead. So a
//! walk along an array, or along objects in the order in which they were allocated, brings four
//! times as much with each miss, and accesses at random bring whole blocks once there were some in
//! each. Units that this node wrote itself do not count: they say nothing of its reads.

use std::ops::Range;

/// How units around a missed one are read ahead: by whole blocks that begin at a multiple of their
/// size. A unit is an element of an array, by its index, or an object, by its id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReadAhead {
    /// Units of the smallest block.
    pub block: u64,
    /// Units of the largest one: the smallest, doubled so many times as may be.
    pub most: u64,
    /// So many units of a smallest block must have come before the rest does.
    pub least: u64,
    /// Of a larger block, so much of it: one unit in so many.
    pub share: u64,
    /// The first unit that may be read ahead.
    pub first: u64,
    /// The unit behind the last one that may be.
    pub end: u64,
}

impl ReadAhead {
    /// As a rule a quarter of a block must have come before.
    pub const QUARTER: u64 = 4;

    /// So many units of a block must have come before.
    pub fn enough(&self, size: u64) -> u64 {
        match size == self.block {
            true => self.least,
            false => size / self.share,
        }
    }

    /// The block of this size in which a unit lies.
    pub fn around(&self, unit: u64, size: u64) -> Range<u64> {
        let first = unit / size * size;
        first.max(self.first)..(first + size).min(self.end)
    }

    /// The largest block around missed units of which enough came before; `came` counts that, or
    /// gives up.
    pub(crate) fn densest(
        &self,
        missed: Range<u64>,
        mut came: impl FnMut(Range<u64>) -> Option<u64>,
    ) -> Option<Range<u64>> {
        let (mut found, mut size) = (None, self.block);
        while size <= self.most {
            let block = self.around(missed.start, size);
            let Some(came) = came(block.clone()) else {
                return found;
            };
            let is_within = block.start <= missed.start && missed.end <= block.end;
            if is_within && came >= self.enough(size) {
                found = Some(block);
            }
            size *= 2;
        }
        found
    }
}
