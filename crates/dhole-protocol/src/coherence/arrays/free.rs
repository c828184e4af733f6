//! Freeing arrays: as [objects](crate::coherence::freeing), but by the ids of their blocks, for all
//! elements at once.

use dhole_model::{Elements, Oid, OidRange, Version};

use crate::RegionCommand;
use crate::coherence::arrays::Arrays;
use crate::coherence::races::{RaceFinder, SiteId};
use crate::coherence::region::Region;
use crate::command::{Command, Commands};
use crate::error::{Freed, ProtocolError};

fn numbers(ids: OidRange) -> std::ops::Range<u64> {
    ids.first.0..ids.first.0 + u64::from(ids.count)
}

impl Arrays {
    pub(crate) fn check_not_freed(&self, array: Oid) -> Result<(), ProtocolError> {
        match self.table.has_freed(array) {
            true => Err(ProtocolError::Freed(Freed::known_only(array))),
            false => Ok(()),
        }
    }

    /// The worker frees an array, which is [not freed](Arrays::check_not_freed).
    pub(crate) fn free(
        &mut self,
        ids: OidRange,
        site: SiteId,
        races: &mut RaceFinder,
        out: &mut Commands,
    ) {
        races.forget_at_home(ids);
        self.forget(ids, out);
        out.push(Command::Array(RegionCommand::Free(ids)));
        self.freeing.push((ids, site));
    }

    /// Nothing is left of arrays but their ids.
    fn forget(&mut self, ids: OidRange, out: &mut Commands) {
        self.remembered.freed_pushes(ids, out);
        self.remembered.home.forget(ids);
        self.dirty
            .retain(|(elements, _)| !ids.contains(elements.array));
        let table = &mut self.table;
        let known = table.arrays.range(ids.first..=ids.last());
        table.segments -= known.map(|(_, array)| array.elements.len()).sum::<usize>();
        ids.remove_from(&mut table.arrays);
        table.freed.add(numbers(ids));
    }

    /// The interval of this version ends, which freed arrays.
    pub(crate) fn end_freeing(
        &mut self,
        version: Version,
        races: &mut RaceFinder,
    ) -> Vec<OidRange> {
        self.freeing.sort_unstable();
        let mut freed = Vec::with_capacity(self.freeing.len());
        for (ids, site) in self.freeing.drain(..) {
            races.freed_elements(version.lamport, Elements::all_of(ids.first), site);
            races.forget_array(ids.first);
            freed.push(ids);
        }
        freed
    }

    /// An interval of another node, of this version, freed the arrays that have these ids; how many
    /// of them race with what this node did. Ids of objects may be among them.
    pub fn notice_freed(
        &mut self,
        ids: OidRange,
        version: Version,
        races: &mut RaceFinder,
        out: &mut Commands,
    ) -> u64 {
        let raced = races.arrays_freed(ids, version, out);
        self.forget(ids, out);
        raced
    }

    /// How much is kept of arrays: those known, segments of their elements, and ranges of ids of
    /// those that were freed.
    pub fn heard_of(&self) -> usize {
        let [arrays, freed] = self.kept();
        arrays + self.table.segments + freed
    }

    /// What is kept of arrays: those known, and ranges of ids of those that were freed.
    pub fn kept(&self) -> [usize; 2] {
        [self.table.arrays.len(), self.table.freed.ranges().len()]
    }
}
