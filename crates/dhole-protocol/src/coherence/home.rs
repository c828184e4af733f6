//! Jackal's home-based protocol with several writers (Jackal, section 3.1; HLRC).
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
//! Who is home is written in an object's version: `held().node` of every copy.

mod retention;

use std::collections::VecDeque;
use std::sync::Arc;

use dhole_model::{NodeId, Oid, VectorTime};
use smallvec::SmallVec;

use crate::coherence::invalidation_acks::Then;
use crate::coherence::object_table::ObjectTable;
use crate::coherence::races::{RaceFinder, SiteId};
use crate::command::{Command, Commands, WorkerIs};
use crate::error::ProtocolError;
use crate::{Flushed, FlushedAt, Message};
use retention::Retention;

/// One node's part of the protocol.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Home {
    /// The flush list: objects written since the last flush, and where that was first.
    written: Vec<(Oid, SiteId)>,
    /// Something of the current interval was flushed that races are looked for by.
    pub tells: bool,
    /// Valid copies of objects whose home is elsewhere.
    cached: Vec<Oid>,
    retention: Retention,
    /// Counts the flushes.
    flush: u32,
    /// The homes that have not acknowledged it yet.
    awaited: Vec<NodeId>,
    /// Flushes that wait for a call of the worker that owns the token; at most one of each node.
    waiting: VecDeque<Flush>,
}

/// What a node flushes to its home.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Flush {
    pub from: NodeId,
    pub number: u32,
    pub flushed: SmallVec<[Flushed; 1]>,
    pub at: Option<Arc<FlushedAt>>,
}

impl Home {
    /// A copy of an object at home elsewhere has come, perhaps to be kept.
    pub fn cache(&mut self, oid: Oid, keep: bool) {
        if !(keep && self.retention.keep(oid)) {
            self.cached.push(oid);
        }
    }

    /// The worker asks for objects.
    pub fn asks(&mut self) {
        self.retention.asks();
    }

    /// A node fetches objects at home here; whether it is to keep them.
    pub fn fetched(&mut self, from: NodeId, objects: impl Iterator<Item = Oid> + Clone) -> bool {
        self.retention.fetched(from, objects)
    }

    /// The home of objects says that copies of them are outdated.
    pub fn outdated(
        &mut self,
        (from, number): (NodeId, u32),
        objects: &SmallVec<[Oid; 1]>,
        awaited: impl Fn(Oid) -> bool,
        out: &mut Commands,
    ) {
        let Home {
            retention, cached, ..
        } = self;
        cached.extend(retention.outdated(objects, awaited));
        let message = Message::OutdatedAck { number };
        out.push(Command::Send { to: from, message });
    }

    /// A node knows that its copies are outdated. Whether all do whom this node's own flush tells.
    pub fn knows(
        &mut self,
        from: NodeId,
        number: u32,
        out: &mut Commands,
    ) -> Result<bool, ProtocolError> {
        let then = self.retention.knows(from, number)?;
        acknowledge(then, out);
        Ok(then == Some(Then::GoOn))
    }

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
            out.push(Command::MakeWritable {
                oid,
                pre_image: !is_home || object.pre_image,
            });
        }
    }

    /// The copy here is kept consistent otherwise from now on.
    pub fn switched(&mut self, oid: Oid) {
        self.retention.forget(oid);
    }

    /// An object was freed.
    pub fn forget(&mut self, oid: Oid) {
        self.retention.free(oid);
        self.written.retain(|(other, _)| *other != oid);
        self.cached.retain(|other| *other != oid);
    }

    /// Whether the flush list has anything on it.
    pub fn has_written(&self) -> bool {
        !self.written.is_empty()
    }

    /// Whether an acquire drops copies.
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
        objects: &mut ObjectTable,
        races: &RaceFinder,
        out: &mut Commands,
    ) {
        let mut by_home: Vec<(NodeId, Oid, SiteId)> = Vec::with_capacity(self.written.len());
        for (oid, site) in self.written.drain(..) {
            let object = objects.get_mut(oid);
            object.dirty = false;
            if std::mem::take(&mut object.pre_image) {
                let site = races.site_of(site);
                out.push(Command::Compare { oid, site });
                self.tells = true;
            }
            by_home.extend(object.held().map(|version| (version.node, oid, site)));
        }
        by_home.sort_unstable();
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
                out.push(Command::Flush {
                    to,
                    number: self.flush,
                    objects: of_home.iter().map(|(_, oid, _)| *oid).collect(),
                    at: races.is_looking().then(|| Arc::new(at())),
                });
            }
            for (_, oid, _) in of_home {
                let object = objects.get_mut(*oid);
                object.exclusive = to == me && !object.is_served() && races.allows_exclusive();
                if !object.exclusive {
                    out.push(Command::MakeClean(*oid));
                }
            }
        }
        let own = by_home.iter().filter(|(home, ..)| *home == me);
        let own = own.map(|(_, oid, _)| *oid);
        self.retention.changed(me, own, Then::GoOn, out);
    }

    /// A home has made what was flushed part of its objects.
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
        waiting: Flush,
        worker: WorkerIs,
        objects: &ObjectTable,
        races: &RaceFinder,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let from = waiting.from;
        if self.waiting.iter().any(|other| other.from == from) {
            let what = "a second flush while its first one is open";
            return Err(ProtocolError::BadMessage { from, what });
        }
        if worker == WorkerIs::InCall {
            self.merge(waiting, false, objects, races, out);
        } else {
            self.waiting.push_back(waiting);
            out.push(Command::Hold { from });
            out.push(Command::Deferred);
        }
        Ok(())
    }

    /// Whether a flush waits for the worker.
    pub fn has_deferred(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the flushes that waited for the worker.
    pub fn serve(
        &mut self,
        worker: WorkerIs,
        objects: &ObjectTable,
        races: &RaceFinder,
        out: &mut Commands,
    ) {
        while worker == WorkerIs::InCall
            && let Some(waiting) = self.waiting.pop_front()
        {
            self.merge(waiting, true, objects, races, out);
        }
    }

    /// What the worker has written so far of the same objects is compared before.
    fn merge(
        &mut self,
        flush: Flush,
        held: bool,
        objects: &ObjectTable,
        races: &RaceFinder,
        out: &mut Commands,
    ) {
        let Flush {
            from,
            number,
            flushed,
            at,
        } = flush;
        for Flushed { oid, .. } in &flushed {
            if objects.get(*oid).pre_image {
                let own = self.written.iter().find(|(other, _)| other == oid);
                let site = own.and_then(|(_, site)| races.site_of(*site));
                out.push(Command::Compare { oid: *oid, site });
                self.tells = true;
            }
        }
        let changed: SmallVec<[Oid; 1]> = flushed.iter().map(|flushed| flushed.oid).collect();
        out.push(Command::Merge {
            from,
            flushed,
            at,
            held,
        });
        let then = Then::Acknowledge(from, number);
        let then = self.retention.changed(from, changed.into_iter(), then, out);
        acknowledge(then, out);
    }

    /// At an acquire: others may have flushed, so what is cached here may be old.
    pub fn drop_cached(&mut self, objects: &mut ObjectTable, out: &mut Commands) {
        for oid in self.cached.drain(..) {
            let object = objects.get_mut(oid);
            debug_assert!(!object.dirty, "{oid}: an acquire begins with a flush");
            if object.is_valid() {
                out.push(Command::Invalidate(oid));
            }
            object.exclusive = false;
            object.drop_copy();
        }
    }
}

fn acknowledge(then: Option<Then>, out: &mut Commands) {
    if let Some(Then::Acknowledge(to, number)) = then {
        let message = Message::FlushAck { number };
        out.push(Command::Send { to, message });
    }
}
