//! Blocks of arrays that others read here, or that are read in the memory of others.

use dhole_model::Elements;

/// What a node keeps of one-sided reads of elements.
#[derive(Default)]
pub(crate) struct SeenBlocks {
    /// What was copied of a neighbour's blocks last.
    pub(crate) copied: Vec<u8>,
    /// Blocks that were asked for while the worker computed, and could write a part of them.
    pub(crate) asked: Vec<Elements>,
    /// Elements whose blocks are published once all that a step says is done.
    pub(crate) later: Vec<Elements>,
}
