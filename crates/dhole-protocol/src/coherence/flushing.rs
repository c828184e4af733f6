//! Flushes: what was written of objects that have a home goes there before its writer synchronises.

use std::ops::Range;

use dhole_model::{NodeId, VectorTime};

use super::Protocols;
use crate::FlushedAt;
use crate::coherence::arrays::Arrays;
use crate::coherence::races::Changed;
use crate::command::Commands;
use crate::error::ProtocolError;

impl Protocols {
    /// Sends home what was written of objects that have one.
    pub fn flush(&mut self, out: &mut Commands) {
        let time = self.intervals.open_time();
        let Protocols { me, races, .. } = self;
        let Arrays {
            remembered, table, ..
        } = &mut self.arrays;
        remembered.home.flush((*me, &time), table, races, out);
        self.remembered
            .home
            .flush((*me, &time), &mut self.objects, races, out);
        self.members_release(out);
        self.is_home(out);
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
