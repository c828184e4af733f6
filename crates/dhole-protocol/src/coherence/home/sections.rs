//! Sections at a home: the nodes that are told before a section changes an object.

use dhole_model::{NodeId, Oid};

use super::Home;
use crate::coherence::invalidation_acks::Then;
use crate::command::Commands;

impl Home<Oid> {
    /// A section is to change objects at home here. The nodes that keep copies are told, those of
    /// the section's caller among them. Whether none has yet to say that it knows: then the objects
    /// may change.
    pub fn before_section(&mut self, me: NodeId, objects: &[Oid], out: &mut Commands) -> bool {
        let changes = objects.iter().copied();
        let then = Then::TrySections;
        let is_kept = self.retention.changed(me, changes, then, out).is_none();
        let is_telling = |oid: &Oid| self.retention.is_telling(*oid);
        !is_kept && !objects.iter().any(is_telling)
    }
}
