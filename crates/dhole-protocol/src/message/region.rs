//! Messages about regions of one kind: objects, or elements of arrays.

use std::fmt::Debug;
use std::hash::Hash;

use dhole_model::{Elements, MessageKind, NodeId, Notify, Oid};
use dhole_wire::Wire;
use smallvec::SmallVec;

use super::check::Checked;
use super::{Message, PayloadOf, check};
use crate::array_blocks::{Behind, Unit};
use crate::transfer::{Fetch, FetchReply, Flush, FlushedAt, Pushed};

/// A kind of regions.
pub trait RegionKind: Copy + Eq + Hash + Debug + Wire {
    /// The message about regions of this kind.
    fn message(it: RegionMessage<Self>) -> Message;

    /// A fetch of regions of this kind.
    fn fetch_message(it: Fetch<Self>) -> Message;

    /// The answer to a fetch of regions of this kind.
    fn reply_message(it: FetchReply<Self>) -> Message;

    /// What of a region goes behind the flush that names it.
    const FLUSHED: Behind;

    /// The region as what goes behind a message.
    fn unit(self) -> Unit;

    /// What makes no sense in the name of a region.
    #[doc(hidden)]
    fn check(&self) -> Checked {
        Ok(())
    }

    /// As above, where the message brings so many bytes of the region.
    #[doc(hidden)]
    fn check_bytes(&self, _bytes: u64) -> Checked {
        Ok(())
    }
}

impl RegionKind for Oid {
    const FLUSHED: Behind = Behind::Changes;

    fn unit(self) -> Unit {
        Unit::Object(self)
    }

    fn message(it: RegionMessage<Oid>) -> Message {
        Message::Region(it)
    }

    fn fetch_message(it: Fetch) -> Message {
        Message::Fetch(it)
    }

    fn reply_message(it: FetchReply) -> Message {
        Message::FetchReply(it)
    }
}

impl RegionKind for Elements {
    const FLUSHED: Behind = Behind::Written;

    fn unit(self) -> Unit {
        Unit::Block(self)
    }

    fn message(it: RegionMessage<Elements>) -> Message {
        Message::Elements(it)
    }

    fn fetch_message(it: Fetch<Elements>) -> Message {
        let Fetch {
            round,
            wanted,
            beside,
            ..
        } = it;
        Message::FetchElements {
            round,
            wanted,
            beside,
        }
    }

    fn reply_message(it: FetchReply<Elements>) -> Message {
        Message::ElementsReply(it)
    }

    fn check(&self) -> Checked {
        check::elements(self)
    }

    fn check_bytes(&self, bytes: u64) -> Checked {
        check::bytes_of(self, bytes)
    }
}

/// A message about regions of one kind.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire, dhole_wire::Message)]
#[message(
    pub(super) fn kind() -> MessageKind,
    pub(super) fn notify() -> Notify = Notify::Lazy,
    pub(super) fn may_end_a_wait() -> bool = false,
    pub(super) fn ends_a_wait() -> bool = false,
    pub(super) fn payload() -> PayloadOf<'_> = PayloadOf::Bytes(0),
    pub(super) fn check(nodes: usize) -> Checked = Ok(()),
)]
pub enum RegionMessage<R: RegionKind = Oid> {
    /// New versions of regions, for a node that read them before; the bytes are the payload.
    #[message(
        kind = MessageKind::Update, payload = Message::parts(pushed.iter().map(|it| it.bytes)),
        check = check_pushed(pushed, nodes),
    )]
    Update {
        /// The regions.
        pushed: SmallVec<[Pushed<R>; 1]>,
    },
    /// The sender does not read what is pushed to it.
    #[message(kind = MessageKind::DropOut, check = check_all(regions))]
    DropOut {
        /// The regions.
        regions: SmallVec<[R; 1]>,
    },
    /// What the sender has changed in regions at home here. The payload is the differences of
    /// objects, or the bytes of elements.
    #[message(
        kind = MessageKind::Flush, notify = Notify::Now,
        payload = Message::parts(it.flushed.iter().map(|it| it.bytes)),
        check = check_flush(it, nodes),
    )]
    Flush(Flush<R>),
    /// What was flushed is part of the regions at their home.
    #[message(kind = MessageKind::FlushAck)]
    FlushAck {
        /// The number of the flush.
        number: u32,
    },
    /// Copies that the receiver keeps over acquires, of regions at home at the sender, are
    /// outdated.
    #[message(
        kind = MessageKind::Outdated, notify = Notify::Now, may_end_a_wait,
        check = check_all(regions),
    )]
    Outdated {
        /// The answer repeats it.
        number: u32,
        /// The regions.
        regions: SmallVec<[R; 1]>,
    },
    /// The sender knows it, and drops them at its next acquire.
    #[message(kind = MessageKind::OutdatedAck, notify = Notify::Now, may_end_a_wait)]
    OutdatedAck {
        /// The number of the [`Outdated`](RegionMessage::Outdated).
        number: u32,
    },
    /// Answers a fetch: one of the objects, or an array, was freed, and nothing is sent.
    #[message(kind = MessageKind::Gone, ends_a_wait, check = check::freed_by(by, nodes))]
    Gone {
        /// The asker's round.
        round: u32,
        /// The object or the array.
        oid: Oid,
        /// Who freed it, if that is still known.
        by: Option<NodeId>,
    },
}

impl<R: RegionKind> RegionMessage<R> {
    /// As [`Message::set_sizes`].
    pub(super) fn set_sizes(&mut self, sizes: &[u64]) {
        match self {
            RegionMessage::Update { pushed } => {
                let each = pushed.iter_mut().zip(sizes);
                each.for_each(|(it, size)| it.bytes = *size);
            }
            RegionMessage::Flush(flush) => {
                let each = flush.flushed.iter_mut().zip(sizes);
                each.for_each(|(it, size)| it.bytes = *size);
            }
            _ => {}
        }
    }
}

fn check_all<R: RegionKind>(all: &[R]) -> Checked {
    all.iter().try_for_each(R::check)
}

fn check_pushed<R: RegionKind>(pushed: &[Pushed<R>], nodes: usize) -> Checked {
    check::versions(pushed.iter().map(|it| it.sent.version), nodes)?;
    let mut all = pushed.iter();
    all.try_for_each(|it| it.sent.region.check_bytes(it.bytes))
}

fn check_flush<R: RegionKind>(flush: &Flush<R>, nodes: usize) -> Checked {
    let said = |at: &FlushedAt| match at.sites.len() == flush.flushed.len() {
        true => check::time(&at.time, nodes),
        false => Err("a flush that does not say of each part where it was written"),
    };
    flush.at.as_deref().map_or(Ok(()), said)?;
    let mut all = flush.flushed.iter();
    all.try_for_each(|it| it.region.check_bytes(it.bytes))
}
