//! Updates on their way to the owners of elements: see [`combining`](crate::combining).

use dhole_model::{Coherence, NodeId, Oid, VectorTime};

use super::Protocol;
use crate::combining::{CombineRequest, UpdateBatch};
use crate::command::{Command, Commands};
use crate::error::ProtocolError;
use crate::{Message, WriteNotices};

impl Protocol {
    /// Whether updates of other nodes wait until the worker synchronises: then it takes them before
    /// ([`Event::TakeUpdates`](crate::Event::TakeUpdates)).
    pub fn has_updates(&self) -> bool {
        self.combining.has_kept()
    }

    /// Whether elements of an array have an owner, the last writer, that combines them with
    /// updates.
    pub fn has_owners(&self, array: Oid, allocated: Coherence) -> bool {
        let known = self.coherence.arrays.table.coherence(array);
        known.unwrap_or(allocated).properties().announces
    }

    /// The worker sends owners what it has gathered, and waits until they have combined it.
    pub(super) fn combine(
        &mut self,
        batches: Vec<UpdateBatch>,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.coherence.check_combined(&batches)?;
        self.coherence.end_interval(out);
        self.send_updates(batches, None, out)
    }

    /// Sends each owner its updates, and combines those that are this node's own. `from` has sent
    /// them back.
    fn send_updates(
        &mut self,
        batches: Vec<UpdateBatch>,
        from: Option<NodeId>,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let by_owner = self.coherence.by_owner(batches);
        if let Some(from) = from.filter(|from| by_owner.iter().any(|(owner, _)| owner == from)) {
            let what = "updates sent back by the owner of their elements";
            return Err(ProtocolError::BadMessage { from, what });
        }
        for (owner, batches) in by_owner {
            if owner == self.me {
                for batch in batches {
                    let left = self.coherence.combine_here(batch, out);
                    debug_assert!(left.is_none(), "they are this node's own");
                }
                self.coherence.end_interval(out);
                continue;
            }
            let updates = batches.iter().map(|batch| batch.updates.len()).sum();
            let message = Message::Combine(Box::new(CombineRequest {
                number: self.combining.asks(owner, updates),
                time: self.coherence.intervals.time().clone(),
                batches,
            }));
            out.push(Command::Send { to: owner, message });
        }
        if !self.combining.is_open() {
            self.go_on(out);
        }
        Ok(())
    }

    /// Another node sends updates of elements whose last writer it takes this node for.
    pub(super) fn updates_came(
        &mut self,
        from: NodeId,
        combine: CombineRequest,
    ) -> Result<(), ProtocolError> {
        self.coherence.check_combined(&combine.batches)?;
        self.combining.keep(from, combine)
    }

    /// Takes the updates that wait for this node's worker, if the worker is in a wait that
    /// synchronises: its interval has ended.
    pub(super) fn take_updates_in_wait(&mut self, out: &mut Commands) {
        let waits = self.wait_for.current().is_some() || self.combining.is_open();
        if waits && self.has_updates() && !self.over {
            self.take_updates(out);
        }
    }

    /// The worker is about to synchronise: takes the updates that waited for that. Those of all
    /// nodes are one interval. So neighbours that several nodes update are announced once, as one.
    pub(super) fn take_updates(&mut self, out: &mut Commands) {
        self.coherence.end_interval(out);
        let kept = self.combining.take_kept().into_iter();
        let taken = kept.map(|(from, combine)| {
            let combined = combine.batches.into_iter();
            let left = combined.filter_map(|batch| self.coherence.combine_here(batch, out));
            (from, combine.number, combine.time, left.collect())
        });
        let taken: Vec<(NodeId, u32, VectorTime, Vec<UpdateBatch>)> = taken.collect();
        self.coherence.end_interval(out);
        for (to, number, time, left) in taken {
            let message = Message::Combined {
                number,
                news: Box::new(self.coherence.intervals.since(&time)),
                left,
            };
            out.push(Command::Send { to, message });
        }
    }

    /// An owner has combined what it was sent.
    pub(super) fn updates_taken(
        &mut self,
        from: NodeId,
        (number, news, left): (u32, &WriteNotices, Vec<UpdateBatch>),
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.combining.check(from, number, &left)?;
        let records = self.coherence.check(from, news)?;
        self.coherence.apply(news, records, out);
        match self.combining.answered(from, left) {
            Some(left) => self.send_updates(left, Some(from), out),
            None => Ok(()),
        }
    }
}
