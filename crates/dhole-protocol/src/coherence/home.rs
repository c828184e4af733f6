//! Jackal's home-based protocol with several writers (Jackal, section 3.1; HLRC), for objects and
//! for elements of arrays.
//!
//! Each object has a *home*, which always has a valid copy and writes it in place. Any other node
//! fetches a copy from there, takes a *twin* at its first write, and puts the object on its *flush
//! list*. Before it releases, acquires or meets others, the list is flushed: the differences
//! between copies and twins go home, in one message for each home, and are acknowledged once they
//! are part of the object there. So whoever acquires later finds them at home. At an acquire all
//! copies of objects at home elsewhere are dropped, but for those that are [retained](retention).
//! There are no write notices. What nobody else has had a copy of is not on the flush list of its
//! home: it stays writable there.
//!
//! What the worker asks to write of an array is known by ranges, so there is no twin and nothing
//! to compare: a flush carries the ranges' bytes, and races are found by the ranges.
//!
//! Who is home is written in a version: `held().node` of every copy.

mod retention;
mod sections;

use std::sync::Arc;

use dhole_model::{IntervalIndex, NodeId, Oid, OidRange, VectorTime};
use smallvec::SmallVec;

use crate::coherence::invalidation_acks::Then;
use crate::coherence::kind::Kind;
use crate::coherence::object_table::ObjectTable;
use crate::coherence::races::{RaceFinder, SiteId};
use crate::coherence::region::{Table, push_region};
use crate::command::{Command, Commands, WorkerIs};
use crate::error::ProtocolError;
use crate::{Flush, Flushed, FlushedAt, Made, RegionCommand, RegionMessage};
use retention::Retention;

/// One node's part of the protocol, for one kind of regions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Home<R: Kind> {
    /// The flush list: regions written since the last flush, and where that was first.
    pub written: Vec<(R, SiteId)>,
    /// Something of the current interval was written or flushed that races are looked for by.
    pub tells: bool,
    /// Valid copies of regions whose home is elsewhere, but for those that are kept.
    cached: Vec<R>,
    retention: Retention<R>,
    /// Counts the flushes.
    flush: u32,
    /// The homes that have not acknowledged it yet.
    awaited: Vec<NodeId>,
    /// The nodes whose flushes wait for a call of the worker that owns the token.
    waiting: Vec<NodeId>,
}

impl<R: Kind> Default for Home<R> {
    fn default() -> Self {
        Home {
            written: Vec::new(),
            tells: false,
            cached: Vec::new(),
            retention: Retention::default(),
            flush: 0,
            awaited: Vec::new(),
            waiting: Vec::new(),
        }
    }
}

impl Home<Oid> {
    /// The worker begins to write an object. Elsewhere than at home that takes a twin; at home
    /// where races are found by it, and then requests are answered from it.
    pub fn write_fault(
        &mut self,
        me: NodeId,
        (oid, site): (Oid, SiteId),
        objects: &mut ObjectTable,
        races: &RaceFinder,
        out: &mut Commands,
    ) {
        let object = objects.get_mut(oid);
        if !object.dirty && !object.exclusive {
            object.dirty = true;
            self.written.push((oid, site));
            let is_home = object.held().is_some_and(|version| version.node == me);
            object.pre_image = is_home && races.wants_twin_at_home(object.is_served());
            let pre_image = !is_home || object.pre_image;
            let region = oid;
            out.push(Oid::command(RegionCommand::MakeWritable {
                region,
                pre_image,
            }));
        }
    }
}

impl<R: Kind> Home<R> {
    /// A copy of a region at home elsewhere has come, perhaps to be kept.
    pub fn cache(&mut self, region: R, keep: bool) {
        if !(keep && self.retention.keep(region)) {
            push_region(&mut self.cached, region);
        }
    }

    /// The worker asks for regions.
    pub fn asks(&mut self) {
        self.retention.asks();
    }

    /// A node fetches regions at home here; whether it is to keep them.
    pub fn fetched(&mut self, from: NodeId, regions: impl Iterator<Item = R> + Clone) -> bool {
        self.retention.fetched(from, regions)
    }

    /// The home of regions says that copies of them are outdated.
    pub fn outdated(
        &mut self,
        (from, number): (NodeId, u32),
        regions: &[R],
        awaited: SmallVec<[R; 1]>,
        out: &mut Commands,
    ) {
        for part in self.retention.outdated(regions, awaited) {
            push_region(&mut self.cached, part);
        }
        let message = R::message(RegionMessage::OutdatedAck { number });
        out.push(Command::Send { to: from, message });
    }

    /// A node knows that its copies are outdated. What follows if all do whom this change tells.
    pub fn knows(
        &mut self,
        from: NodeId,
        number: u32,
        out: &mut Commands,
    ) -> Result<Option<Then>, ProtocolError> {
        let then = self.retention.knows(from, number)?;
        acknowledge::<R>(then, out);
        Ok(then)
    }

    /// The regions with these ids are kept consistent otherwise from now on.
    pub fn switched(&mut self, ids: OidRange) {
        self.retention.switched(ids);
    }

    /// The regions with these ids were freed.
    pub fn forget(&mut self, ids: OidRange) {
        self.retention.forget(ids);
        self.written
            .retain(|(region, _)| !ids.contains(region.id()));
        self.cached.retain(|region| !ids.contains(region.id()));
    }

    /// Whether the flush list has anything on it.
    #[inline]
    pub fn has_written(&self) -> bool {
        !self.written.is_empty()
    }

    /// Whether an acquire drops copies.
    #[inline]
    pub fn has_cached(&self) -> bool {
        !self.cached.is_empty()
    }

    /// Whether homes have yet to acknowledge a flush, or others to know of it.
    pub fn is_flushing(&self) -> bool {
        !self.awaited.is_empty() || self.retention.holds_own_flush()
    }

    /// Sends home what was written since the last flush.
    /// `time` is what this node has seen, the interval that ends among it.
    pub fn flush(
        &mut self,
        (me, time): (NodeId, &VectorTime),
        table: &mut R::Table,
        races: &RaceFinder,
        out: &mut Commands,
    ) {
        let mut by_home: Vec<(NodeId, R, SiteId)> = Vec::with_capacity(self.written.len());
        for (region, site) in self.written.drain(..) {
            table.update(region, |part, state| {
                state.dirty = false;
                if std::mem::take(&mut state.pre_image) {
                    out.push(part.compare(races.site_of(site)));
                    self.tells = true;
                }
                by_home.extend(state.held().map(|version| (version.node, part, site)));
            });
        }
        by_home.sort_unstable();
        by_home.dedup_by(|(to, next, at), (home, last, site)| {
            let is_alike = (*home, *site) == (*to, *at);
            is_alike && last.join(*next).map(|joined| *last = joined).is_some()
        });
        self.flush = self.flush.wrapping_add(1);
        for of_home in by_home.chunk_by(|one, next| one.0 == next.0) {
            let to = of_home[0].0;
            if to != me {
                self.tells |= races.is_looking();
                self.awaited.push(to);
                let at = || FlushedAt {
                    time: time.clone(),
                    sites: of_home.iter().map(|of| races.site_of(of.2)).collect(),
                };
                let at = races.is_looking().then(|| Arc::new(at()));
                let flushed = of_home.iter().map(|(_, region, _)| Flushed {
                    region: *region,
                    bytes: 0,
                });
                let flush = Flush {
                    number: self.flush,
                    flushed: flushed.collect(),
                    at,
                };
                out.push(Command::SendUnits {
                    to: SmallVec::from_elem(to, 1),
                    message: R::message(RegionMessage::Flush(flush)),
                    units: of_home.iter().map(|(_, region, _)| region.unit()).collect(),
                    what: R::FLUSHED,
                });
            }
            let may_stay = R::STAYS_WRITABLE && to == me && races.allows_exclusive();
            for (_, part, _) in of_home {
                table.update(*part, |part, state| {
                    state.exclusive = may_stay && !state.is_served();
                    if !state.exclusive {
                        out.push(R::command(RegionCommand::MakeClean(part)));
                    }
                });
            }
        }
        let own = by_home.iter().filter(|(home, ..)| *home == me);
        let own = own.map(|(_, region, _)| *region);
        self.retention.changed(me, own, Then::GoOn, out);
    }

    /// A home has made what was flushed part of its regions.
    pub fn acknowledged(&mut self, from: NodeId, number: u32) -> Result<(), ProtocolError> {
        let place = self.awaited.iter().position(|home| *home == from);
        let Some(place) = place.filter(|_| number == self.flush) else {
            let what = "an acknowledgement of what was not flushed there";
            return Err(ProtocolError::BadMessage { from, what });
        };
        self.awaited.remove(place);
        Ok(())
    }

    /// At home: another node flushes. While references of the worker may live, that waits.
    pub fn flushed(
        &mut self,
        (me, from, flush): (NodeId, NodeId, Flush<R>),
        worker: WorkerIs,
        table: &R::Table,
        races: (&mut RaceFinder, IntervalIndex),
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let bad = |what| Err(ProtocolError::BadMessage { from, what });
        let is_home = |flushed: &Flushed<R>| table.is_at_home(flushed.region, me);
        if !flush.flushed.iter().all(is_home) {
            return bad(R::NOT_AT_HOME);
        }
        if self.waiting.contains(&from) {
            return bad("a second flush while its first one is open");
        }
        if worker != WorkerIs::InCall {
            self.waiting.push(from);
            let message = R::message(RegionMessage::Flush(flush));
            out.push(Command::DeliverAgain { from, message });
            return Ok(());
        }
        self.tells |= R::find_races(from, &flush, &self.written, table, races, out);
        for (place, &Flushed { region, bytes }) in flush.flushed.iter().enumerate() {
            out.push(R::command(RegionCommand::MergeNext {
                region,
                bytes,
                form: R::FLUSHED,
                made: flush.at.clone().map(|at| Made {
                    by: from,
                    at,
                    place,
                }),
            }));
        }
        let then = Then::Acknowledge(from, flush.number);
        let changed = flush.flushed.iter().map(|it| it.region);
        let then = self.retention.changed(from, changed, then, out);
        acknowledge::<R>(then, out);
        Ok(())
    }

    /// How many flushes wait for the worker.
    #[inline]
    pub fn deferred(&self) -> usize {
        self.waiting.len()
    }

    /// The flush of a node is taken again.
    pub fn undefer(&mut self, from: NodeId) {
        self.waiting.retain(|other| *other != from);
    }

    /// At an acquire: others may have flushed, so what is cached here may be old.
    pub fn drop_cached(&mut self, table: &mut R::Table, out: &mut Commands) {
        for region in self.cached.drain(..) {
            table.update(region, |part, state| {
                debug_assert!(!state.dirty, "{part}: an acquire begins with a flush");
                if state.is_valid() {
                    out.push(R::command(RegionCommand::Invalidate(part)));
                }
                state.exclusive = false;
                state.drop_copy();
            });
        }
    }
}

fn acknowledge<R: Kind>(then: Option<Then>, out: &mut Commands) {
    if let Some(Then::Acknowledge(to, number)) = then {
        let message = R::message(RegionMessage::FlushAck { number });
        out.push(Command::Send { to, message });
    }
}
