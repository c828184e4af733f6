//! What members answer: each takes the event.

use dhole_model::{CallSite, MemberId, NodeId, Oid, OidRange};

use super::{AtSync, Forgetting, Rules};
use crate::Interval;
use crate::coherence::Protocols;
use crate::coherence::object_table::ObjectState;
use crate::coherence::parts::HasParts;
use crate::command::{Commands, WorkerIs};
use crate::sync::interval::Attached;

/// A member takes an event of each.
impl<R: HasParts> Rules<R> for MemberId {
    fn waits_to_write(&self) -> bool {
        true
    }

    fn write_fault(&self, all: &mut Protocols, region: R, _: CallSite, out: &mut Commands) {
        let unit = region.id();
        all.members.awaits(unit);
        all.member_takes(*self, WorkerIs::InCall, out, |it, turn| {
            it.write_fault(unit, turn);
        });
        all.brought(out);
    }

    fn read_miss(&self, all: &mut Protocols, unit: Oid, creator: NodeId, out: &mut Commands) {
        // The call may share its token.
        all.member_takes(*self, WorkerIs::Sharing, out, |it, turn| {
            it.read_miss(unit, creator, turn);
        });
    }

    fn freed(&self, object: Oid, _: &mut ObjectState, (.., members): Forgetting<'_, R>) {
        members.freed(*self, object);
    }

    fn allocated(&self, all: &mut Protocols, objects: OidRange, out: &mut Commands) {
        all.member_takes(*self, WorkerIs::InCall, out, |it, turn| {
            it.allocated(objects, turn);
        });
    }

    fn give_up(
        &self,
        all: &mut Protocols,
        unit: Oid,
        creator: NodeId,
        out: &mut Commands,
    ) -> Option<NodeId> {
        let holder = all.member_takes(*self, WorkerIs::InCall, out, |it, turn| {
            it.give_up(unit, creator, turn)
        });
        Some(holder)
    }

    fn adopt(&self, all: &mut Protocols, unit: Oid, holder: NodeId, out: &mut Commands) {
        all.member_takes(*self, WorkerIs::InCall, out, |it, turn| {
            it.adopt(unit, holder, turn);
        });
    }
}

/// All members that this node has met.
pub(super) struct MemberRules;

impl AtSync for MemberRules {
    #[inline]
    fn must_release(&self, all: &Protocols) -> bool {
        all.members.must_release()
    }

    fn before_release(&self, all: &mut Protocols, out: &mut Commands) {
        for member in all.members.begin_to_release() {
            all.member_takes(member, WorkerIs::InCall, out, |it, turn| {
                it.before_release(turn);
            });
        }
    }

    fn is_releasing(&self, all: &Protocols) -> bool {
        !all.members.are_over()
    }

    fn ends_interval(
        &self,
        all: &mut Protocols,
        attached: &mut Attached,
        _: &mut Commands,
    ) -> bool {
        let notices = all.members.notices(all.intervals.open_version());
        let tells = !notices.is_empty();
        if tells {
            *attached = Attached::Notices(notices);
        }
        tells
    }

    fn noticed(&self, all: &mut Protocols, interval: &Interval, out: &mut Commands) {
        let version = interval.version();
        for notice in interval.attached.notices() {
            all.member_takes(notice.member, WorkerIs::InCall, out, |it, turn| {
                it.noticed(version, &notice.body, turn);
            });
        }
    }

    fn after_acquire(&self, all: &mut Protocols, out: &mut Commands) {
        for member in all.members.ids() {
            all.member_takes(member, WorkerIs::InCall, out, |it, turn| {
                it.after_acquire(turn);
            });
        }
    }

    #[inline]
    fn deferred(&self, all: &Protocols) -> usize {
        all.members.deferred()
    }

    #[inline]
    fn is_quiescent(&self, all: &Protocols) -> bool {
        all.members.are_quiescent()
    }
}
