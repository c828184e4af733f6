//! What a node knows of the blocks of arrays under members.

use dhole_model::{Elements, Oid, OidRange, SortedMap};

use crate::RegionCommand;
use crate::array_blocks::{ArrayBlocks, Needs, Unit};
use crate::command::Command;

/// The arrays whose blocks are units, as far as this node has met them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct BlockTable(SortedMap<Oid, ArrayBlocks>);

impl BlockTable {
    /// A node meets an array.
    pub fn meet(&mut self, blocks: ArrayBlocks) {
        self.0.insert(blocks.array, blocks);
    }

    fn find(&self, unit: Oid) -> Option<&ArrayBlocks> {
        let (_, blocks) = self.0.range(..=unit).next_back()?;
        (unit <= blocks.ids().last()).then_some(blocks)
    }

    /// What a unit is.
    pub fn unit(&self, unit: Oid) -> Unit {
        let block = self.find(unit).and_then(|blocks| blocks.block(unit));
        block.map_or(Unit::Object(unit), Unit::Block)
    }

    /// The id that a unit has for the program: its own, or that of its array.
    pub fn named(&self, unit: Oid) -> Oid {
        self.find(unit).map_or(unit, |blocks| blocks.array)
    }

    /// The arrays with these ids were freed, or are not kept consistent so any longer.
    pub fn forget(&mut self, ids: OidRange) {
        ids.remove_from(&mut self.0);
    }
}

/// Elements that a call of the worker has brought here, and that stay until all that it needs are
/// here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Kept {
    /// They are whole blocks, and may be none yet.
    elements: Elements,
    /// The end of what the call needs; none while it asks for what it writes later.
    end: Option<u64>,
}

impl Kept {
    /// What a call keeps that reads or writes a block next: all that it needs before that.
    pub fn before(block: Option<Elements>, needs: Option<Needs>, writes: bool) -> Option<Kept> {
        let (block, Needs { elements, to_write }) = (block?, needs?);
        let end = (writes == to_write).then_some(elements.range().end);
        let first = elements.first.min(block.first);
        let elements = Elements::new(block.array, first..block.first);
        Some(Kept { elements, end })
    }

    /// A block has come. What is kept from then on; nothing where the call has all that it needs.
    pub fn with(self, unit: Unit) -> Option<Kept> {
        let Unit::Block(block) = unit else {
            return Some(self);
        };
        let Kept { mut elements, end } = self;
        if block.array == elements.array && block.first == elements.range().end {
            elements.count += block.count;
        }
        let has_all = end.is_some_and(|end| end <= elements.range().end);
        (!has_all).then_some(Kept { elements, end })
    }

    /// Whether there are any.
    pub fn is_some(&self) -> bool {
        self.elements.count > 0
    }

    /// Whether a unit is among them.
    pub fn has(&self, unit: Unit) -> bool {
        matches!(unit, Unit::Block(block) if block.meets(self.elements))
    }

    /// Whether a command would take some of them away.
    pub fn loses(&self, command: &Command) -> bool {
        match command {
            Command::Array(RegionCommand::Invalidate(lost) | RegionCommand::MakeClean(lost)) => {
                lost.meets(self.elements)
            }
            _ => false,
        }
    }
}
