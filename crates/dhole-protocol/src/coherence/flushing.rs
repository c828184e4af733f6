//! Flushes: what was written of objects that have a home goes there before its writer synchronises.

use std::ops::Range;

use dhole_model::{NodeId, Oid, VectorTime};
use smallvec::SmallVec;

use super::Protocols;
use crate::coherence::home::Flush;
use crate::coherence::races::Changed;
use crate::command::{Commands, WorkerIs};
use crate::error::ProtocolError;
use crate::{Flushed, FlushedAt};

impl Protocols {
    /// Sends home what was written of objects that have one.
    pub fn flush(&mut self, out: &mut Commands) {
        let time = self.intervals.open_time();
        self.arrays.flush(&time, &self.races, out);
        let Protocols { objects, races, .. } = self;
        self.home.flush((self.me, &time), objects, races, out);
        self.members_release(out);
        self.is_home(out);
    }

    /// A node flushes what is at home here.
    pub fn flushed(
        &mut self,
        flush: Flush,
        worker: WorkerIs,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let from = flush.from;
        let is_home = |at: &Flushed| {
            let object = self.objects.get(at.oid);
            object.freed || object.is_held_by(self.me)
        };
        let bad = |what| Err(ProtocolError::BadMessage { from, what });
        if !flush.flushed.iter().all(is_home) {
            return bad("a flush of an object that is not at home here");
        }
        self.check_flushed_at(from, flush.at.as_deref())?;
        let Protocols { objects, races, .. } = self;
        self.home.flushed(flush, worker, objects, races, out)
    }

    /// Whether a flush is of an interval that may still go on.
    pub(crate) fn check_flushed_at(
        &self,
        from: NodeId,
        at: Option<&FlushedAt>,
    ) -> Result<(), ProtocolError> {
        match at.is_some_and(|at| at.time.of(from) <= self.intervals.time().of(from)) {
            true => {
                let what = "a flush of an interval that has ended";
                Err(ProtocolError::BadMessage { from, what })
            }
            false => Ok(()),
        }
    }

    /// The home of objects says that copies of them are outdated.
    pub fn outdated(
        &mut self,
        from: NodeId,
        number: u32,
        objects: &SmallVec<[Oid; 1]>,
        out: &mut Commands,
    ) {
        let awaited = |oid| self.fetching.fetches.awaits(|want| want.wanted.oid == oid);
        self.home.outdated((from, number), objects, awaited, out);
    }

    /// A node knows that its copies of what is at home here are outdated.
    pub fn knows(
        &mut self,
        from: NodeId,
        number: u32,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        if self.home.knows(from, number, out)? {
            self.is_home(out);
        }
        Ok(())
    }

    /// Homes have made part of their objects what was flushed there.
    pub fn acknowledged(
        &mut self,
        from: NodeId,
        number: u32,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.home.acknowledged(from, number)?;
        self.is_home(out);
        Ok(())
    }

    /// Leaves of an object at home here were changed, by a node that had seen `time`, or by this
    /// one.
    pub fn changed_at_home(
        &mut self,
        changed: Changed,
        leaves: impl Iterator<Item = Range<u64>>,
        time: Option<&VectorTime>,
        out: &mut Commands,
    ) {
        let open = self.intervals.open_time();
        self.races
            .changed_at_home(changed, leaves, time.unwrap_or(&open), out);
    }
}
