//! What goes into the arrays' part of a protocol, and what comes out of it.

use std::sync::Arc;

use dhole_model::{CallSite, Coherence, Elements, NodeId, OidRange, Version};
use dhole_wire::Wire;
use smallvec::SmallVec;

use crate::FlushedAt;
use crate::array_blocks::BlockEvent;

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
}

/// Something that the worker does with an array.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ArrayEvent {
    /// It has allocated an array and stored the first values of these elements.
    Allocated {
        /// The elements: all of them.
        elements: Elements,
        /// How they are kept consistent.
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
    /// It has left the barrier at which an array changes protocol.
    Switched {
        /// All elements.
        array: Elements,
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

/// Elements asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct WantedElements {
    /// The elements.
    pub elements: Elements,
    /// The oldest version that will do.
    pub need: Version,
}

/// Elements sent; their bytes follow in the payload, in the order of the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct SentElements {
    /// The elements.
    pub elements: Elements,
    /// The version of the oldest among them.
    pub version: Version,
}

/// Elements pushed to a reader; their bytes follow in the payload, in the order of the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct PushedElements {
    /// The elements, and the version of their bytes.
    pub sent: SentElements,
    /// How many bytes, a multiple of the number of elements.
    pub bytes: u64,
}

/// Elements flushed to their home; their bytes follow in the payload, in the order of the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct FlushedElements {
    /// The elements, all of which were written.
    pub elements: Elements,
    /// How many bytes.
    pub bytes: u64,
}

/// Something that the node is to do with an array.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ArrayCommand {
    /// Gather the bytes of elements and send them as a
    /// [`Message::ElementsReply`](crate::Message::ElementsReply).
    Reply {
        /// The asker.
        to: NodeId,
        /// The asker's round.
        round: u32,
        /// The elements.
        sent: SmallVec<[SentElements; 1]>,
        /// Whether the asker is to keep its copies of them over acquires.
        keep: bool,
    },
    /// Take the next elements' bytes out of the payload and make them readable.
    Install(SentElements),
    /// Make elements readable that nobody has written: zeros.
    ZeroFill(Elements),
    /// Make elements unreadable; their bytes stay.
    Invalidate(Elements),
    /// Make readable elements writable.
    MakeWritable(Elements),
    /// Make writable elements read-only.
    MakeClean(Elements),
    /// Gather the bytes of elements and send them as a
    /// [`Message::UpdateElements`](crate::Message::UpdateElements).
    Push {
        /// A reader of the elements.
        to: NodeId,
        /// The elements.
        sent: SmallVec<[SentElements; 1]>,
    },
    /// Take the next bytes out of the payload and keep them aside.
    Keep {
        /// The elements that they are a copy of.
        elements: Elements,
        /// How many.
        bytes: u64,
    },
    /// Make the copy of these elements that was kept aside the readable one.
    InstallKept(Elements),
    /// Drop the copy of these elements that was kept aside.
    Discard(Elements),
    /// Gather the bytes of elements that were written and send them as a
    /// [`Message::FlushElements`](crate::Message::FlushElements).
    Flush {
        /// The elements' home.
        to: NodeId,
        /// The number of the flush.
        number: u32,
        /// The elements.
        elements: SmallVec<[Elements; 1]>,
        /// When and where they were written, if races are looked for.
        at: Option<Arc<FlushedAt>>,
    },
    /// Keep the payload of this node's flush until it is merged.
    Hold {
        /// The sender.
        from: NodeId,
    },
    /// Put the payload's bytes in the place of elements that are at home here.
    Merge {
        /// The sender.
        from: NodeId,
        /// The elements, in the order of the payload.
        flushed: SmallVec<[FlushedElements; 1]>,
        /// Whether the payload is the one that was [held](ArrayCommand::Hold).
        held: bool,
    },
    /// Forget an array, which was freed.
    Free(OidRange),
    /// Take the next elements' bytes out of the payload and forget them.
    Skip(Elements),
    /// Take what the worker of another node has written of a block out of the payload, and put it
    /// in the place of those elements.
    MergeNext(Elements),
}
