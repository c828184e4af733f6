//! Objects and arrays change protocol between phases.
//!
//! All nodes meet at a barrier that is named after what is switched, so that nodes which disagree
//! are told so. When they leave it all know the same last writer of every object, which becomes
//! its home. A node that leaves early may ask one that has not left yet: what it asks for is the
//! same under both protocols.
//!
//! What is written while an object has a home has no version of its own. The copies elsewhere were
//! dropped, so its home's is the only one of the last version; but a row of that version may not be
//! all zeros any more.

use dhole_model::{Coherence, Elements, NodeId, OidRange, Version};

use crate::RegionCommand;
use crate::coherence::Protocols;
use crate::coherence::arrays::initial;
use crate::coherence::parts::{HasParts, Parts};
use crate::coherence::region::Table;
use crate::command::{Commands, WorkerIs};

/// Whether an object that changes to this protocol has a copy at its last writer, and no other.
pub(crate) fn has_one_copy(to: Coherence) -> bool {
    to == Coherence::Home || to.member().is_some()
}

impl Protocols {
    /// Objects leave the protocols that the program brings. Each gets a version of the node that
    /// has its copy: the next one, for the copy may be newer than all that was announced. Where the
    /// new protocol is the old one, nothing happens.
    fn members_give_up(
        &mut self,
        range: OidRange,
        creator: NodeId,
        [allocated, to]: [Coherence; 2],
        out: &mut Commands,
    ) {
        for oid in range.iter() {
            let object = self.objects.get(oid);
            let before = object.coherence.unwrap_or(allocated);
            let Coherence::Member(member) = before else {
                continue;
            };
            if object.freed || before == to {
                continue;
            }
            let holder = self.member_takes(member, WorkerIs::InCall, out, |it, turn| {
                it.give_up(oid, creator, turn)
            });
            let object = self.objects.get_mut(oid);
            let version = Version {
                lamport: object.known(creator).lamport + 1,
                node: holder,
            };
            object.hear(version);
            if holder == self.me {
                object.hold(version);
            }
            self.intervals.sees(version.lamport);
        }
    }

    /// Before the barrier, at the node that allocated a region: a home has a copy, so what nobody
    /// has written gets its zeros there.
    pub fn before_switch<R: HasParts>(&mut self, region: R, out: &mut Commands) {
        let (me, table) = (self.me, R::parts(self).table);
        let whole = table.whole(region);
        let of_member = whole.coherence.and_then(Coherence::member).is_some();
        if of_member || whole.freed {
            return;
        }
        let first = initial(me);
        table.update(region, |part, state| {
            if state.held().is_none() && state.known(me) == first {
                state.hold(first);
                out.push(R::command(RegionCommand::ZeroFill(part)));
            }
        });
    }

    /// After it: a region is kept consistent otherwise from now on, with one copy, that of its last
    /// writer, where `has_one_copy` says so.
    pub(super) fn switch_region<R: HasParts>(
        &mut self,
        region: R,
        creator: NodeId,
        has_one_copy: bool,
        out: &mut Commands,
    ) {
        let me = self.me;
        let Parts {
            table,
            update,
            home,
            ..
        } = R::parts(self);
        update.forget(region, out);
        home.switched(OidRange::one(region.id()));
        table.update(region, |part, state| {
            // A node that left the barrier before this one may have asked for it.
            state.serve();
            if std::mem::take(&mut state.exclusive) {
                out.push(R::command(RegionCommand::MakeClean(part)));
            }
            if has_one_copy && state.known(creator).node != me {
                if state.is_valid() {
                    out.push(R::command(RegionCommand::Invalidate(part)));
                }
                state.drop_copy();
            }
        });
    }

    /// As objects, an array: the node has left the barrier.
    pub(super) fn switch_array(
        &mut self,
        array: Elements,
        creator: NodeId,
        [allocated, to]: [Coherence; 2],
        out: &mut Commands,
    ) {
        // As where objects are switched.
        self.pushes_from = self.intervals.lamport() + 1;
        self.arrays.table.switch(array.array, [allocated, to]);
        self.switch_region(array, creator, to == Coherence::Home, out);
    }

    /// After the barrier: the objects are kept consistent so from now on.
    pub fn switch(
        &mut self,
        range: OidRange,
        creator: NodeId,
        [allocated, to]: [Coherence; 2],
        out: &mut Commands,
    ) {
        self.members_give_up(range, creator, [allocated, to], out);
        // Whatever was written before the barrier has at most this node's Lamport time. A home
        // writes its last version in place, so a push of that version may be old.
        self.pushes_from = self.intervals.lamport() + 1;
        let mut adopted = Vec::new();
        for oid in range.iter() {
            let object = self.objects.get_mut(oid);
            let before = object.coherence.replace(to).unwrap_or(allocated);
            if before == to && to.member().is_some() {
                continue;
            }
            object.had_home |= before == Coherence::Home;
            self.switch_region(oid, creator, has_one_copy(to), out);
            let object = self.objects.get_mut(oid);
            if to.member().is_some() && !object.freed {
                object.drop_copy();
                adopted.push((oid, object.known(creator).node));
            }
        }
        if let Coherence::Member(member) = to {
            for (oid, holder) in adopted {
                self.member_takes(member, WorkerIs::InCall, out, |it, turn| {
                    it.adopt(oid, holder, turn);
                });
            }
        }
    }
}
