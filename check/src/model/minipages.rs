//! What the two models of minipages have in common, [`memory`](super::memory) and
//! [`release`](super::release): messages on their way, and what can happen next.

use std::fmt;
use std::hash::Hash;

use dhole_model::NodeId;
use dhole_protocol::memory::{MemoryAct, MemoryEffect, MemoryKind, MemoryMessage, Permission};

use super::Sealed;

/// Bytes of the memory object: a page for each of up to four nodes.
pub(super) const OBJECT: u64 = 4 << 12;

/// A message on its way, and what a minipage holds, as far as that comes with it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Parcel<H> {
    pub from: NodeId,
    pub to: NodeId,
    pub message: MemoryMessage,
    pub holds: H,
}

/// Messages on their way, in the order of their hashes.
#[derive(Clone, PartialEq, Hash)]
pub(super) struct Parcels<H>(Vec<Sealed<Parcel<H>>>);

impl<H: Clone + Eq + Hash> Parcels<H> {
    pub fn new() -> Parcels<H> {
        Parcels(Vec::new())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Parcel<H>> {
        self.0.iter().map(|parcel| &**parcel)
    }

    pub fn put(&mut self, parcel: Parcel<H>) {
        let parcel = Sealed::new(parcel);
        let before = |other: &Sealed<Parcel<H>>| other.fingerprint() < parcel.fingerprint();
        let place = self.0.partition_point(before);
        self.0.insert(place, parcel);
    }

    pub fn take(&mut self, place: usize) -> Parcel<H> {
        Parcel::clone(&self.0.remove(place))
    }

    /// What can arrive, at nodes that take messages now.
    pub fn arrive(&self, takes: impl Fn(usize) -> bool) -> impl Iterator<Item = Happening> {
        let again = |place: usize| place > 0 && self.0[place - 1] == self.0[place];
        let all = self.0.iter().enumerate();
        all.filter(move |(place, it)| takes(it.to.index()) && !again(*place))
            .map(|(place, it)| Happening::Deliver(place, it.from, it.to, it.message))
    }
}

/// Something that can happen next.
#[derive(Clone, PartialEq)]
pub enum Happening {
    /// A thread goes on. If it was woken, it makes its access before its node acknowledges, or
    /// not.
    Compute(usize, usize, bool),
    /// A node carries out the next thing that its step does.
    CarryOut(usize, MemoryEffect),
    /// The message at this place arrives, from one node at another.
    Deliver(usize, NodeId, NodeId, MemoryMessage),
}

impl fmt::Debug for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Happening::Compute(node, thread, at_once) => {
                let how = if *at_once { " and accesses" } else { "" };
                write!(f, "thread {thread} of n{node} goes on{how}")
            }
            Happening::CarryOut(node, command) => write!(f, "n{node}: {command:?}"),
            Happening::Deliver(_, from, to, message) => {
                write!(f, "{from:?} -> {to:?}: {message:?}")
            }
        }
    }
}

/// What an effect permits, if anything.
pub(super) fn permits(effect: &MemoryEffect) -> Option<Permission> {
    match effect {
        MemoryEffect::Act(MemoryAct::Permit { permission, .. }) => Some(*permission),
        _ => None,
    }
}

/// Whether an effect takes a permission away, or leaves less.
pub(super) fn revokes(effect: &MemoryEffect) -> bool {
    permits(effect).is_some_and(|permission| permission != Permission::Write)
}

/// Whether an effect sends bytes of a minipage.
pub(super) fn carries(effect: &MemoryEffect) -> bool {
    sends(effect, MemoryKind::Data) || sends(effect, MemoryKind::Diff)
}

/// Whether the effect sends a message of this kind.
pub(super) fn sends(effect: &MemoryEffect, kind: MemoryKind) -> bool {
    matches!(effect, MemoryEffect::Send { message, .. } if message.kind == kind)
}
