//! Messages that carry others: what may be told beside which message.

use super::Message;

impl Message {
    pub(super) fn may_carry_gossip(&self) -> bool {
        matches!(
            self,
            Message::LockRequest { .. }
                | Message::LockForward { .. }
                | Message::LockGrant { .. }
                | Message::GateRequest { .. }
                | Message::GateForward { .. }
                | Message::GateGrant { .. }
                | Message::GateRelease { .. }
                | Message::Collective(_)
        )
    }

    /// Whether what its sender did with objects happened before what the receiver does next, or
    /// before what others do whom the receiver tells: such a message has to say up to where the
    /// order of the objects had come ([`After`](Message::After)).
    pub fn passes_order_on(&self) -> bool {
        match self {
            Message::LockGrant { .. }
            | Message::BarrierArrive { .. }
            | Message::BarrierDepart { .. }
            | Message::BarrierRound(_)
            | Message::GateForward { .. }
            | Message::GateGrant { .. }
            | Message::GateRelease { .. }
            | Message::Collective(_) => true,
            Message::Gossiped { carrier, .. } => carrier.passes_order_on(),
            _ => false,
        }
    }

    /// The message, told after what was ordered up to `delivered`, if that is anything.
    pub fn after(self, delivered: u64) -> Message {
        match delivered > 0 && self.passes_order_on() {
            true => Message::After {
                delivered,
                carrier: Box::new(self),
            },
            false => self,
        }
    }
}
