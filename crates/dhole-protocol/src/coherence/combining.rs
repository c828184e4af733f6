//! Elements that their owner combines with updates of other nodes.

use dhole_model::{Elements, NodeId};

use super::Protocols;
use crate::RegionCommand;
use crate::coherence::region::Table;
use crate::combining::UpdateBatch;
use crate::command::{Command, Commands};
use crate::error::ProtocolError;

/// The first updates of these whose places are below `end`; the rest stays.
fn split_below<'a>(updates: &mut &'a [(u64, u64)], end: u64) -> &'a [(u64, u64)] {
    let below = updates.partition_point(|(place, _)| *place < end);
    let (these, rest) = updates.split_at(below);
    *updates = rest;
    these
}

impl Protocols {
    /// Whether arrays may be combined with updates, as far as it is known here.
    ///
    /// # Errors
    /// [`ProtocolError::Freed`] when one of them was freed.
    pub fn check_combined(&self, batches: &[UpdateBatch]) -> Result<(), ProtocolError> {
        let mut arrays = batches.iter().map(|batch| batch.array);
        arrays.try_for_each(|array| self.arrays.check_not_freed(array))
    }

    /// Updates by the last writer of their elements.
    pub fn by_owner(&mut self, batches: Vec<UpdateBatch>) -> Vec<(NodeId, Vec<UpdateBatch>)> {
        let mut all = Vec::<(NodeId, Vec<UpdateBatch>)>::new();
        for batch in batches {
            self.arrays.table.meet(batch.array, batch.coherence);
            let mut owners = Vec::<(NodeId, Vec<(u64, u64)>)>::new();
            let mut updates = &batch.updates[..];
            self.arrays.table.each(span(&batch), |part, state| {
                let these = split_below(&mut updates, part.range().end);
                if these.is_empty() {
                    return;
                }
                let owner = state.known(batch.creator).node;
                match owners.iter_mut().find(|(other, _)| *other == owner) {
                    Some((_, updates)) => updates.extend(these),
                    None => owners.push((owner, these.to_vec())),
                }
            });
            for (owner, updates) in owners {
                let batch = UpdateBatch {
                    updates,
                    ..batch.clone()
                };
                match all.iter_mut().find(|(other, _)| *other == owner) {
                    Some((_, batches)) => batches.push(batch),
                    None => all.push((owner, vec![batch])),
                }
            }
        }
        all
    }

    /// Combines the elements with updates whose last writer is this node, as far as it knows, as if
    /// its worker wrote them. The other updates.
    pub fn combine_here(
        &mut self,
        mut batch: UpdateBatch,
        out: &mut Commands,
    ) -> Option<UpdateBatch> {
        let (me, array) = (self.me, batch.array);
        self.arrays.table.meet(array, batch.coherence);
        let (mut here, mut left) = (Vec::new(), Vec::new());
        let mut updates = &batch.updates[..];
        self.arrays.table.each(span(&batch), |part, state| {
            let these = split_below(&mut updates, part.range().end);
            match state.known(batch.creator).node == me {
                true => here.extend(these),
                false => left.extend(these),
            }
        });
        let follow = |one: &(u64, u64), next: &(u64, u64)| one.0 + 1 == next.0;
        for run in here.chunk_by(follow) {
            let run = Elements::new(array, run[0].0..run[run.len() - 1].0 + 1);
            self.arrays.table.update(run, |part, state| {
                // Only what nobody has written is not here.
                if !state.is_valid() {
                    let version = state.known(me);
                    state.hold(version);
                    out.push(Command::Array(RegionCommand::ZeroFill(part)));
                }
            });
            self.write_elements(run, batch.site, out);
        }
        if !here.is_empty() {
            out.push(Command::Combine {
                array,
                combining: batch.combining,
                updates: here,
            });
        }
        (!left.is_empty()).then(|| {
            batch.updates = left;
            batch
        })
    }
}

/// From the first element to the last.
fn span(batch: &UpdateBatch) -> Elements {
    let places = &batch.updates;
    let first = places.first().map_or(0, |(place, _)| *place);
    let end = places.last().map_or(0, |(place, _)| *place + 1);
    Elements::new(batch.array, first..end)
}
