//! Arrays that have a home: several nodes write different elements at once, and a release sends
//! home what was written. What the worker asked to write is known by ranges, so there is no twin
//! and nothing to compare: a flush carries the ranges' bytes, and races are found by the ranges.
//! Otherwise as [`home`](crate::coherence::home).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use dhole_model::{
    Coherence, Elements, IntervalIndex, NodeId, Oid, OidRange, RangeSet, VectorTime,
};
use smallvec::SmallVec;

use crate::FlushedAt;
use crate::array_command::{ArrayCommand, FlushedElements};
use crate::coherence::Protocols;
use crate::coherence::arrays::retention::{ElementRetention, acknowledge};
use crate::coherence::arrays::{Arrays, initial};
use crate::coherence::invalidation_acks::Then;
use crate::coherence::races::{self, RaceFinder, SiteId};
use crate::command::{Command, Commands, WorkerIs};
use crate::error::ProtocolError;

/// One node's part of the protocol.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct ElementHome {
    /// The flush list: elements written since the last flush, and where that was first.
    pub written: Vec<(Elements, SiteId)>,
    /// Something of the current interval was written that races are looked for by.
    pub tells: bool,
    /// Copies of elements whose home is elsewhere, but for those that are kept.
    cached: BTreeMap<Oid, RangeSet>,
    pub retention: ElementRetention,
    /// Counts the flushes.
    flush: u32,
    /// The homes that have not acknowledged it yet.
    awaited: Vec<NodeId>,
    /// Flushes that wait for a call of the worker that owns the token; at most one of each node.
    waiting: VecDeque<ElementFlush>,
}

/// What a node flushes to its home.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ElementFlush {
    pub from: NodeId,
    pub number: u32,
    pub flushed: SmallVec<[FlushedElements; 1]>,
    pub at: Option<Arc<FlushedAt>>,
}

impl ElementHome {
    /// A copy of elements at home elsewhere has come, or is kept no more.
    pub fn cache(&mut self, elements: Elements) {
        let cached = self.cached.entry(elements.array).or_default();
        cached.set(elements.range(), true);
    }

    /// The arrays with these ids were freed.
    pub fn forget(&mut self, ids: OidRange) {
        self.written
            .retain(|(elements, _)| !ids.contains(elements.array));
        ids.remove_from(&mut self.cached);
        self.retention.forget(ids);
    }

    /// Whether homes have yet to acknowledge a flush, or others to know of it.
    pub fn is_flushing(&self) -> bool {
        !self.awaited.is_empty() || self.retention.holds_own_flush()
    }

    /// Whether an acquire drops copies.
    pub fn has_cached(&self) -> bool {
        !self.cached.is_empty()
    }

    /// Whether a flush waits for the worker.
    pub fn has_deferred(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl Arrays {
    /// Takes the flushes that waited for the worker.
    pub fn serve_flushes(
        &mut self,
        worker: WorkerIs,
        (races, open): (&mut RaceFinder, IntervalIndex),
        out: &mut Commands,
    ) {
        while worker == WorkerIs::InCall
            && let Some(flush) = self.home.waiting.pop_front()
        {
            self.merge(flush, true, (&mut *races, open), out);
        }
    }

    fn merge(
        &mut self,
        flush: ElementFlush,
        held: bool,
        (races, open): (&mut RaceFinder, IntervalIndex),
        out: &mut Commands,
    ) {
        let ElementFlush {
            from,
            number,
            flushed,
            at,
        } = flush;
        if let Some(at) = at {
            for (FlushedElements { elements, .. }, site) in flushed.iter().zip(&at.sites) {
                if !self.is_freed(elements.array) {
                    let site = site.map_or_else(SiteId::default, |site| races.site(site));
                    let by = (from, at.time.of(from));
                    races.elements_changed_at_home(*elements, by, site, (&at.time, open), out);
                }
            }
        }
        let changed: SmallVec<[Elements; 2]> = flushed.iter().map(|of| of.elements).collect();
        let merge = ArrayCommand::Merge {
            from,
            flushed,
            held,
        };
        out.push(Command::Array(merge));
        let then = Then::Acknowledge(from, number);
        let then = self
            .home
            .retention
            .changed(from, changed.into_iter(), then, out);
        acknowledge(then, out);
    }

    /// The worker begins to write elements that are at home here: nobody flushes them, so races
    /// are looked for at once. `time` is what this node has seen.
    pub(crate) fn writes_at_home(
        &mut self,
        elements: Elements,
        site: SiteId,
        (races, time): (&mut RaceFinder, &VectorTime),
        out: &mut Commands,
    ) {
        self.home.tells = true;
        let open = time.of(self.me) + 1;
        races.elements_changed_at_home(elements, (self.me, open), site, (time, open), out);
    }

    /// Sends home what was written since the last flush. `time` is what this node has seen, the
    /// interval that ends among it.
    pub fn flush(&mut self, time: &VectorTime, races: &RaceFinder, out: &mut Commands) {
        let mut by_home: Vec<(NodeId, Elements, SiteId)> = Vec::new();
        for (elements, site) in std::mem::take(&mut self.home.written) {
            self.update(elements, |part, state| {
                state.dirty = false;
                by_home.extend(state.held().map(|version| (version.node, part, site)));
                out.push(Command::Array(ArrayCommand::MakeClean(part)));
            });
        }
        by_home.sort_unstable();
        self.home.flush = self.home.flush.wrapping_add(1);
        for of_home in by_home.chunk_by(|one, next| one.0 == next.0) {
            let to = of_home[0].0;
            if to == self.me {
                continue;
            }
            let mut written = Vec::with_capacity(of_home.len());
            of_home
                .iter()
                .for_each(|(_, part, site)| races::push(&mut written, *part, *site));
            self.home.tells |= races.is_looking();
            let at = || FlushedAt {
                time: time.clone(),
                sites: written.iter().map(|of| races.site_of(of.1)).collect(),
            };
            out.push(Command::Array(ArrayCommand::Flush {
                to,
                number: self.home.flush,
                at: races.is_looking().then(|| Arc::new(at())),
                elements: written.iter().map(|(elements, _)| *elements).collect(),
            }));
            self.home.awaited.push(to);
        }
        let own = by_home.iter().filter(|(home, ..)| *home == self.me);
        let own = own.map(|(_, part, _)| *part);
        self.home.retention.changed(self.me, own, Then::GoOn, out);
    }

    /// At home: another node flushes. While references of the worker may live, that waits.
    pub fn flushed(
        &mut self,
        flush: ElementFlush,
        worker: WorkerIs,
        (races, open): (&mut RaceFinder, IntervalIndex),
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let from = flush.from;
        let is_home = |flushed: &FlushedElements| {
            let mut states = self.states(flushed.elements);
            self.is_freed(flushed.elements.array) || states.all(|s| s.is_held_by(self.me))
        };
        if !flush.flushed.iter().all(is_home) {
            let what = "a flush of elements that are not at home here";
            return Err(ProtocolError::BadMessage { from, what });
        }
        if self.home.waiting.iter().any(|other| other.from == from) {
            let what = "a second flush while its first one is open";
            return Err(ProtocolError::BadMessage { from, what });
        }
        if worker == WorkerIs::InCall {
            self.merge(flush, false, (races, open), out);
        } else {
            self.home.waiting.push_back(flush);
            out.push(Command::Array(ArrayCommand::Hold { from }));
            out.push(Command::Deferred);
        }
        Ok(())
    }

    /// A home has made what was flushed part of its elements.
    fn acknowledged(&mut self, from: NodeId, number: u32) -> Result<(), ProtocolError> {
        let home = &mut self.home;
        let place = home.awaited.iter().position(|home| *home == from);
        let Some(place) = place.filter(|_| number == home.flush) else {
            let what = "an acknowledgement of what was not flushed there";
            return Err(ProtocolError::BadMessage { from, what });
        };
        home.awaited.remove(place);
        Ok(())
    }

    /// At an acquire: others may have flushed, so what is cached here may be old.
    pub fn drop_cached(&mut self, out: &mut Commands) {
        for (array, cached) in std::mem::take(&mut self.home.cached) {
            for (range, _) in cached.of(0..u64::MAX).filter(|(_, is_cached)| *is_cached) {
                self.update(Elements::new(array, range), |part, state| {
                    debug_assert!(!state.dirty, "{part}: an acquire begins with a flush");
                    if state.is_valid() {
                        out.push(Command::Array(ArrayCommand::Invalidate(part)));
                    }
                    state.drop_copy();
                });
            }
        }
    }

    /// Before the barrier at which an array gets a home: what nobody has written gets its zeros
    /// where the array was allocated.
    pub fn before_switch(&mut self, array: Elements, creator: NodeId, out: &mut Commands) {
        if creator != self.me || self.is_freed(array.array) {
            return;
        }
        self.update(array, |part, state| {
            if state.held().is_none() && state.known(creator) == initial(creator) {
                state.hold(initial(creator));
                out.push(Command::Array(ArrayCommand::ZeroFill(part)));
            }
        });
    }

    /// After it: the array is kept consistent so from now on.
    pub(crate) fn switch(
        &mut self,
        array: Elements,
        creator: NodeId,
        [allocated, to]: [Coherence; 2],
        out: &mut Commands,
    ) {
        let known = self.arrays.entry(array.array).or_default();
        let before = known.coherence.replace(to).unwrap_or(allocated);
        known.had_home |= before == Coherence::Home;
        self.readers.forget(array);
        self.inbox.forget(array, out);
        self.home.retention.switched(array.array);
        let me = self.me;
        self.update(array, |part, state| {
            // A node that left the barrier before this one may have asked for the elements.
            state.serve();
            if std::mem::take(&mut state.exclusive) {
                out.push(Command::Array(ArrayCommand::MakeClean(part)));
            }
            if to == Coherence::Home && state.known(creator).node != me {
                if state.is_valid() {
                    out.push(Command::Array(ArrayCommand::Invalidate(part)));
                }
                state.drop_copy();
            }
        });
    }
}

impl Protocols {
    /// A node flushes elements that are at home here.
    pub fn elements_flushed(
        &mut self,
        flush: ElementFlush,
        worker: WorkerIs,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.check_flushed_at(flush.from, flush.at.as_deref())?;
        let open = self.intervals.open();
        self.arrays
            .flushed(flush, worker, (&mut self.races, open), out)
    }

    /// A home has acknowledged elements.
    pub fn elements_are_home(
        &mut self,
        from: NodeId,
        number: u32,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.arrays.acknowledged(from, number)?;
        self.is_home(out);
        Ok(())
    }
}
