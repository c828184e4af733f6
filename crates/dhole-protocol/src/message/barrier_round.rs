//! Rounds of barriers: messages that nodes take where they lie.

use dhole_wire::{Tail, Wire};

use super::{AFTER, BARRIER_ROUND};
use crate::barrier::BarrierRound;

/// The bytes of what a node says to which so much of the objects' order was delivered.
#[inline]
pub fn encode(said: &BarrierRound, delivered: u64, out: &mut Vec<u8>) {
    if delivered > 0 {
        out.push(AFTER);
        delivered.write(out);
    }
    out.push(BARRIER_ROUND);
    said.write(out);
}

/// What these bytes say, and after what of the objects' order, if they are such a message.
#[inline]
pub fn decode(bytes: &[u8]) -> Option<(BarrierRound, u64)> {
    let mut tail = Tail::new(bytes);
    let mut kind = *tail.head::<u8>().ok()?;
    let mut delivered = 0;
    if kind == AFTER {
        delivered = u64::take(&mut tail).ok()?;
        kind = *tail.head::<u8>().ok()?;
    }
    if kind != BARRIER_ROUND {
        return None;
    }
    let said = BarrierRound::parse(tail.rest()).ok()?;
    Some((said, delivered))
}
