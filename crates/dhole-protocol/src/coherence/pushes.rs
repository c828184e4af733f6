//! Pushes: what goes to nodes that have not asked for it, and what becomes of it there.
//!
//! [Update](super::update) pushes what an interval wrote to the nodes that read the last versions,
//! [propagation](super::propagating) to nodes that the program names. Both are one message for each
//! receiver and kind of regions.

use dhole_model::{NodeId, Version};
use smallvec::SmallVec;

use super::Protocols;
use crate::array_blocks::Behind;
use crate::coherence::inbox::MOST_KEPT_BYTES;
use crate::coherence::parts::{HasParts, Parts};
use crate::coherence::region::{Table, push_region};
use crate::command::{Command, Commands};
use crate::{Pushed, RegionCommand, RegionMessage, Sent};

/// Sends copies to nodes that have not asked for them.
pub(super) fn push<R: HasParts>(
    to: SmallVec<[NodeId; 1]>,
    pushed: impl Iterator<Item = Sent<R>> + Clone,
    out: &mut Commands,
) {
    let units = pushed.clone().map(|sent| sent.region.unit()).collect();
    let pushed = pushed.map(|sent| Pushed { sent, bytes: 0 }).collect();
    out.push(Command::SendUnits {
        to,
        message: R::message(RegionMessage::Update { pushed }),
        units,
        what: Behind::Pushed,
    });
}

impl Protocols {
    /// Pushes what an interval of this version wrote to those that read it last.
    pub(super) fn push_written<R: HasParts>(
        &mut self,
        written: impl Iterator<Item = R>,
        version: Version,
        out: &mut Commands,
    ) {
        let Parts {
            table, remembered, ..
        } = R::parts(self);
        if remembered.copysets.are_empty() && remembered.next.are_empty() {
            return;
        }
        let next = std::mem::take(&mut remembered.next);
        let readers = |region| remembered.copysets.of(region).chain(next.of(region));
        let mut pushes: Vec<(NodeId, R)> = written.flat_map(readers).collect();
        for (_, region) in &pushes {
            table.update(*region, |_, state| state.serve());
        }
        pushes.sort_unstable();
        pushes.dedup();
        for of_one in pushes.chunk_by(|one, next| one.0 == next.0) {
            let to = SmallVec::from_elem(of_one[0].0, 1);
            let sent = |&(_, region): &(NodeId, R)| Sent { region, version };
            push(to, of_one.iter().map(sent), out);
        }
    }

    /// Takes pushes of regions that this node read before.
    pub fn pushed<R: HasParts>(&mut self, from: NodeId, pushed: &[Pushed<R>], out: &mut Commands) {
        let (useful_from, mut unread) = (self.pushes_from, Vec::new());
        let Parts {
            remembered, table, ..
        } = R::parts(self);
        for &Pushed { sent, bytes } in pushed {
            let Sent { region, version } = sent;
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
                    let (inbox, limits) = (&mut remembered.inbox, (each, MOST_KEPT_BYTES));
                    inbox.receive((part, version), limits, &mut unread, out);
                }
            });
        }
        if !unread.is_empty() {
            let message = R::message(RegionMessage::DropOut {
                regions: unread.into(),
            });
            out.push(Command::Send { to: from, message });
        }
    }

    /// Makes pushed copies readable where they are new enough.
    pub(super) fn take_pushed<R: HasParts>(
        &mut self,
        region: R,
        creator: NodeId,
        out: &mut Commands,
    ) {
        let Parts {
            table, remembered, ..
        } = R::parts(self);
        let inbox = &mut remembered.inbox;
        if inbox.is_empty() {
            return;
        }
        let mut taken = SmallVec::<[(R, Version); 1]>::new();
        table.each(region, |part, state| {
            if !state.is_valid() {
                let need = state.known(creator);
                inbox.take(part, need, out, |part, version| taken.push((part, version)));
            }
        });
        let mut joined = SmallVec::<[R; 1]>::new();
        for &(part, version) in &taken {
            table.update(part, |_, state| state.hold(version));
            push_region(&mut joined, part);
        }
        let install = |part| R::command(RegionCommand::InstallKept(part));
        out.extend(joined.into_iter().map(install));
        let seen = taken.iter().map(|(_, version)| version.lamport);
        seen.for_each(|lamport| self.intervals.sees(lamport));
    }

    /// A node does not read what is pushed to it.
    pub fn drop_out<R: HasParts>(&mut self, from: NodeId, regions: &[R]) {
        let copysets = &mut R::parts(self).remembered.copysets;
        let regions = regions.iter();
        regions.for_each(|region| copysets.leave(*region, from));
    }
}
