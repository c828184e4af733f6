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

use dhole_model::{Coherence, Elements, NodeId, Oid, OidRange, Version};

use crate::RegionCommand;
use crate::coherence::Protocols;
use crate::coherence::arrays::initial;
use crate::coherence::parts::{HasParts, Parts};
use crate::coherence::region::Table;
use crate::coherence::rules::rules;
use crate::command::Commands;

/// Whether each element of an array that changes to this protocol has a copy at its last writer,
/// and no other. Blocks have theirs at the node that allocated the array, which has fetched them.
pub(crate) fn array_has_one_copy(to: Coherence) -> bool {
    let properties = to.properties();
    properties.has_home && properties.has_versions()
}

impl Protocols {
    /// Before the barrier, at the node that allocated a region: a home has a copy, so what nobody
    /// has written gets its zeros there.
    pub fn before_switch<R: HasParts>(&mut self, region: R, out: &mut Commands) {
        let (me, table) = (self.me, R::parts(self).table);
        let whole = table.whole(region);
        let known = whole.coherence.map(Coherence::properties);
        if whole.freed || known.is_some_and(|known| !known.has_versions()) {
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
            table, remembered, ..
        } = R::parts(self);
        remembered.forget_pushes(region, out);
        remembered.home.switched(OidRange::one(region.id()));
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
        self.switch_region(array, creator, array_has_one_copy(to), out);
    }

    /// After the barrier: the objects are kept consistent so from now on.
    pub fn switch(
        &mut self,
        range: OidRange,
        creator: NodeId,
        [allocated, to]: [Coherence; 2],
        out: &mut Commands,
    ) {
        for oid in range.iter() {
            let object = self.objects.get_mut(oid);
            let before = *object.coherence.get_or_insert(allocated);
            if object.freed || before == to {
                continue;
            }
            if let Some(holder) = rules::<Oid>(before).give_up(self, oid, creator, out) {
                self.object_given_up(oid, creator, holder);
            }
        }
        // Whatever was written before the barrier has at most this node's Lamport time. A home
        // writes its last version in place, so a push of that version may be old.
        self.pushes_from = self.intervals.lamport() + 1;
        let mut adopted = Vec::new();
        for oid in range.iter() {
            let object = self.objects.get_mut(oid);
            let before = object.coherence.replace(to).unwrap_or(allocated);
            if before == to && !to.properties().has_versions() {
                continue;
            }
            object.had_home |= before.properties().has_home;
            self.switch_region(oid, creator, to.properties().has_home, out);
            let object = self.objects.get_mut(oid);
            if !object.freed {
                if !to.properties().has_versions() {
                    object.drop_copy();
                }
                adopted.push((oid, object.known(creator).node));
            }
        }
        for (oid, holder) in adopted {
            rules::<Oid>(to).adopt(self, oid, holder, out);
        }
    }

    /// A protocol without versions has given up an object. The object gets a version of the node
    /// that has its copy: the next one, for the copy may be newer than all that was announced.
    fn object_given_up(&mut self, oid: Oid, creator: NodeId, holder: NodeId) {
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
