//! Updates of elements that their owner combines with what they are: sums, minima, and the like.
//!
//! A node gathers updates while it computes. Before it synchronises it sends each owner, which is
//! the element's last writer, one message with all of them (Chapel's aggregators; Lamellar's
//! batched operations). The owner combines them with its elements, ends its interval, and answers
//! with the write notices that the sender lacks. The sender applies these notices, and goes on
//! when all owners have answered. So whatever it releases then tells of the owners' intervals too.
//!
//! An owner takes a message at once while its worker is in a wait that synchronises. Otherwise it
//! keeps the message, at most one from each node, until its worker synchronises. Elements of which
//! the owner knows a later writer go back to the sender with the notices, and on to that writer.

use dhole_model::{CallSite, Coherence, NodeId, Oid, VectorTime};
use dhole_wire::Wire;

use crate::ProtocolError;

/// The most updates of one message.
pub const MOST_UPDATES: usize = 1 << 16;

/// Updates of elements of one array.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct UpdateBatch {
    /// The array.
    pub array: Oid,
    /// The node that allocated it.
    pub creator: NodeId,
    /// How the array is kept consistent, unless it was switched since.
    pub coherence: Coherence,
    /// How an element and its update become one: the engine's number of operator and type.
    pub combining: u8,
    /// Where in the program.
    pub site: CallSite,
    /// Places in ascending order, each once, and what is combined with the element there, as bits.
    pub updates: Vec<(u64, u64)>,
}

/// Asks the owner of elements to combine them with updates.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct CombineRequest {
    /// The sender's number of it; the answer repeats it.
    pub number: u32,
    /// What the sender has seen.
    pub time: VectorTime,
    /// The updates, at least one.
    pub batches: Vec<UpdateBatch>,
}

impl CombineRequest {
    /// How many updates.
    fn updates(&self) -> usize {
        self.batches.iter().map(|batch| batch.updates.len()).sum()
    }
}

/// One node's part in it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Combining {
    number: u32,
    /// Who has yet to answer, and how many updates each has.
    awaited: Vec<(NodeId, usize)>,
    /// What owners sent back, for later writers.
    left: Vec<UpdateBatch>,
    /// Messages that wait until the worker synchronises, at most one from each node.
    kept: Vec<(NodeId, CombineRequest)>,
}

impl Combining {
    /// Whether the worker waits for owners.
    pub fn is_open(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Begins a message to an owner; its number.
    pub fn asks(&mut self, owner: NodeId, updates: usize) -> u32 {
        if !self.is_open() {
            self.number = self.number.wrapping_add(1);
        }
        self.awaited.push((owner, updates));
        self.number
    }

    /// Whether a message may be an answer.
    pub fn check(
        &self,
        from: NodeId,
        number: u32,
        left: &[UpdateBatch],
    ) -> Result<(), ProtocolError> {
        let sent_back: usize = left.iter().map(|batch| batch.updates.len()).sum();
        let of = self.awaited.iter().find(|(owner, _)| *owner == from);
        match of {
            Some((_, updates)) if number == self.number && sent_back <= *updates => Ok(()),
            _ => {
                let what = "an answer about updates that it was not sent";
                Err(ProtocolError::BadMessage { from, what })
            }
        }
    }

    /// An owner has answered. When all have: what they sent back.
    pub fn answered(&mut self, from: NodeId, left: Vec<UpdateBatch>) -> Option<Vec<UpdateBatch>> {
        self.awaited.retain(|(owner, _)| *owner != from);
        self.left.extend(left);
        let all = !self.is_open();
        all.then(|| std::mem::take(&mut self.left))
    }

    /// Keeps a message until the worker synchronises.
    pub fn keep(&mut self, from: NodeId, combine: CombineRequest) -> Result<(), ProtocolError> {
        if self.kept.iter().any(|(other, _)| *other == from) {
            let what = "updates while its first ones wait";
            return Err(ProtocolError::BadMessage { from, what });
        }
        self.kept.push((from, combine));
        Ok(())
    }

    /// Whether messages wait for the worker.
    pub fn has_kept(&self) -> bool {
        !self.kept.is_empty()
    }

    /// The messages that waited.
    pub fn take_kept(&mut self) -> Vec<(NodeId, CombineRequest)> {
        std::mem::take(&mut self.kept)
    }
}

/// What makes no sense in updates.
pub(crate) fn check_batches(batches: &[UpdateBatch], nodes: usize) -> Result<(), &'static str> {
    let are_sound = |batch: &UpdateBatch| {
        let places = &batch.updates;
        !places.is_empty()
            && places.is_sorted_by(|one, next| one.0 < next.0)
            && places[places.len() - 1].0 < u64::MAX
            && batch.creator.index() < nodes
    };
    match batches.iter().all(are_sound) {
        true => Ok(()),
        false => Err("updates of no elements, or of elements that are not in order"),
    }
}

/// What makes no sense in a request.
pub(crate) fn check_combine(combine: &CombineRequest, nodes: usize) -> Result<(), &'static str> {
    if combine.time.nodes() != nodes {
        return Err("a vector time of a cluster of another size");
    }
    if !(1..=MOST_UPDATES).contains(&combine.updates()) {
        return Err("no updates, or more than one message may have");
    }
    check_batches(&combine.batches, nodes)
}
