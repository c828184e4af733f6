//! What the two models of minipages have in common, [`memory`](super::memory) and
//! [`release`](super::release): what can happen next, and what effects mean.

use std::fmt;

use dhole_protocol::memory::{MemoryAct, MemoryEffect, MemoryKind, Permission};

/// Bytes of the memory object: a page for each of up to four nodes.
pub(super) const OBJECT: u64 = 4 << 12;

/// What can happen next beside a message that arrives.
#[derive(Clone, PartialEq)]
pub(super) enum Happening {
    /// A thread goes on. If it was woken, it makes its access before its node acknowledges, or
    /// not.
    Compute(usize, usize, bool),
    /// A node carries out the next thing that its step does.
    CarryOut(usize, MemoryEffect),
}

impl fmt::Debug for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Happening::Compute(node, thread, at_once) => {
                let how = if *at_once { " and accesses" } else { "" };
                write!(f, "thread {thread} of n{node} goes on{how}")
            }
            Happening::CarryOut(node, command) => write!(f, "n{node}: {command:?}"),
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
