//! The two kinds of regions, objects and elements of arrays: what differs between them under the
//! protocols update and home. Each kind has commands and messages of its own.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use dhole_model::{CallSite, IntervalIndex, NodeId, Oid, Version};
use smallvec::SmallVec;

use crate::coherence::object_table::ObjectTable;
use crate::coherence::races::{RaceFinder, SiteId};
use crate::coherence::region::{Region, Table};
use crate::command::{Command, Commands};
use crate::{Flushed, FlushedAt, Message, Pushed};

/// A kind of regions.
pub(crate) trait Kind: Region {
    /// What a node knows of them.
    type Table: Table<Self>;
    /// What a message says of a region that is pushed.
    type Pushed;
    /// What a message says of a region that is flushed.
    type Flushed: Clone + Eq + Hash + Debug;
    /// Whether what nobody else has had a copy of stays writable at home.
    const STAYS_WRITABLE: bool;
    /// What is wrong with a flush of what is not at home.
    const NOT_AT_HOME: &'static str;

    fn command(it: RegionCommand<Self>) -> Command;
    fn message(it: RegionMessage<Self>) -> Message;
    /// The region that was pushed, its version, and how many bytes it has.
    fn pushed(it: &Self::Pushed) -> (Self, Version, u64);
    /// The region that was flushed.
    fn flushed(it: &Self::Flushed) -> Self;

    /// Looks for races with a flush that is merged next. `written` is what the worker has written
    /// so far at home. Whether the current interval tells of it.
    fn find_races(
        flush: &Flush<Self>,
        written: &[(Self, SiteId)],
        table: &Self::Table,
        races: (&mut RaceFinder, IntervalIndex),
        out: &mut Commands,
    ) -> bool;
}

/// What a node flushes to its home.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Flush<R: Kind> {
    pub from: NodeId,
    pub number: u32,
    pub flushed: SmallVec<[R::Flushed; 1]>,
    pub at: Option<Arc<FlushedAt>>,
}

/// A command of one of the kinds: [`Command`] and [`ArrayCommand`](crate::ArrayCommand) say what
/// it does.
pub(crate) enum RegionCommand<R: Kind> {
    Keep(R, u64),
    Discard(R),
    Compare(R, Option<CallSite>),
    Flush(NodeId, u32, SmallVec<[R; 1]>, Option<Arc<FlushedAt>>),
    Hold(NodeId),
    Merge(Flush<R>, bool),
    MakeClean(R),
    Invalidate(R),
}

/// A message of one of the kinds.
pub(crate) enum RegionMessage<R> {
    DropOut(SmallVec<[R; 1]>),
    FlushAck(u32),
    Outdated(u32, SmallVec<[R; 1]>),
    OutdatedAck(u32),
}

impl Kind for Oid {
    type Table = ObjectTable;
    type Pushed = Pushed;
    type Flushed = Flushed;
    const STAYS_WRITABLE: bool = true;
    const NOT_AT_HOME: &'static str = "a flush of an object that is not at home here";

    #[inline]
    fn command(it: RegionCommand<Oid>) -> Command {
        match it {
            RegionCommand::Keep(oid, bytes) => Command::Keep { oid, bytes },
            RegionCommand::Discard(oid) => Command::Discard(oid),
            RegionCommand::Compare(oid, site) => Command::Compare { oid, site },
            RegionCommand::Flush(to, number, objects, at) => Command::Flush {
                to,
                number,
                objects,
                at,
            },
            RegionCommand::Hold(from) => Command::Hold { from },
            RegionCommand::Merge(flush, held) => Command::Merge {
                from: flush.from,
                flushed: flush.flushed,
                at: flush.at,
                held,
            },
            RegionCommand::MakeClean(oid) => Command::MakeClean(oid),
            RegionCommand::Invalidate(oid) => Command::Invalidate(oid),
        }
    }

    fn message(it: RegionMessage<Oid>) -> Message {
        match it {
            RegionMessage::DropOut(objects) => Message::DropOut { objects },
            RegionMessage::FlushAck(number) => Message::FlushAck { number },
            RegionMessage::Outdated(number, objects) => Message::Outdated { number, objects },
            RegionMessage::OutdatedAck(number) => Message::OutdatedAck { number },
        }
    }

    fn pushed(it: &Pushed) -> (Oid, Version, u64) {
        (it.sent.oid, it.sent.version, it.bytes)
    }

    fn flushed(it: &Flushed) -> Oid {
        it.oid
    }

    /// What the worker has written so far of the same objects is compared before.
    fn find_races(
        flush: &Flush<Oid>,
        written: &[(Oid, SiteId)],
        objects: &ObjectTable,
        (races, _): (&mut RaceFinder, IntervalIndex),
        out: &mut Commands,
    ) -> bool {
        let mut tells = false;
        for &Flushed { oid, .. } in &flush.flushed {
            if objects.get(oid).pre_image {
                let own = written.iter().find(|(other, _)| *other == oid);
                let site = own.and_then(|(_, site)| races.site_of(*site));
                out.push(Command::Compare { oid, site });
                tells = true;
            }
        }
        tells
    }
}
