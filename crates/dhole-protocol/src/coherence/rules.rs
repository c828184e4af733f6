//! What the rest of a node's protocols ask of one protocol.
//!
//! There are two questions about a region. *May the worker change it here?*
//! ([`Rules::waits_to_write`], [`Rules::write`]) *What follows from what happens to it?* (the other
//! methods.) [`rules`] is the list of protocols. No other code asks which protocol keeps a region
//! consistent. What holds of a protocol at all times is among its
//! [properties](dhole_model::Properties).

use std::marker::PhantomData;
use std::ops::Deref;

use dhole_model::{CallSite, Coherence, MemberId, NodeId, Oid, OidRange};

use super::Protocols;
use crate::coherence::home::Home;
use crate::coherence::members::Members;
use crate::coherence::object_table::ObjectState;
use crate::coherence::parts::HasParts;
use crate::coherence::races::RaceFinder;
use crate::coherence::region::Table;
use crate::coherence::remembered::Remembered;
use crate::command::{Commands, WorkerIs};

/// The answers of the protocol that keeps a region consistent.
///
/// A region that this node has yet to meet has no protocol, and no copy here: what is asked of it
/// has the answers of the default.
#[inline]
pub(crate) fn rules<R: HasParts>(of: impl Into<Option<Coherence>>) -> RulesOf<R> {
    RulesOf(of.into().unwrap_or_default(), PhantomData)
}

/// See [`rules`].
pub(crate) struct RulesOf<R>(Coherence, PhantomData<R>);

impl<R: HasParts> Deref for RulesOf<R> {
    type Target = dyn Rules<R>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match &self.0 {
            Coherence::Lazy | Coherence::TreadMarks => &LazyRules,
            Coherence::Update => &UpdateRules,
            Coherence::Home => &HomeRules,
            Coherence::Member(member) => member,
        }
    }
}

/// What protocols remember of an object that is freed.
pub(crate) type Forgetting<'a, R> = (&'a mut Home<R>, &'a mut RaceFinder, &'a mut Members);

/// The answers of a protocol about regions of one kind.
pub(crate) trait Rules<R: HasParts> {
    /// Whether the worker waits before it changes an object: a copy that it may read does not allow
    /// it to.
    fn waits_to_write(&self) -> bool {
        false
    }

    /// The worker writes a region. The region becomes writable at once, or when the protocol's
    /// messages have come.
    fn write(&self, all: &mut Protocols, region: R, site: CallSite, out: &mut Commands);

    /// The worker [awaits](Members::awaits) an object or a block of which it has no copy, and no
    /// version says which node has one.
    fn read_miss(&self, _all: &mut Protocols, _unit: Oid, _creator: NodeId, _: &mut Commands) {}

    /// A node gets a copy from this node.
    fn read_by(&self, _reader: NodeId, _region: R, _remembered: &mut Remembered<R>) {}

    /// A copy has come for which this node asked. `keep` is what its sender says of
    /// [keeping](Rules::says_what_is_kept) it.
    fn brought(&self, region: R, _keep: bool, remembered: &mut Remembered<R>, out: &mut Commands) {
        remembered.inbox.forget(region, out);
    }

    /// Whether this node says of a region whether those that fetch it keep their copies over
    /// acquires.
    fn says_what_is_kept(&self, _region: R, _me: NodeId, _table: &R::Table) -> bool {
        false
    }

    /// An object or a block was freed, and is forgotten next.
    fn freed(&self, _object: Oid, _state: &mut ObjectState, _remembered: Forgetting<'_, R>) {}

    /// The worker has allocated objects here.
    fn allocated(&self, _all: &mut Protocols, _objects: OidRange, _out: &mut Commands) {}

    /// All nodes have met, and an object or a block leaves this protocol. Returns the node that has
    /// its copy, where no version says which one that is.
    fn give_up(
        &self,
        _all: &mut Protocols,
        _unit: Oid,
        _creator: NodeId,
        _out: &mut Commands,
    ) -> Option<NodeId> {
        None
    }

    /// All nodes have met, and this protocol keeps an object or a block consistent from now on.
    /// `holder` has its copy.
    fn adopt(&self, _all: &mut Protocols, _unit: Oid, _holder: NodeId, _out: &mut Commands) {}
}

/// Write notices name what is written, and say when copies are old.
struct LazyRules;

impl<R: HasParts> Rules<R> for LazyRules {
    fn write(&self, all: &mut Protocols, region: R, site: CallSite, out: &mut Commands) {
        region.write_announced(all, site, out);
    }
}

/// As lazy, and the writer remembers which nodes read a region: it pushes new versions to them.
struct UpdateRules;

impl<R: HasParts> Rules<R> for UpdateRules {
    fn write(&self, all: &mut Protocols, region: R, site: CallSite, out: &mut Commands) {
        region.write_announced(all, site, out);
    }

    fn read_by(&self, reader: NodeId, region: R, remembered: &mut Remembered<R>) {
        remembered.copysets.join(region, reader);
    }
}

/// Writers flush to the home of a region, which remembers the nodes that keep copies.
struct HomeRules;

impl<R: HasParts> Rules<R> for HomeRules {
    fn write(&self, all: &mut Protocols, region: R, site: CallSite, out: &mut Commands) {
        region.write_for_home(all, site, out);
    }

    fn brought(&self, region: R, keep: bool, remembered: &mut Remembered<R>, _: &mut Commands) {
        remembered.home.cache(region, keep);
    }

    fn says_what_is_kept(&self, region: R, me: NodeId, table: &R::Table) -> bool {
        table.is_at_home(region, me)
    }

    fn freed(&self, object: Oid, state: &mut ObjectState, (home, races, _): Forgetting<'_, R>) {
        let ids = OidRange::one(object);
        home.forget(ids);
        races.forget_at_home(ids);
        // No notice names what its node flushes.
        state.dirty = false;
    }
}

/// A member takes an event of each.
impl<R: HasParts> Rules<R> for MemberId {
    fn waits_to_write(&self) -> bool {
        true
    }

    fn write(&self, all: &mut Protocols, region: R, _: CallSite, out: &mut Commands) {
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
