//! Messages that carry others.

use dhole_wire::{Tail, Wire, WireAs, WireError};

use super::{AFTER, GOSSIPED, Message};

/// A message that another carries: none that comes after an order itself, and one with gossip only
/// where that is `GOSSIP`. So messages do not nest any deeper.
pub(super) struct Carried<const GOSSIP: bool>;

impl<const GOSSIP: bool> WireAs<Box<Message>> for Carried<GOSSIP> {
    type Head = u8;

    #[inline]
    fn head(carrier: &Box<Message>) -> u8 {
        carrier.head()
    }

    #[inline]
    fn tail_len(carrier: &Box<Message>) -> usize {
        carrier.tail_len()
    }

    #[inline]
    fn write_tail(carrier: &Box<Message>, out: &mut Vec<u8>) {
        carrier.write_tail(out);
    }

    #[inline]
    fn read(head: &u8, tail: &mut Tail<'_>) -> Result<Box<Message>, WireError> {
        if *head == AFTER || *head == GOSSIPED && !GOSSIP {
            return Err(WireError::Value("a carrier that is carried itself"));
        }
        Message::read(head, tail).map(Box::new)
    }
}

impl Message {
    /// The message, told after what was ordered up to `delivered`, if that is anything.
    pub fn after(self, delivered: u64) -> Message {
        if delivered == 0 || !self.passes_order_on() {
            return self;
        }
        Message::After {
            delivered,
            carrier: Box::new(self),
        }
    }
}
