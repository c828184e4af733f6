//! Flushes: what was written of objects that have a home goes there before its writer synchronises,
//! and members do what they must.

use std::ops::Range;

use dhole_model::{NodeId, VectorTime};

use super::Protocols;
use crate::FlushedAt;
use crate::coherence::races::Changed;
use crate::coherence::rules::PROTOCOLS;
use crate::command::{Command, Commands};
use crate::error::ProtocolError;

impl Protocols {
    /// The worker is about to synchronise: each protocol does what it must before.
    pub fn before_release(&mut self, out: &mut Commands) {
        for protocol in PROTOCOLS {
            protocol.before_release(self, out);
        }
        self.released(out);
    }

    /// The worker synchronises once no protocol has anything left to do before: all homes have
    /// acknowledged its objects and its elements, and all that keep copies know of it.
    pub(crate) fn released(&mut self, out: &mut Commands) {
        if !PROTOCOLS.iter().any(|it| it.is_releasing(self)) {
            self.members.settle();
            out.push(Command::Done);
        }
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
