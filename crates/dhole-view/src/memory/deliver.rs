//! Messages about minipages, from other nodes.

use dhole_model::NodeId;
use dhole_node::PartsOutbox;
use dhole_part::NodePart as _;
use dhole_protocol::ProtocolError;
use dhole_protocol::memory::{MOST_WORDS, MemoryKind, MemoryMessage};

use super::Memory;

impl Memory {
    /// Takes a message about a minipage.
    pub(super) fn deliver(
        &self,
        from: NodeId,
        message: MemoryMessage,
        payload: &[u8],
        out: &mut PartsOutbox<'_>,
    ) -> Result<(), ProtocolError> {
        let mut inside = self.lock();
        let mut effects = self.effects(payload, out);
        effects.host.from = from;
        let machine = &mut inside.machine;
        // Before the step, which may pass the words on. There are no more than there may be.
        let allocates = message.operation.allocates();
        let words = 1..=MOST_WORDS as usize;
        if message.has_words() && !allocates && words.contains(&payload.len()) {
            let mut sites = self.sites();
            let address = message.address;
            let manages = machine.manager_of(address) == Some(self.node);
            match message.kind {
                MemoryKind::Gone => sites.heard(address, payload),
                _ if manages => sites.asked_to_free(address, payload),
                _ => sites.member_frees(from, address, payload),
            }
        }
        let taken = machine.deliver(from, message, payload.len(), &mut effects);
        taken.map_err(|what| ProtocolError::BadMessage { from, what })?;
        effects.host.failed.map_or(Ok(()), Err)
    }
}
