//! The part of a program that is measured, as a node counts it.

use std::time::Duration;

use dhole_model::{Counters, LineCosts, MessageKind};
use serde::{Deserialize, Serialize};

/// The part of a program that is measured, as a node counts it.
#[derive(Default)]
pub(crate) enum Measured {
    /// There is none so far.
    #[default]
    Nothing,
    /// It begins behind the barrier that this node is at: how the counters stood after the last
    /// message that the node sent for it. What it sends after that belongs to what follows, be it
    /// that its worker has not heard yet that all have arrived.
    Behind(Option<Box<Counters>>),
    /// It began at this time on the node's clock, when the counters stood like this, and the lines
    /// had cost that.
    Since(u64, Box<(Counters, LineCosts)>),
    /// It is over, and came to this.
    Whole(Box<Part>),
}

/// The part of a program that was measured on a node.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Part {
    pub counters: Counters,
    /// What the lines of the program cost.
    pub costs: LineCosts,
    /// When it began and ended on the node's clock, which began with the run.
    pub ns: [u64; 2],
}

/// How long the measured part took, from the first node that began to the last that ended. Clocks
/// of different processes are not compared: there it is the longest time that a node took.
pub(crate) fn took<'a>(
    parts: impl Iterator<Item = &'a Part> + Clone,
    one_clock: bool,
) -> Option<Duration> {
    let longest = parts.clone().map(|part| part.ns[1] - part.ns[0]).max();
    let (first, last) = (
        parts.clone().map(|part| part.ns[0]).min(),
        parts.map(|part| part.ns[1]).max(),
    );
    let ns = match one_clock {
        true => last?.saturating_sub(first?),
        false => longest?,
    };
    Some(Duration::from_nanos(ns))
}

impl Measured {
    /// Whether what is measured may begin with this message sent.
    pub fn begins_behind(&self, kind: MessageKind) -> bool {
        use MessageKind::{BarrierArrive, BarrierDepart, BarrierRound};
        let of_barrier = matches!(kind, BarrierArrive | BarrierDepart | BarrierRound);
        matches!(self, Measured::Behind(_)) && of_barrier
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_lasts_from_the_first_that_began_to_the_last_that_ended() {
        let part = |ns| Part {
            counters: Counters::default(),
            costs: LineCosts::default(),
            ns,
        };
        let parts = [part([10, 30]), part([25, 60])];
        assert_eq!(took(parts.iter(), true), Some(Duration::from_nanos(50)));
        assert_eq!(took(parts.iter(), false), Some(Duration::from_nanos(35)));
        assert_eq!(took([].iter(), true), None);
    }
}
