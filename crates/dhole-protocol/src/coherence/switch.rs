//! Objects change protocol between phases.
//!
//! All nodes meet at a barrier that is named after what is switched, so that nodes which disagree
//! are told so. When they leave it all know the same last writer of every object, which becomes
//! its home. A node that leaves early may ask one that has not left yet: what it asks for is the
//! same under both protocols.
//!
//! What is written while an object has a home has no version of its own. The copies elsewhere were
//! dropped, so its home's is the only one of the last version; but a row of that version may not be
//! all zeros any more.

use dhole_model::{Coherence, NodeId, OidRange, Version};

use crate::coherence::Protocols;
use crate::command::{Command, Commands, WorkerIs};

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

    /// Before the barrier: a home has a copy, so rows that nobody has written get their zeros where
    /// they were allocated.
    pub fn before_switch(
        &mut self,
        range: OidRange,
        creator: NodeId,
        zero_ok: bool,
        out: &mut Commands,
    ) {
        if !zero_ok || creator != self.me {
            return;
        }
        self.objects.for_each(&[range], |oid, object| {
            let first = Version {
                lamport: 0,
                node: creator,
            };
            let of_member = object.coherence.and_then(Coherence::member).is_some();
            if !object.freed
                && !of_member
                && object.held().is_none()
                && object.known(creator) == first
            {
                object.hold(first);
                out.push(Command::ZeroFill(oid));
            }
        });
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
        let Protocols {
            me,
            objects,
            update,
            home,
            ..
        } = self;
        let mut adopted = Vec::new();
        objects.for_each(&[range], |oid, object| {
            let before = object.coherence.replace(to).unwrap_or(allocated);
            if before == to && to.member().is_some() {
                return;
            }
            object.had_home |= before == Coherence::Home;
            // A node that left the barrier before this one may have asked for the object.
            object.serve();
            update.forget(oid, out);
            home.switched(OidRange::one(oid));
            if object.exclusive {
                object.exclusive = false;
                out.push(Command::MakeClean(oid));
            }
            let last = object.known(creator).node;
            let is_elsewhere = last != *me;
            if is_elsewhere && has_one_copy(to) {
                if object.is_valid() {
                    out.push(Command::Invalidate(oid));
                }
                object.drop_copy();
            }
            if to.member().is_some() && !object.freed {
                object.drop_copy();
                adopted.push((oid, last));
            }
        });
        if let Coherence::Member(member) = to {
            for (oid, holder) in adopted {
                self.member_takes(member, WorkerIs::InCall, out, |it, turn| {
                    it.adopt(oid, holder, turn);
                });
            }
        }
    }
}
