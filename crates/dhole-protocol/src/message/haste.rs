//! How soon a message has to be taken, and which waits it may end.

use dhole_model::{MessageKind, NodeId};

use super::Message;
use crate::haste::Haste;

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
