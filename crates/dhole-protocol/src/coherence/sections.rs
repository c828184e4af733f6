//! What sections may touch at a home.

use dhole_model::Oid;

use super::Protocols;
use super::rules::rules;
use crate::command::Commands;

impl Protocols {
    /// Whether a section may read and write an object here: the object is at home here, and was not
    /// freed.
    pub fn is_for_sections(&self, oid: Oid) -> bool {
        let object = self.objects.get(oid);
        let rules = rules::<Oid>(object.coherence);
        !object.freed && rules.says_what_is_kept(oid, self.me, &self.objects)
    }

    /// See [`Home::before_section`].
    pub fn before_section(&mut self, objects: &[Oid], out: &mut Commands) -> bool {
        self.remembered.home.before_section(self.me, objects, out)
    }
}
