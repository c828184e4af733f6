//! Intervals with their write notices, and what a release tells of them.

use std::sync::Arc;

use dhole_model::{Elements, IntervalIndex, MemberId, NodeId, OidRange, VectorTime, Version};
use dhole_wire::Wire;

use crate::ranges::Ranges;
use crate::sync::written_pages::WrittenPages;
use crate::sync_id::BarrierId;

/// An interval of one node that wrote something: its write notices (DOSA, section 3.1).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct Interval {
    /// The node that wrote.
    pub node: NodeId,
    /// The first of the intervals of that node that this one stands for: what those before
    /// `index` wrote, later ones wrote again. As a rule `index` itself.
    pub first: IntervalIndex,
    /// The interval's number on that node.
    pub index: IntervalIndex,
    /// Its Lamport time; with `node`, the version of everything it wrote.
    pub lamport: u64,
    /// The objects written, in ascending order; where there is a base, those that it did not
    /// write.
    #[wire(with = Ranges)]
    pub written: Vec<OidRange>,
    /// The earlier interval against which this one is told.
    pub base: Option<Base>,
    /// The elements of arrays written, in ascending order.
    pub elements: Vec<Elements>,
    /// The ids freed, of objects and of the blocks of arrays, in ascending order. Ranges that
    /// touch are one, whatever was freed there.
    #[wire(with = Ranges)]
    pub freed: Vec<OidRange>,
    /// What protocols attach to it, of which intervals, locks and barriers know nothing.
    pub attached: Attached,
}

/// What protocols attach to an interval.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Wire)]
pub enum Attached {
    /// Nothing.
    #[default]
    Nothing,
    /// The pages written, in a run that keeps pages consistent.
    Pages(Arc<WrittenPages>),
    /// Notices of protocols that the program brings, in the order of their numbers.
    Notices(Vec<MemberNotice>),
}

/// What a protocol that the program brings attaches to an interval.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct MemberNotice {
    /// The protocol.
    pub member: MemberId,
    /// The notice, in the protocol's own form.
    pub body: Arc<[u8]>,
}

impl Attached {
    /// The pages written, if any were.
    pub fn pages(&self) -> Option<&Arc<WrittenPages>> {
        match self {
            Attached::Pages(pages) => Some(pages),
            _ => None,
        }
    }

    /// The notices of protocols that the program brings.
    pub fn notices(&self) -> &[MemberNotice] {
        match self {
            Attached::Notices(notices) => notices,
            _ => &[],
        }
    }
}

/// What an interval is told against. Its list of written objects holds those that the base did not
/// write.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct Base {
    /// The number of an earlier interval of the same node.
    pub index: IntervalIndex,
    /// The objects that it wrote and the interval did not, in ascending order.
    #[wire(with = Ranges)]
    pub unwritten: Vec<OidRange>,
}

impl Interval {
    /// The version of the objects that this interval wrote.
    pub fn version(&self) -> Version {
        Version {
            lamport: self.lamport,
            node: self.node,
        }
    }
}

/// What a releaser tells an acquirer: everything that happened before the release and that the
/// acquirer has not seen.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct WriteNotices {
    /// What the releaser had seen.
    pub time: VectorTime,
    /// The releaser's Lamport time.
    pub lamport: u64,
    /// The intervals that the acquirer lacks; those of one node in ascending order.
    pub intervals: Vec<Arc<Interval>>,
}

impl WriteNotices {
    /// All ids that it names: of objects, and the first ones of arrays.
    pub fn ids(&self) -> impl Iterator<Item = OidRange> {
        self.intervals.iter().flat_map(|interval| {
            let unwritten = interval.base.iter().flat_map(|base| &base.unwritten);
            let objects = interval.written.iter().chain(&interval.freed);
            let arrays = interval.elements.iter();
            let arrays = arrays.map(|elements| OidRange::one(elements.array));
            objects.chain(unwritten).copied().chain(arrays)
        })
    }

    /// Bytes of the intervals in a message.
    pub fn notice_bytes(&self) -> u64 {
        let each = self.intervals.iter().map(|interval| interval.wire_len());
        each.sum::<usize>() as u64
    }
}

/// An interval that a node has not told of at a barrier, where another one has seen it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Wire)]
pub struct Untold {
    /// The barrier.
    pub barrier: BarrierId,
    /// Who has seen it, or says so.
    pub by: NodeId,
    /// Its number.
    pub index: IntervalIndex,
}
