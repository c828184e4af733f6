//! What goes into the arrays' part of a protocol.

use dhole_model::{CallSite, Coherence, Elements, NodeId, OidRange};
use smallvec::SmallVec;

use crate::array_blocks::{ArrayBlocks, BlockEvent};
use crate::read_ahead::ReadAhead;

/// Elements of an array that the worker is to read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UnreadElements {
    /// The elements.
    pub elements: Elements,
    /// Neighbours that were written together with these are fetched as well, as far as this.
    pub within: Elements,
    /// The node that allocated the array: whom to ask while nobody is known to have written them.
    pub creator: NodeId,
    /// Never written, elements are all zeros, so nobody need be asked.
    pub zero_ok: bool,
    /// How the array is kept consistent, unless it was switched since.
    pub coherence: Coherence,
    /// What lies around may be read ahead.
    pub ahead: Option<ReadAhead>,
}

/// Something that the worker does with an array.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ArrayEvent {
    /// It has allocated an array and stored the first values of all elements.
    Allocated {
        /// The array, and how it lies in blocks.
        blocks: ArrayBlocks,
        /// How it is kept consistent.
        coherence: Coherence,
    },
    /// It reads elements, not all of which are valid here.
    Read(SmallVec<[UnreadElements; 1]>),
    /// It writes elements which are all valid here, not all of them writable.
    Write {
        /// The elements.
        elements: Elements,
        /// Where in the program.
        site: CallSite,
    },
    /// It writes all of these elements, whatever they were.
    Overwrite {
        /// The elements.
        elements: Elements,
        /// The node that allocated the array.
        creator: NodeId,
        /// How the array is kept consistent, unless it was switched since.
        coherence: Coherence,
        /// Where in the program.
        site: CallSite,
    },
    /// It has left the barrier at which an array changes protocol. If the new protocol alone keeps
    /// blocks consistent, the node that allocated the array has valid copies of all elements.
    Switched {
        /// The array, and how it lies in blocks.
        blocks: ArrayBlocks,
        /// The node that allocated the array.
        creator: NodeId,
        /// How it was kept consistent when it was allocated.
        allocated: Coherence,
        /// How it is kept consistent from now on.
        to: Coherence,
    },
    /// It does something with an array whose blocks are units.
    Blocks(BlockEvent),
    /// It frees an array.
    Free {
        /// The ids of its blocks, and those behind them that never name one.
        ids: OidRange,
        /// Where in the program.
        site: CallSite,
    },
}
