//! Objects that are asked for, sent, pushed and flushed, as messages name them.

use dhole_model::{CallSite, NodeId, Oid, VectorTime, Version};
use dhole_wire::Wire;
use smallvec::SmallVec;

/// An object asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct Wanted {
    /// The object.
    pub oid: Oid,
    /// The oldest version that will do.
    pub need: Version,
}

/// An object sent; its bytes follow in the payload, in the order of the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct Sent {
    /// The object.
    pub oid: Oid,
    /// The version of the bytes.
    pub version: Version,
}

/// An object pushed to a reader; its bytes follow in the payload, in the order of the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct Pushed {
    /// The object, and the version of the bytes.
    pub sent: Sent,
    /// How many bytes.
    pub bytes: u64,
}

/// An object flushed to its home; its differences follow in the payload, in the order of the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct Flushed {
    /// The object.
    pub oid: Oid,
    /// Bytes of its differences.
    pub bytes: u64,
}

/// The objects of a question. One as a rule, and then nothing is allocated.
pub type WantedList = SmallVec<[Wanted; 1]>;

/// The objects of a reply. One as a rule, and then nothing is allocated.
pub type SentList = SmallVec<[Sent; 1]>;

/// When and where the objects or elements of a flush were written: what races are found by.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct FlushedAt {
    /// What the sender had seen, the interval in which it wrote among it.
    pub time: VectorTime,
    /// Where each of them was first written since the flush before, in the order of the flush.
    pub sites: SmallVec<[Option<CallSite>; 1]>,
}

/// Asks the last writer of objects for their bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct Fetch {
    /// The asker's round; the reply repeats it.
    pub round: u32,
    /// The objects.
    pub wanted: WantedList,
    /// So many of them, the last ones, are asked for only because they lie on the page of one
    /// that is missed. Those that are being written are left out of the reply.
    pub beside: u16,
}

/// Answers a [`Fetch`]; the objects' bytes are the payload.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct FetchReply {
    /// The asker's round.
    pub round: u32,
    /// The objects asked for, and then those that they own.
    pub sent: SentList,
    /// Whether the copies of those asked for, which have a home, stay over acquires.
    pub keep: bool,
}

/// The answer to a [`Fetch`], whose objects are still to be gathered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reply {
    /// The asker.
    pub to: NodeId,
    /// What is said.
    pub message: FetchReply,
    /// Those whose bytes are taken from the copy made before the first write of the current
    /// interval, and not as they are stored.
    pub pre_images: SmallVec<[Oid; 1]>,
}
