//! How soon a message has to be taken, and which waits it may end.

use dhole_model::{MessageKind, NodeId};

use super::Message;

/// How soon the receiver of a message has to take it while its worker computes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Haste {
    /// When its worker waits or synchronises: nothing comes of it before that another node could
    /// wait for.
    AtLeisure,
    /// When its worker looks at an object that is replicated, or a few milliseconds later:
    /// something comes of it that another node waits for only where it was overtaken by what it
    /// goes before, or where the replica has become the only copy.
    Soon,
    /// At once where the worker that sent it waits for what comes of it, and otherwise soon, though
    /// others may wait for that: who sent it and comes to wait for it later says so then.
    WhenAwaited,
    /// At once: others may wait for what comes of it.
    AtOnce,
}

impl Message {
    /// How soon node `to` has to take it.
    pub fn haste(&self, to: NodeId) -> Haste {
        use MessageKind::*;
        match self {
            Message::Objects(message) => message.haste(to),
            message => match message.kind() {
                FetchReply | PageReply | DiffReply | IdsReply | Gone | Update | DropOut
                | FlushAck | LockGrant | GateGrant | BarrierArrive | BarrierDepart
                | BarrierRound | Collective => Haste::AtLeisure,
                _ => Haste::AtOnce,
            },
        }
    }

    /// Whether a wait for a lock, at a barrier, at a gate or on a condition may end because of
    /// the message.
    pub(crate) fn may_end_a_wait(&self) -> bool {
        use MessageKind::*;
        matches!(
            self.kind(),
            LockRequest
                | LockForward
                | LockGrant
                | BarrierArrive
                | BarrierDepart
                | BarrierRound
                | Collective
                | GateRequest
                | GateForward
                | GateGrant
                | GateRelease
                | Notify
        )
    }

    /// Whether the message brings what its receiver's worker waits for.
    pub(crate) fn ends_a_wait(&self) -> bool {
        matches!(
            self,
            Message::FetchReply { .. }
                | Message::ElementsReply { .. }
                | Message::PageReply { .. }
                | Message::DiffReply { .. }
                | Message::Gone { .. }
                | Message::ElementsGone { .. }
                | Message::HandIdsOut(_)
                | Message::LockGrant { .. }
                | Message::GateGrant { .. }
                | Message::BarrierDepart { .. }
                | Message::BarrierRound(_)
                | Message::Collective(_)
                | Message::Notify { .. }
        )
    }
}
