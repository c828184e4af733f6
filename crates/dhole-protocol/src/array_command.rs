//! What goes into the arrays' part of a protocol, and what comes out of it.

use dhole_model::{CallSite, Elements, NodeId, Version};
use smallvec::SmallVec;

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
}

/// Something that the worker does with an array.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ArrayEvent {
    /// It has allocated an array and stored the first values of these elements.
    Allocated(Elements),
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
        /// Where in the program.
        site: CallSite,
    },
}

/// Elements asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WantedElements {
    /// The elements.
    pub elements: Elements,
    /// The oldest version that will do.
    pub need: Version,
}

/// Elements sent; their bytes follow in the payload, in the order of the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SentElements {
    /// The elements.
    pub elements: Elements,
    /// The version of the oldest among them.
    pub version: Version,
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
}
