//! Arrays whose blocks are units of a member.

use dhole_model::{Coherence, Oid};

use super::Protocol;

impl Protocol {
    /// Whether an array is kept consistent by blocks ([`BlockEvent`](crate::BlockEvent)), which was
    /// allocated under this protocol.
    pub fn keeps_blocks(&self, array: Oid, allocated: Coherence) -> bool {
        self.coherence.member_of_array(array, allocated).is_some()
    }
}
