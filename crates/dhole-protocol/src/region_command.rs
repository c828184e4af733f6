//! What a node is to do with regions.

use std::sync::Arc;

use dhole_model::{NodeId, OidRange};
use smallvec::SmallVec;

use crate::transfer::{Flush, FlushedAt, Reply, Sent, SentList};

/// Something that the node is to do with regions of one kind: objects, or elements of arrays.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum RegionCommand<R> {
    /// Gather the bytes of regions and send them as a [`Message::FetchReply`] or a
    /// [`Message::ElementsReply`]. What objects own goes after them, where
    /// [`Protocol::send_along`](crate::Protocol::send_along) allows it.
    ///
    /// [`Message::FetchReply`]: crate::Message::FetchReply
    /// [`Message::ElementsReply`]: crate::Message::ElementsReply
    Reply(Reply<R>),
    /// Take the next bytes out of the payload and make the copy readable.
    Install(Sent<R>),
    /// Take the next bytes out of the payload and forget them: a valid copy is here.
    Skip(Sent<R>),
    /// Gather the bytes of regions and send them as a
    /// [`RegionMessage::Update`](crate::RegionMessage::Update).
    Push {
        /// A reader of the regions.
        to: NodeId,
        /// The regions.
        sent: SentList<R>,
    },
    /// Take the next bytes out of the payload and keep them aside, in place of older ones.
    Keep {
        /// The region that they are a copy of.
        region: R,
        /// How many.
        bytes: u64,
    },
    /// Make the copy that was kept aside the readable one.
    InstallKept(R),
    /// Drop the copy that was kept aside.
    Discard(R),
    /// Send what the worker has written, as a
    /// [`RegionMessage::Flush`](crate::RegionMessage::Flush): what it has changed in objects
    /// against their pre-images, or the bytes of elements.
    Flush {
        /// The regions' home.
        to: NodeId,
        /// The number of the flush.
        number: u32,
        /// The regions.
        regions: SmallVec<[R; 1]>,
        /// When and where they were written, if races are looked for.
        at: Option<Arc<FlushedAt>>,
    },
    /// Keep the payload of this node's flush until it is merged.
    Hold {
        /// The sender.
        from: NodeId,
    },
    /// Change objects by the differences in the payload, and tell
    /// [`Protocol::changed_at_home`](crate::Protocol::changed_at_home) of each, where the flush
    /// says when. What was compared before gets a new pre-image. Put the payload in the place of
    /// elements.
    Merge {
        /// The sender.
        from: NodeId,
        /// The regions, in the order of the payload.
        flush: Flush<R>,
        /// Whether the payload is the one that was [held](RegionCommand::Hold).
        held: bool,
    },
    /// Make an all-zero copy of a region that nobody has written.
    ZeroFill(R),
    /// Make a copy unreadable; its bytes stay.
    Invalidate(R),
    /// Make a readable copy writable.
    MakeWritable {
        /// The region.
        region: R,
        /// Keep the bytes of an object as they are now until
        /// [`MakeClean`](RegionCommand::MakeClean).
        pre_image: bool,
    },
    /// Make a writable copy read-only, and drop its pre-image.
    MakeClean(R),
    /// Take the next changes out of the payload, and change the region by them: the differences of
    /// an object, or what the worker of another node has written of a block.
    MergeNext {
        /// The region.
        region: R,
        /// How many bytes the changes are.
        bytes: u64,
    },
    /// Forget objects, or an array, which were freed.
    Free(OidRange),
}
