//! Blocks of arrays: the units of arrays under a protocol that implements
//! [`CoherenceProtocol`](crate::CoherenceProtocol).

use dhole_model::{Coherence, Elements, NodeId, Oid, OidRange};
use smallvec::SmallVec;

/// How the elements of an array lie in blocks. The ids of blocks follow on that of the array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ArrayBlocks {
    /// The id of the array, and of its first block.
    pub array: Oid,
    /// Elements of the array.
    pub len: u64,
    /// Elements of each block but the last; not 0.
    pub per_block: u64,
}

impl ArrayBlocks {
    /// How many blocks there are.
    pub fn count(&self) -> u64 {
        self.len.div_ceil(self.per_block)
    }

    /// The ids of the blocks.
    pub fn ids(&self) -> OidRange {
        OidRange {
            first: self.array,
            count: self.count() as u32,
        }
    }

    /// All elements.
    pub fn all(&self) -> Elements {
        Elements::new(self.array, 0..self.len)
    }

    /// The elements of a block; none for an id that names none.
    pub fn block(&self, unit: Oid) -> Option<Elements> {
        let block = unit.0.checked_sub(self.array.0)?;
        let first = block.checked_mul(self.per_block)?;
        let end = first.saturating_add(self.per_block).min(self.len);
        (first < end).then(|| Elements::new(self.array, first..end))
    }

    /// The blocks that some elements lie in, in order: the id of each, and those that lie in it.
    pub fn parts(self, elements: Elements) -> impl Iterator<Item = (Oid, Elements)> {
        let blocks = match elements.count {
            0 => 0..0,
            _ => elements.first / self.per_block..elements.range().end.div_ceil(self.per_block),
        };
        blocks.map(move |block| {
            let first = elements.first.max(block * self.per_block);
            let end = elements.range().end.min((block + 1) * self.per_block);
            (
                self.array.plus(block),
                Elements::new(self.array, first..end),
            )
        })
    }
}

/// What the bytes behind a message of a protocol are of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unit {
    /// An object.
    Object(Oid),
    /// Elements: those of a block, where blocks are units.
    Block(Elements),
}

/// What of units goes behind a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Behind {
    /// Their bytes, for a node that has asked.
    Bytes,
    /// Their bytes, for nodes that have not asked.
    Pushed,
    /// What the worker has changed in them. Of an object these are the differences against its
    /// pre-image. Of a block they are its writable elements: of each range of them the first and
    /// the number, eight bytes each, and the elements' bytes.
    Changes,
    /// Their bytes, all of which the worker has written: those of elements.
    Written,
}

/// The worker does something with an array whose blocks are units.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BlockEvent {
    /// The blocks of the array.
    pub blocks: ArrayBlocks,
    /// The node that allocated the array.
    pub creator: NodeId,
    /// How the array is kept consistent, unless it was switched since.
    pub coherence: Coherence,
    /// What the worker's call needs, if it takes several events to bring it here. The block that
    /// such an event has brought, and all before it, stay until the call has what it needs.
    pub needs: Option<Needs>,
    /// What the worker does.
    pub what: BlockAccess,
}

/// What a call needs of an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Needs {
    /// The elements.
    pub elements: Elements,
    /// It writes them.
    pub to_write: bool,
}

/// What a worker does with blocks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum BlockAccess {
    /// It reads blocks of which it has no readable copy.
    Read(SmallVec<[Oid; 1]>),
    /// It writes elements of one block of which it has a readable copy.
    Write(Elements),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_in_blocks_and_the_last_block_is_shorter() {
        let array = Oid(640);
        let (len, per_block) = (10, 4);
        let blocks = ArrayBlocks {
            array,
            len,
            per_block,
        };
        assert_eq!((blocks.count(), blocks.ids().last()), (3, Oid(642)));
        assert_eq!(blocks.block(Oid(642)), Some(Elements::new(array, 8..10)));
        assert_eq!(blocks.block(Oid(643)), None);
        assert_eq!(blocks.block(Oid(639)), None);
        let parts: Vec<_> = blocks.parts(Elements::new(array, 3..9)).collect();
        let part = |block, range| (array.plus(block), Elements::new(array, range));
        assert_eq!(parts, [part(0, 3..4), part(1, 4..8), part(2, 8..9)]);
        assert_eq!(blocks.parts(Elements::new(array, 3..3)).count(), 0);
    }
}
