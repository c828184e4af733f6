//! The two kinds of regions, objects and elements of arrays: what differs between them under the
//! protocols lazy, update and home.

use dhole_model::{CallSite, IntervalIndex, NodeId, Oid, Version};

use crate::coherence::object_table::ObjectTable;
use crate::coherence::races::{RaceFinder, SiteId};
use crate::coherence::region::{Region, Table};
use crate::command::{Command, Commands};
use crate::effects::Effects;
use crate::error::ProtocolError;
use crate::transfer::MOST_ALONG;
use crate::{Fetch, Flush, Flushed, RegionCommand, RegionKind, Reply, Sent};

/// A kind of regions.
pub(crate) trait Kind: Region + RegionKind {
    /// What a node knows of them.
    type Table: Table<Self>;
    /// Whether what nobody else has had a copy of stays writable at home.
    const STAYS_WRITABLE: bool;
    /// What is wrong with a flush of what is not at home.
    const NOT_AT_HOME: &'static str;
    /// The most that a reply brings beside what was asked for.
    const MOST_ALONG: usize;

    fn command(it: RegionCommand<Self>) -> Command;
    /// A node asks for this region, in a version of which this node has none.
    fn no_copy(self, from: NodeId, need: Version) -> ProtocolError;

    #[inline]
    fn fetch(to: NodeId, fetch: Fetch<Self>, fx: &mut impl Effects) {
        let message = Self::fetch_message(fetch);
        fx.commands().push(Command::Send { to, message });
    }

    #[inline]
    fn reply(reply: Reply<Self>, fx: &mut impl Effects) {
        fx.commands()
            .push(Self::command(RegionCommand::Reply(reply)));
    }

    #[inline]
    fn install(sent: Sent<Self>, fx: &mut impl Effects) {
        fx.commands()
            .push(Self::command(RegionCommand::Install(sent)));
    }

    #[inline]
    fn make_clean(self, fx: &mut impl Effects) {
        fx.commands()
            .push(Self::command(RegionCommand::MakeClean(self)));
    }

    /// The worker has written a region at home here that has a twin.
    fn compare(self, site: Option<CallSite>) -> Command;

    /// Looks for races with a flush that is merged next. `written` is what the worker has written
    /// so far at home. Whether the current interval tells of it.
    fn find_races(
        from: NodeId,
        flush: &Flush<Self>,
        written: &[(Self, SiteId)],
        table: &Self::Table,
        races: (&mut RaceFinder, IntervalIndex),
        out: &mut Commands,
    ) -> bool;
}

impl Kind for Oid {
    type Table = ObjectTable;
    const STAYS_WRITABLE: bool = true;
    const NOT_AT_HOME: &'static str = "a flush of an object that is not at home here";
    const MOST_ALONG: usize = MOST_ALONG;

    #[inline]
    fn command(it: RegionCommand<Oid>) -> Command {
        Command::Objects(it)
    }

    fn no_copy(self, from: NodeId, need: Version) -> ProtocolError {
        let oid = self;
        ProtocolError::NoCopy { from, oid, need }
    }

    #[inline]
    fn fetch(to: NodeId, fetch: Fetch, fx: &mut impl Effects) {
        fx.fetch(to, fetch);
    }

    #[inline]
    fn reply(reply: Reply, fx: &mut impl Effects) {
        fx.reply(reply);
    }

    #[inline]
    fn install(sent: Sent, fx: &mut impl Effects) {
        fx.install(sent);
    }

    #[inline]
    fn make_clean(self, fx: &mut impl Effects) {
        fx.make_clean(self);
    }

    fn compare(self, site: Option<CallSite>) -> Command {
        Command::Compare { oid: self, site }
    }

    /// What the worker has written so far of the same objects is compared before.
    fn find_races(
        _: NodeId,
        flush: &Flush,
        written: &[(Oid, SiteId)],
        objects: &ObjectTable,
        (races, _): (&mut RaceFinder, IntervalIndex),
        out: &mut Commands,
    ) -> bool {
        let mut tells = false;
        for &Flushed { region: oid, .. } in &flush.flushed {
            if objects.get(oid).pre_image {
                let own = written.iter().find(|(other, _)| *other == oid);
                let site = own.and_then(|(_, site)| races.site_of(*site));
                out.push(oid.compare(site));
                tells = true;
            }
        }
        tells
    }
}
