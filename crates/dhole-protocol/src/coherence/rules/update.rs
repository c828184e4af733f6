//! What update answers: as lazy, and it pushes.

use dhole_model::{CallSite, Elements, NodeId, OidRange, Version};

use super::{AtSync, Rules};
use crate::coherence::Protocols;
use crate::coherence::parts::HasParts;
use crate::coherence::remembered::Remembered;
use crate::command::Commands;

/// As lazy, and the writer remembers which nodes read a region: it pushes new versions to them.
pub(super) struct UpdateRules;

impl<R: HasParts> Rules<R> for UpdateRules {
    fn write_fault(&self, all: &mut Protocols, region: R, site: CallSite, out: &mut Commands) {
        region.write_announced(all, site, out);
    }

    fn read_by(&self, reader: NodeId, region: R, remembered: &mut Remembered<R>) {
        remembered.copysets.join(region, reader);
    }
}

impl AtSync for UpdateRules {
    fn written(
        &self,
        all: &mut Protocols,
        version: Version,
        (elements, objects): (&[Elements], &[OidRange]),
        out: &mut Commands,
    ) {
        all.push_written(elements.iter().copied(), version, out);
        let objects = objects.iter().flat_map(|range| range.iter());
        all.push_written(objects, version, out);
    }
}
