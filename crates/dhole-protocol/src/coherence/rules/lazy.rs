//! What lazy answers.

use dhole_model::CallSite;

use super::{AtSync, Rules};
use crate::coherence::Protocols;
use crate::coherence::parts::HasParts;
use crate::command::Commands;
use crate::sync::interval::Attached;

/// Write notices name what is written, and say when copies are old.
pub(super) struct LazyRules;

impl<R: HasParts> Rules<R> for LazyRules {
    fn write_fault(&self, all: &mut Protocols, region: R, site: CallSite, out: &mut Commands) {
        region.write_announced(all, site, out);
    }
}

impl AtSync for LazyRules {
    fn ends_interval(&self, all: &mut Protocols, _: &mut Attached, out: &mut Commands) -> bool {
        all.shut_gates(out);
        all.end_young(out);
        false
    }

    #[inline]
    fn is_quiescent(&self, all: &Protocols) -> bool {
        let lazy = &all.lazy;
        lazy.dirty.is_empty()
            && lazy.young.is_empty()
            && lazy.gates.are_shut()
            && !all.arrays.is_dirty()
    }
}
