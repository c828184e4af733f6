//! What a node knows of one array.

use std::ops::Range;

use dhole_model::{Elements, Oid, RangeSet};

use crate::binding::ArrayBinding;

/// What a node knows of an array that it has touched.
pub(crate) struct LocalArray {
    pub(crate) binding: ArrayBinding,
    /// Where its elements are in the page store.
    pub(crate) storage: u64,
    /// The pages that are its alone; none of an array of less than a page, which shares one.
    pub(crate) pages: Option<Range<u64>>,
    /// The blocks that hold something, be it zeros that nobody has touched.
    pub(crate) stored: RangeSet,
    /// The blocks that take memory.
    pub(crate) touched: RangeSet,
    /// The blocks that neighbours may read.
    pub(crate) published: RangeSet,
    /// Up to this byte of it the system may use huge pages.
    pub(crate) advised: u64,
}

impl LocalArray {
    /// The blocks of some elements.
    pub(crate) fn blocks(&self, elements: Elements) -> Range<u64> {
        if elements.count == 0 {
            return 0..0;
        }
        let block = self.binding.per_block();
        elements.first / block..elements.range().end.div_ceil(block)
    }

    /// How many blocks the array has.
    pub(crate) fn block_count(&self) -> u64 {
        self.binding.len.div_ceil(self.binding.per_block())
    }

    /// Bytes of those of these blocks that take memory.
    pub(crate) fn stored_bytes(&self, array: Oid, blocks: Range<u64>) -> u64 {
        let size = self.binding.info.size as u64;
        let stored = self.touched.of(blocks).filter(|(_, stored)| *stored);
        let bytes = stored.map(|(blocks, _)| {
            let first = self.of_block(array, blocks.start).first;
            let last = self.of_block(array, blocks.end - 1);
            (last.range().end - first) * size
        });
        bytes.sum()
    }

    /// The elements of a block.
    pub(crate) fn of_block(&self, array: Oid, block: u64) -> Elements {
        let (per_block, len) = (self.binding.per_block(), self.binding.len);
        let start = block * per_block;
        Elements::new(array, start..(start + per_block).min(len))
    }
}
