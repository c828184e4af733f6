//! What both kinds of regions have of a node's protocols, and the messages that they share.

use dhole_model::{Elements, NodeId, Oid};

use super::Protocols;
use crate::coherence::arrays::Arrays;
use crate::coherence::home::Home;
use crate::coherence::kind::{Flush, Kind, RegionMessage};
use crate::coherence::races::RaceFinder;
use crate::coherence::region::Table;
use crate::coherence::update::{MOST_KEPT_BYTES, Update};
use crate::command::{Command, Commands, WorkerIs};
use crate::error::ProtocolError;

/// The part of a node's protocols that is about one kind of regions.
pub(crate) struct Parts<'a, R: HasParts> {
    table: &'a mut R::Table,
    home: &'a mut Home<R>,
    update: &'a mut Update<R>,
    races: &'a mut RaceFinder,
}

/// A kind of regions that a node has protocols for.
pub(crate) trait HasParts: Kind {
    fn parts(protocols: &mut Protocols) -> Parts<'_, Self>;
    /// Whether the worker waits for some of a region.
    fn is_awaited(self, protocols: &Protocols) -> bool;
}

impl HasParts for Oid {
    fn parts(protocols: &mut Protocols) -> Parts<'_, Oid> {
        Parts {
            table: &mut protocols.objects,
            home: &mut protocols.home,
            update: &mut protocols.update,
            races: &mut protocols.races,
        }
    }

    fn is_awaited(self, protocols: &Protocols) -> bool {
        let fetches = &protocols.fetching.fetches;
        fetches.awaits(|want| want.wanted.oid == self)
    }
}

impl HasParts for Elements {
    fn parts(protocols: &mut Protocols) -> Parts<'_, Elements> {
        let Arrays {
            table,
            home,
            update,
            ..
        } = &mut protocols.arrays;
        Parts {
            table,
            home,
            update,
            races: &mut protocols.races,
        }
    }

    fn is_awaited(self, protocols: &Protocols) -> bool {
        let fetches = &protocols.arrays.fetches;
        fetches.awaits(|wanted| wanted.elements.meets(self))
    }
}

impl Protocols {
    /// A node flushes what is at home here.
    pub fn flushed<R: HasParts>(
        &mut self,
        flush: Flush<R>,
        worker: WorkerIs,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        self.check_flushed_at(flush.from, flush.at.as_deref())?;
        let (me, open) = (self.me, self.intervals.open());
        let it = R::parts(self);
        it.home
            .flushed((me, flush), worker, it.table, (it.races, open), out)
    }

    /// The home of regions says that copies of them are outdated.
    pub fn outdated<R: HasParts>(
        &mut self,
        from: NodeId,
        number: u32,
        regions: &[R],
        out: &mut Commands,
    ) {
        let all = regions.iter().copied();
        let awaited = all.filter(|region| region.is_awaited(self)).collect();
        R::parts(self)
            .home
            .outdated((from, number), regions, awaited, out);
    }

    /// A node knows that its copies of what is at home here are outdated.
    pub fn knows<R: HasParts>(
        &mut self,
        from: NodeId,
        number: u32,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        if R::parts(self).home.knows(from, number, out)? {
            self.is_home(out);
        }
        Ok(())
    }

    /// A home has made part of its regions what was flushed there.
    pub fn acknowledged<R: HasParts>(
        &mut self,
        from: NodeId,
        number: u32,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        R::parts(self).home.acknowledged(from, number)?;
        self.is_home(out);
        Ok(())
    }

    /// Takes pushes of regions that this node read before.
    pub fn pushed<R: HasParts>(&mut self, from: NodeId, pushed: &[R::Pushed], out: &mut Commands) {
        let (useful_from, mut unread) = (self.pushes_from, Vec::new());
        let Parts { update, table, .. } = R::parts(self);
        for (region, version, bytes) in pushed.iter().map(R::pushed) {
            if table.is_freed(region) || version.lamport < useful_from {
                out.push(Command::PassOver { bytes });
                continue;
            }
            let each = bytes / region.units();
            table.each(region, |part, state| {
                if state.held() >= Some(version) || state.known(from) > version {
                    let bytes = each * part.units();
                    out.push(Command::PassOver { bytes });
                } else {
                    let (inbox, limits) = (&mut update.inbox, (each, MOST_KEPT_BYTES));
                    inbox.receive((part, version), limits, &mut unread, out);
                }
            });
        }
        if !unread.is_empty() {
            let message = R::message(RegionMessage::DropOut(unread.into()));
            out.push(Command::Send { to: from, message });
        }
    }

    /// A node does not read what is pushed to it.
    pub fn drop_out<R: HasParts>(&mut self, from: NodeId, regions: &[R]) {
        let copysets = &mut R::parts(self).update.copysets;
        let regions = regions.iter();
        regions.for_each(|region| copysets.leave(*region, from));
    }
}
