//! Regions that are asked for, sent, pushed and flushed, as messages name them: objects, and
//! elements of arrays.

use std::sync::Arc;

use dhole_model::{CallSite, NodeId, Oid, VectorTime, Version};
use dhole_wire::Wire;
use smallvec::SmallVec;

/// The most that one message asks for, so that no reply grows without bound. What is left is
/// asked for when the reply has come: a node never has two open questions to another one.
pub(crate) const MOST_WANTED: usize = 256;

/// A region asked for: an object, or elements of an array.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct Wanted<R = Oid> {
    /// The region.
    pub region: R,
    /// The oldest version that will do.
    pub need: Version,
}

/// A region sent; its bytes follow in the payload, in the order of the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct Sent<R = Oid> {
    /// The region.
    pub region: R,
    /// The version of the bytes; of elements, that of the oldest among them.
    pub version: Version,
}

/// A region pushed to a reader; its bytes follow in the payload, in the order of the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct Pushed<R = Oid> {
    /// The region, and the version of the bytes.
    pub sent: Sent<R>,
    /// How many bytes; of elements, a multiple of their number.
    pub bytes: u64,
}

/// A region flushed to its home; what was written there follows in the payload, in the order of the
/// list: the differences of an object, or elements, all of which were written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct Flushed<R = Oid> {
    /// The region.
    pub region: R,
    /// How many bytes follow.
    pub bytes: u64,
}

/// The regions of a question. One as a rule, and then nothing is allocated.
pub type WantedList<R = Oid> = SmallVec<[Wanted<R>; 1]>;

/// The regions of a reply. One as a rule, and then nothing is allocated.
pub type SentList<R = Oid> = SmallVec<[Sent<R>; 1]>;

/// What a node has written of regions at home at the receiver; that is the payload.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct Flush<R = Oid> {
    /// The number of the sender's flush; the acknowledgement repeats it.
    pub number: u32,
    /// The regions.
    pub flushed: SmallVec<[Flushed<R>; 1]>,
    /// When and where they were written, if races are looked for.
    pub at: Option<Arc<FlushedAt>>,
}

/// When and where the objects or elements of a flush were written: what races are found by.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct FlushedAt {
    /// What the sender had seen, the interval in which it wrote among it.
    pub time: VectorTime,
    /// Where each of them was first written since the flush before, in the order of the flush.
    pub sites: SmallVec<[Option<CallSite>; 1]>,
}

/// Asks the last writer of regions for their bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct Fetch<R = Oid> {
    /// The asker's round; the reply repeats it.
    pub round: u32,
    /// The regions.
    pub wanted: WantedList<R>,
    /// So many of them, the last ones, are asked for only because they lie on the page of one that
    /// is missed, or are read ahead. Those that are being written are left out of the reply.
    pub beside: u16,
    /// What should go along with the objects.
    pub follow: Follow,
}

impl<R> Fetch<R> {
    /// What its asker waits for.
    pub(crate) fn missed(&self) -> &[Wanted<R>] {
        &self.wanted[..self.wanted.len() - usize::from(self.beside)]
    }
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

/// Answers a [`Fetch`]; the regions' bytes are the payload.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct FetchReply<R = Oid> {
    /// The asker's round.
    pub round: u32,
    /// The regions asked for, and then the objects that go along with them.
    pub sent: SentList<R>,
    /// Whether the copies of those asked for, which have a home, stay over acquires.
    pub keep: bool,
}

/// The answer to a [`Fetch`], whose regions are still to be gathered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reply<R = Oid> {
    /// The asker.
    pub to: NodeId,
    /// What is said.
    pub message: FetchReply<R>,
    /// What should go along.
    pub follow: Follow,
    /// Those whose bytes are taken from the copy made before the first write of the current
    /// interval, and not as they are stored.
    pub pre_images: SmallVec<[R; 1]>,
}
