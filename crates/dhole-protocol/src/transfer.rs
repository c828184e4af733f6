//! Objects that are asked for, sent, pushed and flushed, as messages name them.

use dhole_model::{CallSite, NodeId, Oid, VectorTime, Version};
use dhole_wire::Wire;
use smallvec::SmallVec;

/// The most that one message asks for, so that no reply grows without bound. What is left is
/// asked for when the reply has come: a node never has two open questions to another one.
pub(crate) const MOST_WANTED: usize = 256;

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
    /// What should go along with the objects.
    pub follow: Follow,
}

/// The most objects that go along with those of one reply.
pub const MOST_ALONG: usize = 256;

/// References to follow from the objects that are asked for: what they lead to goes along, if its
/// sender has a valid copy that nobody is writing, the nearest first. Nobody waits for it.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug, Wire)]
pub struct Follow {
    /// So many objects go along at most.
    pub most: u16,
    /// Which references of which types.
    pub references: SmallVec<[FollowedReferences; 1]>,
}

impl Follow {
    /// References of so many types are followed at most.
    pub const MOST_TYPES: usize = 8;

    /// Whether nothing is to go along.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.references.is_empty()
    }

    /// Whether the references in this slot of the objects of a type are followed. The type is given
    /// by its name in all processes, if it has one.
    #[inline]
    pub fn follows(&self, shipped: Option<u32>, slot: usize) -> bool {
        let of_type = |it: &&FollowedReferences| Some(it.shipped) == shipped;
        let followed = self.references.iter().find(of_type);
        slot < FollowedReferences::SLOTS && followed.is_some_and(|it| it.slots >> slot & 1 == 1)
    }
}

/// References to follow in the objects of one type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct FollowedReferences {
    /// The type's name in all processes.
    pub shipped: u32,
    /// One bit for each slot of references in a value of the type.
    pub slots: u64,
}

impl FollowedReferences {
    /// References in the slots from this one on are not followed.
    pub const SLOTS: usize = u64::BITS as usize;
}

/// Answers a [`Fetch`]; the objects' bytes are the payload.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct FetchReply {
    /// The asker's round.
    pub round: u32,
    /// The objects asked for, and then those that go along with them.
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
    /// What should go along.
    pub follow: Follow,
    /// Those whose bytes are taken from the copy made before the first write of the current
    /// interval, and not as they are stored.
    pub pre_images: SmallVec<[Oid; 1]>,
}
