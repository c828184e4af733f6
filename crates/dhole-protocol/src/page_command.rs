//! What goes into the part of a protocol that keeps pages consistent, and what comes out of it.

use dhole_model::{IntervalIndex, NodeId, PageId};
use dhole_wire::Wire;
use smallvec::SmallVec;

/// Something that the worker does with a page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PageEvent {
    /// It touches a page that is not valid here.
    Read {
        /// The page.
        page: PageId,
        /// Whom to ask for a page that nobody is known to have written, if it must not be taken
        /// for zeros.
        creator: Option<NodeId>,
    },
    /// It writes a page that is valid here and not writable.
    Write {
        /// The page.
        page: PageId,
    },
    /// All nodes have what they keep: the diffs and the knowledge that led there may go.
    Collect,
}

/// One writer's changes of one page: which, of whom, and since when they were announced.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct DiffId {
    /// The page.
    pub page: PageId,
    /// The writer.
    pub node: NodeId,
    /// The writer's interval that announced the page; the changes may be those of later ones too.
    pub index: IntervalIndex,
}

/// Diffs of one writer that are asked for: those announced after one interval and up to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct WantedDiffs {
    /// The writer.
    pub node: NodeId,
    /// The asker has those up to this interval.
    pub after: IntervalIndex,
    /// The last interval whose changes are wanted.
    pub up_to: IntervalIndex,
}

/// A diff sent; its bytes follow in the payload, in the order of the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Wire)]
pub struct SentDiff {
    /// The diff.
    pub id: DiffId,
    /// The Lamport time of the interval that announced it.
    pub lamport: u64,
    /// How many bytes.
    pub bytes: u32,
}

/// Whose changes a page contains: those of each of these nodes up to an interval of it.
pub type Applied = SmallVec<[(NodeId, IntervalIndex); 4]>;

/// Something that the node is to do with a page.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum PageCommand {
    /// Zeros are the valid copy of a page that nobody has written.
    ZeroFill(PageId),
    /// Take the page's bytes out of the payload, in place of what is here.
    Install(PageId),
    /// Change the page by a diff that is kept here.
    Apply(DiffId),
    /// The page may be read from now on.
    MakeValid(PageId),
    /// Make the page unreadable; its bytes stay.
    Invalidate(PageId),
    /// Keep a copy of the page as it is now, and make it writable.
    MakeTwin(PageId),
    /// Make a page writable that has a twin.
    MakeWritable(PageId),
    /// Make a writable page read-only; its twin stays.
    Protect(PageId),
    /// Keep how the page differs from its twin, drop the twin, and make the page read-only.
    MakeDiff(DiffId),
    /// Take the next bytes out of the payload and keep them as this diff.
    Keep(SentDiff),
    /// Take the next bytes out of the payload and forget them.
    PassOver(SentDiff),
    /// Gather a page's bytes and send them as a
    /// [`Message::PageReply`](crate::Message::PageReply).
    ReplyPage {
        /// The asker.
        to: NodeId,
        /// The asker's round.
        round: u32,
        /// The page.
        page: PageId,
        /// Whether the twin's bytes are sent in place of the page's.
        twin: bool,
        /// Whose changes they contain.
        applied: Applied,
    },
    /// Send diffs as a [`Message::DiffReply`](crate::Message::DiffReply).
    ReplyDiffs {
        /// The asker.
        to: NodeId,
        /// The asker's round.
        round: u32,
        /// The page.
        page: PageId,
        /// What of the question the answer is complete for.
        got: SmallVec<[WantedDiffs; 1]>,
        /// The diffs, each with its Lamport time.
        diffs: SmallVec<[(DiffId, u64); 2]>,
    },
    /// Forget the copy of a page, and its twin.
    Drop(PageId),
    /// Drop the twin of a page, which becomes read-only.
    DropTwin(PageId),
    /// Forget all diffs.
    ForgetDiffs,
}
