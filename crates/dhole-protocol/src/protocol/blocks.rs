//! Arrays whose blocks are units of a member.

use dhole_model::{Coherence, Oid};

use super::Protocol;
use crate::array_blocks::Unit;

impl Protocol {
    /// Whether an array is kept consistent by blocks ([`BlockEvent`](crate::BlockEvent)), which was
    /// allocated under this protocol.
    pub fn keeps_blocks(&self, array: Oid, allocated: Coherence) -> bool {
        self.coherence.keeps_blocks(array, allocated)
    }

    /// What the worker waits for under protocols that the program brings, and for no other.
    pub fn awaited_of_members(&self) -> impl Iterator<Item = Unit> {
        self.coherence.awaited_of_members()
    }
}
