//! Acknowledgements of invalidations at a home: the nodes that keep copies of what was changed are
//! told, and what waits for that goes on once all have said that they know.

use dhole_model::NodeId;

use crate::error::ProtocolError;
use crate::node_set::NodeSet;

/// The changes of which not all have said that they know.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct InvalidationAcks {
    open: Vec<OpenInvalidation>,
    number: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct OpenInvalidation {
    number: u32,
    then: Then,
    awaited: NodeSet,
}

/// What follows when all know of a change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Then {
    /// A node's flush of this number is acknowledged.
    Acknowledge(NodeId, u32),
    /// The home's own flush is over.
    GoOn,
    /// Sections that wait are tried again.
    TrySections,
}

impl InvalidationAcks {
    /// Tells each node what it keeps and was changed: `send` takes the node, the number that its
    /// answer repeats, and what, in ascending order. What follows at once, if there is nothing.
    pub fn invalidate<T: Ord>(
        &mut self,
        mut told: Vec<(NodeId, T)>,
        then: Then,
        mut send: impl FnMut(NodeId, u32, &[(NodeId, T)]),
    ) -> Option<Then> {
        if told.is_empty() {
            return Some(then);
        }
        told.sort_unstable();
        self.number = self.number.wrapping_add(1);
        let mut awaited = NodeSet::default();
        for of_one in told.chunk_by(|one, next| one.0 == next.0) {
            awaited.insert(of_one[0].0);
            send(of_one[0].0, self.number, of_one);
        }
        self.open.push(OpenInvalidation {
            number: self.number,
            then,
            awaited,
        });
        None
    }

    /// A node knows of a change. What follows if all do.
    pub fn acknowledged(
        &mut self,
        from: NodeId,
        number: u32,
    ) -> Result<Option<Then>, ProtocolError> {
        let asked = |invalidation: &OpenInvalidation| {
            invalidation.number == number && invalidation.awaited.contains(from)
        };
        let Some(place) = self.open.iter().position(asked) else {
            let what = "it knows that copies are outdated of which it was not told";
            return Err(ProtocolError::BadMessage { from, what });
        };
        let invalidation = &mut self.open[place];
        invalidation.awaited.remove(from);
        match invalidation.awaited.is_empty() {
            true => Ok(Some(self.open.swap_remove(place).then)),
            false => Ok(None),
        }
    }

    /// Whether the home's own flush waits for others to know.
    pub fn holds_own_flush(&self) -> bool {
        self.open
            .iter()
            .any(|invalidation| invalidation.then == Then::GoOn)
    }
}
