//! What a node is to do with regions.

use std::sync::Arc;

use dhole_model::{NodeId, OidRange};

use crate::array_blocks::Behind;
use crate::transfer::{FlushedAt, Reply, Sent};

/// When and where changes of a region were made.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Made {
    /// The node that made them.
    pub by: NodeId,
    /// When and where it made those of a flush.
    pub at: Arc<FlushedAt>,
    /// Which of the flush these are.
    pub place: usize,
}

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
    /// Take the next changes out of the payload, and change the region by them. An object that was
    /// compared before gets a new pre-image.
    MergeNext {
        /// The region.
        region: R,
        /// How many bytes the changes are.
        bytes: u64,
        /// Their form.
        form: Behind,
        /// When and where they were made, if races are looked for: tell
        /// [`Protocol::changed_at_home`](crate::Protocol::changed_at_home) of it.
        made: Option<Made>,
    },
    /// Forget objects, or an array, which were freed.
    Free(OidRange),
}
