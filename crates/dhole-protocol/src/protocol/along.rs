//! What comes along with an object that is asked for.

use dhole_model::{Coherence, NodeId, Oid};

use super::Protocol;
use crate::Follow;
use crate::command::{Along, WorkerIs};

impl Protocol {
    /// Asks the node of the next [`Event::ReadMiss`](crate::Event::ReadMiss) to follow references,
    /// and to send along what they lead to.
    pub fn follow(&mut self, follow: Follow) {
        self.coherence.follow(follow);
    }

    /// An object that is asked for owns this one: whether it may go along, up to
    /// [`MOST_ALONG`](crate::MOST_ALONG) in one reply. If so it counts as sent.
    pub fn send_along(&mut self, oid: Oid, to: NodeId, worker: WorkerIs) -> Option<Along> {
        self.coherence.send_along(oid, to, worker)
    }

    /// An object came along with its owner that this node may have met for the first time: it was
    /// allocated to be kept consistent so.
    pub fn meet(&mut self, oid: Oid, allocated: Coherence) {
        self.coherence.meet(oid, allocated);
    }
}
