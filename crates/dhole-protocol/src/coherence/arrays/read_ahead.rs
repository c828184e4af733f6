//! Read-ahead in arrays: where some elements of a block came from a node, the rest comes with the
//! next miss there.
//!
//! A program that accesses few elements at a time, here and there, misses each part by itself.
//! What is valid here tells how dense these accesses are: around a miss the largest block is read
//! ahead of which a quarter came from the same node, accessed or read ahead. So a walk along an
//! array brings four times as much with each miss, and accesses at random bring whole blocks once
//! there were a few in each. The smallest block comes with the second miss in it. What this node
//! wrote itself does not count: it says nothing of what it reads.

use dhole_model::{Elements, NodeId, Version};

use super::Arrays;
use crate::Wanted;
use crate::array_event::ReadAhead;

/// Blocks in which more parts differ from their neighbours are not read ahead: looking through them
/// takes too long.
const MOST_PARTS: usize = 64;

/// Of a block that is larger than the smallest one, this part has come before.
const SHARE: u64 = 4;

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
        let (block, missed) = (block.range(), missed.range());
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
    fn dense_around(
        &self,
        missed: Elements,
        (of, zero_ok): (NodeId, bool),
        ahead: &ReadAhead,
    ) -> Option<Elements> {
        let (mut found, mut parts, mut size) = (None, 0, ahead.block);
        while size <= ahead.most {
            let first = missed.first / size * size;
            let block = Elements::new(missed.array, first..(first + size).min(ahead.len));
            let mut came = 0;
            for (part, state) in self.states(block) {
                parts += 1;
                if parts > MOST_PARTS {
                    return found;
                }
                let came_from = |it: Version| it.node == of && !(zero_ok && it.lamport == 0);
                let is_from = state.is_valid() && state.held().is_some_and(came_from);
                came += if is_from { part.count } else { 0 };
            }
            let is_within = missed.range().end <= block.range().end;
            let enough = if size == ahead.block { 1 } else { size / SHARE };
            if is_within && came >= enough {
                found = Some(block);
            }
            size *= 2;
        }
        found
    }
}
