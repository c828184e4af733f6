//! [Read-ahead](crate::read_ahead) in arrays: where some elements of a block came from a node, the
//! rest comes with the next miss there. The smallest block comes with the second miss in it.

use std::ops::Range;

use dhole_model::{Elements, NodeId, Version};

use super::Arrays;
use crate::Wanted;
use crate::read_ahead::ReadAhead;

/// Blocks in which more parts differ from their neighbours are not read ahead: looking through them
/// takes too long.
const MOST_PARTS: usize = 64;

impl Arrays {
    /// Adds what lies around missed elements to the round that fetches them, if that is worth it.
    /// As for a miss, `creator` is asked for what nobody has written, unless it is `zero_ok`.
    pub(crate) fn read_ahead(
        &mut self,
        missed: Elements,
        (creator, zero_ok): (NodeId, bool),
        ahead: &ReadAhead,
    ) {
        let Arrays {
            table, fetching, ..
        } = self;
        let array = missed.array;
        let coherence = table.coherence(array);
        let may = coherence.is_some_and(|coherence| coherence.properties().aggregates);
        let Some(of) = fetching.fetches.only_one().filter(|_| may) else {
            return;
        };
        let Some(block) = table.dense_around(missed, (of, zero_ok), ahead) else {
            return;
        };
        let before = fetching.fetches.wanted();
        let missed = missed.range();
        for around in [block.start..missed.start, missed.end..block.end] {
            for (region, state) in table.states(Elements::new(array, around)) {
                let need = state.known(creator);
                let is_zero = need.lamport == 0 && zero_ok;
                if !state.is_valid() && need.node == of && !is_zero {
                    let beside = true;
                    fetching
                        .fetches
                        .want(before, beside, Wanted { region, need });
                }
            }
        }
    }
}

impl super::ArrayTable {
    /// The largest block around missed elements of which enough came from a node. Zeros that were
    /// filled in here did not.
    pub(super) fn dense_around(
        &self,
        missed: Elements,
        (of, zero_ok): (NodeId, bool),
        ahead: &ReadAhead,
    ) -> Option<Range<u64>> {
        let mut parts = 0;
        ahead.densest(missed.range(), |block| {
            let mut came = 0;
            for (part, state) in self.states(Elements::new(missed.array, block)) {
                parts += 1;
                if parts > MOST_PARTS {
                    return None;
                }
                let came_from = |it: Version| it.node == of && !(zero_ok && it.lamport == 0);
                let is_from = state.is_valid() && state.held().is_some_and(came_from);
                came += if is_from { part.count } else { 0 };
            }
            Some(came)
        })
    }
}
