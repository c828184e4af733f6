//! What both kinds of regions have of a node's protocols, and the messages that they share.

use dhole_model::{CallSite, Elements, NodeId, Oid};
use smallvec::SmallVec;

use super::Protocols;
use crate::coherence::arrays::Arrays;
use crate::coherence::invalidation_acks::Then;
use crate::coherence::kind::Kind;
use crate::coherence::pending_fetches::Fetching;
use crate::coherence::races::RaceFinder;
use crate::coherence::region::push;
use crate::coherence::remembered::Remembered;
use crate::command::{Commands, WorkerIs};
use crate::effects::Effects;
use crate::error::{Freed, ProtocolError};
use crate::{Message, RegionMessage, Sent};

/// The part of a node's protocols that is about one kind of regions.
pub(crate) struct Parts<'a, R: HasParts> {
    pub table: &'a mut R::Table,
    pub fetching: &'a mut Fetching<R>,
    pub remembered: &'a mut Remembered<R>,
    pub races: &'a mut RaceFinder,
}

/// A kind of regions that a node has protocols for.
pub(crate) trait HasParts: Kind {
    fn parts(protocols: &mut Protocols) -> Parts<'_, Self>;

    /// The worker writes a region, which write notices will name.
    fn write_announced(self, all: &mut Protocols, site: CallSite, out: &mut Commands);

    /// The worker writes a region that has a home: the next flush brings it there.
    fn write_for_home(self, all: &mut Protocols, site: CallSite, out: &mut Commands);

    /// A region was asked for that nobody else had.
    fn was_exclusive(self, _: &mut Protocols, _: &mut impl Effects) {}

    /// Takes what came along with what was asked for.
    fn take_along(_: &[Sent<Self>], _: &mut Protocols, _: &mut Commands) {}
}

impl HasParts for Oid {
    fn parts(protocols: &mut Protocols) -> Parts<'_, Oid> {
        Parts {
            table: &mut protocols.objects,
            fetching: &mut protocols.fetching,
            remembered: &mut protocols.remembered,
            races: &mut protocols.races,
        }
    }

    fn write_announced(self, all: &mut Protocols, site: CallSite, out: &mut Commands) {
        all.write_announced(self, site, out);
    }

    fn write_for_home(self, all: &mut Protocols, site: CallSite, out: &mut Commands) {
        all.fetching.beside.clear();
        let at = (self, all.races.site(site));
        let (objects, races) = (&mut all.objects, &all.races);
        all.remembered
            .home
            .write_fault(all.me, at, objects, races, out);
    }

    fn was_exclusive(self, protocols: &mut Protocols, fx: &mut impl Effects) {
        protocols.end_exclusive_beside(self, fx);
    }

    fn take_along(along: &[Sent], protocols: &mut Protocols, out: &mut Commands) {
        protocols.take_along(along, out);
    }
}

impl HasParts for Elements {
    fn parts(protocols: &mut Protocols) -> Parts<'_, Elements> {
        let Arrays {
            table,
            fetching,
            remembered,
            ..
        } = &mut protocols.arrays;
        Parts {
            table,
            fetching,
            remembered,
            races: &mut protocols.races,
        }
    }

    fn write_announced(self, all: &mut Protocols, site: CallSite, out: &mut Commands) {
        let site = all.races.site(site);
        let Arrays { table, dirty, .. } = &mut all.arrays;
        table.write(self, out, |part, _| push(dirty, part, site));
    }

    fn write_for_home(self, all: &mut Protocols, site: CallSite, out: &mut Commands) {
        let (me, site) = (all.me, all.races.site(site));
        let (looks, mut here) = (all.races.is_looking(), SmallVec::<[Elements; 2]>::new());
        let Arrays {
            table, remembered, ..
        } = &mut all.arrays;
        table.write(self, out, |part, state| {
            push(&mut remembered.home.written, part, site);
            here.extend((looks && state.is_held_by(me)).then_some(part));
        });
        let time = all.intervals.time();
        for part in here {
            let at = (&mut all.races, time);
            all.arrays.writes_at_home(part, site, at, out);
        }
    }
}

impl Protocols {
    /// A message about regions has come, perhaps not for the first time. Whether sections that wait
    /// are to be tried again.
    ///
    /// # Errors
    /// [`ProtocolError::BadMessage`]
    pub fn about_regions<R: HasParts>(
        &mut self,
        from: NodeId,
        message: RegionMessage<R>,
        worker: WorkerIs,
        out: &mut Commands,
    ) -> Result<bool, ProtocolError> {
        let (me, open) = (self.me, self.intervals.open());
        match message {
            RegionMessage::Update { pushed } => self.pushed(from, &pushed, out),
            RegionMessage::DropOut { regions } => self.drop_out(from, &regions[..]),
            RegionMessage::Flush(flush) => {
                self.check_flushed_at(from, flush.at.as_deref())?;
                let it = R::parts(self);
                let home = &mut it.remembered.home;
                home.flushed((me, from, flush), worker, it.table, (it.races, open), out)?;
            }
            RegionMessage::FlushAck { number } => {
                R::parts(self).remembered.home.acknowledged(from, number)?;
                self.released(out);
            }
            RegionMessage::Outdated { number, regions } => {
                let it = R::parts(self);
                let all = regions.iter().copied();
                let awaited = all.filter(|region| it.fetching.fetches.awaits(*region));
                let (home, awaited) = (&mut it.remembered.home, awaited.collect());
                home.outdated((from, number), &regions, awaited, out);
            }
            RegionMessage::OutdatedAck { number } => {
                match R::parts(self).remembered.home.knows(from, number, out)? {
                    Some(Then::GoOn) => self.released(out),
                    then => return Ok(then == Some(Then::TrySections)),
                }
            }
            RegionMessage::Gone { round, oid, by } => {
                self.told_gone::<R>(from, round, Freed { oid, by, at: None }, out)?;
            }
        }
        Ok(false)
    }

    /// A message that was deferred is taken again.
    pub fn undefer(&mut self, from: NodeId, message: &Message) {
        match message {
            Message::Region(_) => self.remembered.home.undefer(from),
            Message::Elements(_) => self.arrays.remembered.home.undefer(from),
            _ => self.members.undefer(from),
        }
    }
}
