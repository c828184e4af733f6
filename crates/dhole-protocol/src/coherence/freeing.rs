//! Freeing objects, explicitly.
//!
//! Who frees an object tells of it as of a write: in its interval. Whoever hears of it forgets the
//! object, and every later access there is an error; so is freeing it again. Ids are never used
//! again, so of chunks all of whose objects are freed nothing is kept but their numbers. A freeing
//! that races with a write, or with another freeing, is a race. Who has not heard of it and asks
//! for the object is told.

use std::ops::Range;

use dhole_model::{CHUNK, CallSite, Oid, OidRange, Version};

use crate::coherence::Protocols;
use crate::coherence::rules::rules;
use crate::command::{Command, Commands};
use crate::error::{Freed, ProtocolError};
use crate::{Interval, RegionCommand};

/// The most objects that an interval should write or free, if the last thing it does is to free.
const FREED_IN_AN_INTERVAL: usize = 4096;

impl Protocols {
    /// The worker frees objects.
    ///
    /// # Errors
    /// [`ProtocolError::Freed`] when one of them is freed already; then nothing was done.
    pub fn free(
        &mut self,
        range: OidRange,
        site: CallSite,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.check_none_freed(range)?;
        let site = self.races.site(site);
        let Protocols {
            objects,
            remembered,
            lazy,
            races,
            members,
            ..
        } = self;
        objects.for_each(&[range], |oid, object| {
            remembered.forget_pushes(oid, out);
            rules(object.coherence).freed(oid, object, (&mut remembered.home, races, members));
            if !object.dirty {
                lazy.dirty.push((oid, site));
            }
            object.free();
            object.dirty = true;
        });
        out.push(Command::Objects(RegionCommand::Free(range)));
        Ok(())
    }

    /// Whether the interval should end, so that what is remembered of each object that it freed
    /// becomes ranges of ids: a node that synchronises with nobody would remember ever more.
    pub(crate) fn has_freed_much(&self) -> bool {
        self.lazy.dirty.len() + self.arrays.freeing.len() > FREED_IN_AN_INTERVAL
    }

    /// Applies what an interval freed; how many of it race with what this node did.
    pub(crate) fn notice_freed(&mut self, interval: &Interval, out: &mut Commands) -> u64 {
        let (version, mut races) = (interval.version(), 0);
        let Protocols {
            objects,
            remembered,
            races: finder,
            members,
            blocks,
            ..
        } = self;
        let gone = objects.free(&interval.freed, |oid, object| {
            if finder.suspects(object.newest()) {
                races += u64::from(finder.is_race(oid, (version, true), out));
            }
            remembered.forget_pushes(oid, out);
            rules(object.coherence).freed(oid, object, (&mut remembered.home, finder, members));
            object.hear(version);
            object.free();
        });
        for range in &interval.freed {
            // A push may have come of an object of which nothing else is known.
            remembered.freed_pushes(*range, out);
            blocks.forget(*range);
            races += self.arrays.notice_freed(*range, version, finder, out);
        }
        let free = |range| Command::Objects(RegionCommand::Free(range));
        out.extend(interval.freed.iter().copied().map(free));
        self.forget_chunks(gone);
        races
    }

    /// These ids were freed in the interval that ends here, of objects and of arrays.
    pub(crate) fn end_freeing(&mut self, freed: &[OidRange], version: Version) {
        let gone = self.objects.free(freed, |_, object| {
            object.hear(version);
            object.free();
        });
        self.forget_chunks(gone);
    }

    /// Keeps no more of chunks all of whose ids are freed than their numbers. Objects and arrays
    /// have these in common, so that what was freed in turn is one range.
    fn forget_chunks(&mut self, gone: Vec<Range<u64>>) {
        for chunks in gone {
            self.arrays
                .table
                .freed
                .add(chunks.start * CHUNK..chunks.end * CHUNK);
            self.races.forget(chunks);
        }
    }

    pub(crate) fn check_none_freed(&self, range: OidRange) -> Result<(), ProtocolError> {
        range.iter().try_for_each(|oid| self.check_not_freed(oid))
    }

    pub(crate) fn check_not_freed(&self, oid: Oid) -> Result<(), ProtocolError> {
        match self.objects.get(oid).freed {
            true => Err(ProtocolError::Freed(self.freed(oid))),
            false => Ok(()),
        }
    }

    /// What is known of a freed object. Until the interval ends that freed it here, its state does
    /// not tell who did.
    pub(super) fn freed(&self, oid: Oid) -> Freed {
        let object = self.objects.get(oid);
        let pending = self.lazy.dirty.iter().find(|(other, _)| *other == oid);
        let by = match pending {
            Some(_) => Some(self.me),
            None => object.last(),
        };
        let at = match pending {
            Some((_, site)) => self.races.site_of(*site),
            None if by == Some(self.me) => self.races.last_site(oid),
            None => None,
        };
        Freed { oid, by, at }
    }

    /// What is kept of objects: chunks of states, ranges of freed chunks, chunks of own writes.
    pub fn records_kept(&self) -> [usize; 3] {
        let (chunks, freed) = self.objects.kept();
        [chunks, freed, self.races.kept()]
    }
}
