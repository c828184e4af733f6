//! What the rest of a node's protocols ask of one protocol.
//!
//! There are two questions. *May the worker change a region here?* ([`Rules::waits_to_write`],
//! [`Rules::write_fault`]) *What follows?* The protocol of a region says what follows from what
//! happens to the region: the other methods of [`Rules`]. Each protocol says what follows when the
//! worker synchronises: [`AtSync`]. Members answer by
//! [`CoherenceProtocol`](super::member::CoherenceProtocol), whose methods have the same names.
//!
//! [`rules`] and [`PROTOCOLS`] are the lists of protocols. No other code asks which protocol keeps
//! a region consistent. What holds of a protocol at all times is among its
//! [properties](dhole_model::Properties).

mod home;
mod lazy;
mod members;
mod treadmarks;
mod update;

use std::marker::PhantomData;
use std::ops::Deref;

use dhole_model::{CallSite, Coherence, Elements, NodeId, Oid, OidRange, Version};

use super::Protocols;
use crate::Interval;
use crate::coherence::home::Home;
use crate::coherence::members::Members;
use crate::coherence::object_table::ObjectState;
use crate::coherence::parts::HasParts;
use crate::coherence::races::RaceFinder;
use crate::coherence::remembered::Remembered;
use crate::command::Commands;
use crate::sync::interval::Attached;

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
            Coherence::Lazy | Coherence::TreadMarks => &lazy::LazyRules,
            Coherence::Update => &update::UpdateRules,
            Coherence::Home => &home::HomeRules,
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
    fn write_fault(&self, all: &mut Protocols, region: R, site: CallSite, out: &mut Commands);

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

/// All protocols, in the order in which they take what concerns all regions.
pub(crate) const PROTOCOLS: [&dyn AtSync; 5] = [
    &lazy::LazyRules,
    &update::UpdateRules,
    &treadmarks::TreadMarksRules,
    &home::HomeRules,
    &members::MemberRules,
];

/// What follows under a protocol when this node's worker synchronises.
pub(crate) trait AtSync {
    /// Whether something must be done before the worker synchronises.
    #[inline]
    fn must_release(&self, _all: &Protocols) -> bool {
        false
    }

    /// The worker is about to synchronise, and something must be done before.
    fn before_release(&self, _all: &mut Protocols, _out: &mut Commands) {}

    /// Whether that is not over.
    #[inline]
    fn is_releasing(&self, _all: &Protocols) -> bool {
        false
    }

    /// The interval ends; what other nodes learn with it goes to `attached`. Whether it is told of,
    /// even if write notices name nothing.
    fn ends_interval(&self, _: &mut Protocols, _attached: &mut Attached, _: &mut Commands) -> bool {
        false
    }

    /// The interval has written these elements and objects, which write notices name, in this
    /// version.
    fn written(
        &self,
        _all: &mut Protocols,
        _version: Version,
        _written: (&[Elements], &[OidRange]),
        _out: &mut Commands,
    ) {
    }

    /// The worker acquires another node's interval.
    fn noticed(&self, _all: &mut Protocols, _interval: &Interval, _out: &mut Commands) {}

    /// The worker has acquired something. There may be no news of it: not all that is written has
    /// notices.
    fn after_acquire(&self, _all: &mut Protocols, _out: &mut Commands) {}

    /// How many messages are delivered again at the worker's next call.
    #[inline]
    fn deferred(&self, _all: &Protocols) -> usize {
        0
    }

    /// Whether the end of the interval and an acquire change nothing here, besides what
    /// [must be done](AtSync::must_release) before.
    #[inline]
    fn is_quiescent(&self, _all: &Protocols) -> bool {
        true
    }
}
