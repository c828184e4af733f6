//! Arrays whose blocks are units of a member: how a worker brings blocks here, and their bytes.

use dhole_heap::{ArrayMiss, HeapMut, MonitorCall};
use dhole_model::{Elements, Oid};
use dhole_net::Payload;
use dhole_protocol::{
    ArrayBlocks, ArrayEvent, BlockAccess, BlockEvent, Event, Needs, ProtocolError, UnreadElements,
};
use smallvec::{SmallVec, smallvec};

use crate::access::not_ready;
use crate::node::State;
use crate::step::{Step, gather_elements, not_stored, split};
use crate::worker::{Failure, Link};

impl Link<'_> {
    /// Whether an array is kept consistent by blocks.
    pub(crate) fn keeps_blocks(
        &self,
        call: &mut MonitorCall<'_, State>,
        unread: &UnreadElements,
    ) -> bool {
        let array = unread.elements.array;
        let protocol = &call.split().1.protocol;
        protocol.keeps_blocks(array, unread.coherence)
    }

    /// Makes elements readable here, and writable where the worker writes them.
    pub(crate) fn bring_blocks(
        &self,
        call: &mut MonitorCall<'_, State>,
        miss: &ArrayMiss,
        unread: &UnreadElements,
        to_write: bool,
    ) -> Result<(), Box<Failure>> {
        let (blocks, elements) = (blocks_of(call, miss)?, miss.elements);
        let event = |needs, what| {
            Event::Array(ArrayEvent::Blocks(BlockEvent {
                blocks,
                creator: unread.creator,
                coherence: unread.coherence,
                needs,
                what,
            }))
        };
        // All are asked for at once. What is lost before the last has come is asked for again.
        let absent = absent(&call.split().0, blocks, elements);
        if absent.len() > 1 {
            self.awaits(miss);
            self.and_wait(call, event(None, BlockAccess::Read(absent)))?;
        }
        let mut before = None;
        loop {
            let next = next(&call.split().0, blocks, elements, to_write);
            let Some(what) = next else {
                return self.within_memory(call);
            };
            // What is ready stays until the worker has seen it.
            if before.as_ref() == Some(&what) {
                let writes = matches!(what, BlockAccess::Write(_));
                return Err(not_ready(elements.array, unread.coherence, writes).into());
            }
            before = Some(what.clone());
            self.awaits(miss);
            self.and_wait(call, event(Some(Needs { elements, to_write }), what))?;
        }
    }
}

/// How an array lies in blocks.
pub(crate) fn blocks_of(
    call: &mut MonitorCall<'_, State>,
    miss: &ArrayMiss,
) -> Result<ArrayBlocks, ProtocolError> {
    let array = miss.elements.array;
    let bound = call.split().0.bind_array(miss);
    let bound = bound.map_err(|cause| ProtocolError::NotStored {
        oid: array,
        cause: cause.to_string(),
    })?;
    Ok(ArrayBlocks {
        array,
        len: bound.len,
        per_block: bound.per_block(),
    })
}

/// The blocks of some elements that cannot be read here.
fn absent(heap: &HeapMut<'_>, blocks: ArrayBlocks, elements: Elements) -> SmallVec<[Oid; 1]> {
    let parts = blocks.parts(elements);
    let absent = parts.filter(|(_, part)| !heap.gets_elements(*part));
    absent.map(|(unit, _)| unit).collect()
}

/// What a call does next that needs these elements.
fn next(
    heap: &HeapMut<'_>,
    blocks: ArrayBlocks,
    elements: Elements,
    to_write: bool,
) -> Option<BlockAccess> {
    blocks.parts(elements).find_map(|(unit, part)| {
        if !heap.gets_elements(part) {
            return Some(BlockAccess::Read(smallvec![unit]));
        }
        let lacks = to_write && !heap.may_write_elements(part);
        lacks.then_some(BlockAccess::Write(part))
    })
}

/// Bytes of a number.
const NUMBER: u64 = size_of::<u64>() as u64;

/// The number that eight bytes are.
fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Appends what the worker has written of a block: its writable elements.
pub(crate) fn gather_changes(
    block: Elements,
    payload: &mut Payload,
    step: &mut Step<'_, '_>,
) -> Result<(), ProtocolError> {
    for part in step.heap.writable_of(block) {
        payload.extend(&part.first.to_le_bytes());
        payload.extend(&part.count.to_le_bytes());
        gather_elements(part, step.heap, payload)?;
    }
    Ok(())
}

/// Puts what another node has written of a block in the place of those elements.
pub(crate) fn merge_block(
    block: Elements,
    mut changes: &[u8],
    step: &mut Step<'_, '_>,
) -> Result<(), ProtocolError> {
    let from = step.from;
    while !changes.is_empty() {
        let (first, rest) = split(changes, NUMBER, from)?;
        let (count, rest) = split(rest, NUMBER, from)?;
        let (first, count) = (number(first), number(count));
        let end = first.saturating_add(count);
        if first < block.first || end > block.range().end {
            let what = "changes of elements that are not in the block";
            return Err(ProtocolError::BadMessage { from, what });
        }
        let part = Elements::new(block.array, first..end);
        let sized = step.heap.bytes_of_elements(part);
        let bytes = sized.map_err(|refused| not_stored(part.array, &refused))?;
        let (these, rest) = split(rest, bytes as u64, from)?;
        let merged = step.heap.merge_elements(part, these);
        merged.map_err(|refused| not_stored(part.array, &refused))?;
        changes = rest;
    }
    Ok(())
}
