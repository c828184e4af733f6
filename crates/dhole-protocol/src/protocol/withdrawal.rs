//! Exclusive objects that are withdrawn from a worker that computes, so that a request for one is
//! answered at once.

use dhole_model::Oid;

use super::Protocol;

impl Protocol {
    /// Takes the objects that have become exclusive, or writable as such, since the last time.
    /// Asked when the worker has synchronised: those that [are exclusive](Protocol::is_exclusive)
    /// are expected to be written from then on.
    pub fn take_written_alone(&mut self) -> Vec<Oid> {
        self.coherence.take_written_alone()
    }

    /// Whether the worker may write the object without a call, and no other node is told of it.
    pub fn is_exclusive(&self, oid: Oid) -> bool {
        self.coherence.is_exclusive(oid)
    }

    /// An exclusive object is clean here now, which the worker had not written since it was
    /// expected to be. So it is not exclusive.
    pub fn withdrawn(&mut self, oid: Oid) {
        self.coherence.withdrawn(oid);
    }

    /// Whether the exclusive objects of its chunk are to be [withdrawn](Protocol::withdrawn) with
    /// one: others read in this node's memory what is clean, and not what is exclusive.
    pub fn withdraws_beside(&self) -> bool {
        self.coherence.withdraws_beside()
    }
}
