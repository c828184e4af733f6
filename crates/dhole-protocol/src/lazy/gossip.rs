//! What nodes tell each other of what all have seen, so that records of it can be dropped.

use std::sync::Arc;

use dhole_model::NodeId;

use super::Lazy;
use crate::collection::Gossip;
use crate::error::ProtocolError;

impl Lazy {
    /// What a message to another node should tell it about what can be collected.
    pub fn gossip_for(&mut self, to: NodeId) -> Option<Arc<Gossip>> {
        if self.log.is_long() {
            self.collector.report(&self.time);
        }
        self.collector.gossip_for(to)
    }

    /// Whether what another node says of what can be collected may be true.
    pub fn check_gossip(&self, from: NodeId, gossip: &Gossip) -> Result<(), ProtocolError> {
        let checked = self.collector.check(gossip, &self.time);
        checked.map_err(|what| ProtocolError::BadMessage { from, what })
    }

    /// Takes gossip that was [checked](Lazy::check_gossip), and drops what all have seen.
    pub fn hear(&mut self, gossip: &Gossip) {
        self.collector.hear(gossip, &self.time);
        self.log.forget_up_to(self.collector.floor());
        self.seen_by_all.merge(self.collector.floor());
        self.races.seen_by_all(self.collector.floor());
    }
}
