//! One-sided reads of elements of arrays: as of [objects](crate::one_sided), but block by block.
//!
//! The owner publishes a block, as many elements as fit a page, whenever none of its elements may
//! be written. A reader looks at the records of the blocks that it needs, copies, and looks again.
//! What cannot be read is asked for by message.

use dhole_heap::{ArrayMiss, HeapMut, MonitorCall, Presence, PublishedBlock, SeenBy};
use dhole_model::{Elements, NodeId, Track, Version};
use dhole_protocol::{
    ArrayEvent, Commands, Event, HeldElements, ProtocolError, UnreadElements, Wanted,
};
use smallvec::SmallVec;

use crate::node::State;
use crate::phases::SAMPLED;
use crate::step::Step;
use crate::timeline::Waited;
use crate::waits::Awaited;
use crate::worker::{Failure, Link};

/// How often a block is read that changes meanwhile, before it is asked for by message.
const ATTEMPTS: usize = 2;

/// The most blocks that are read at once.
const MOST_BLOCKS: usize = 64;

/// The most blocks that are noted as asked for while the worker computes.
const MOST_ASKED: usize = 256;

/// Blocks of one owner that follow on each other and were read.
struct ReadRun {
    elements: Elements,
    /// The place of the bytes in what was copied.
    from: usize,
    bytes: usize,
    blocks: u64,
    /// The newest version of a block.
    newest: Version,
}

impl Link<'_> {
    /// Brings missed elements here from memory that is seen, if all of them are to be had there;
    /// whether they are here.
    pub(crate) fn brings_elements_there(
        &self,
        call: &mut MonitorCall<'_, State>,
        miss: &ArrayMiss,
        missed: &UnreadElements,
    ) -> Result<bool, Box<Failure>> {
        let heap = call.split().0;
        if !heap.publishes_blocks() {
            return Ok(false);
        }
        // They may have come with others.
        if !heap.gets_elements(miss.elements) {
            self.read_elements_there(call, miss, missed)?;
        }
        Ok(call.split().0.gets_elements(miss.elements))
    }

    /// Reads those of the missed elements, and of those around, that are published in the memory of
    /// their last writers.
    fn read_elements_there(
        &self,
        call: &mut MonitorCall<'_, State>,
        miss: &ArrayMiss,
        missed: &UnreadElements,
    ) -> Result<(), Box<Failure>> {
        let (mut heap, state) = call.split();
        let Some(whole) = heap.whole_blocks(missed.elements) else {
            return Ok(());
        };
        for wanted in state.protocol.wants_elements_there(missed, whole) {
            if !self.machine.sees(self.node.id, wanted.need.node) {
                continue;
            }
            let parts = call.split().0.parts_in_blocks(wanted.region);
            let parts: SmallVec<[Elements; 4]> = parts.collect();
            for parts in parts.chunks(MOST_BLOCKS) {
                self.read_blocks_there(call, (miss, missed), (parts, wanted.need))?;
            }
        }
        Ok(())
    }

    /// Reads elements, each part of one block, in the memory of their last writer.
    fn read_blocks_there(
        &self,
        call: &mut MonitorCall<'_, State>,
        (miss, missed): (&ArrayMiss, &UnreadElements),
        (parts, need): (&[Elements], Version),
    ) -> Result<(), Box<Failure>> {
        let now = || self.machine.now(self.node.id);
        let mut left = SmallVec::<[Elements; 4]>::from_slice(parts);
        let mut copied = std::mem::take(&mut call.split().1.seen_blocks.copied);
        for _ in 0..ATTEMPTS {
            let began_ns = self.read_begins();
            copied.clear();
            let (read, changed) = self.look_and_copy((call, &left, need), &mut copied);
            let mut all = (0, 0);
            for run in read {
                let blocks = run.blocks;
                let region = run.elements;
                let mut taken = None;
                self.acts(call, |state, step| {
                    let wanted = Wanted { region, need };
                    let bytes = &copied[run.from..][..run.bytes];
                    let newest = run.newest;
                    if state.protocol.still_wants_elements(wanted, missed.creator) {
                        taken = state.take_elements(wanted, (bytes, blocks, newest), step)?;
                    }
                    Ok(())
                })?;
                self.send(call);
                let bytes = taken.unwrap_or(0);
                all = (
                    all.0 + bytes,
                    all.1 + if taken.is_some() { blocks } else { 0 },
                );
            }
            if all.1 > 0 {
                let took = began_ns.map(|began| (began, now().saturating_sub(began)));
                self.notes_read_there(call, miss, all, took);
            }
            left = changed;
            if left.is_empty() {
                break;
            }
        }
        call.split().1.seen_blocks.copied = copied;
        self.within_memory(call)
    }

    /// Looks, copies and looks again: the elements of blocks that were read whole, as runs, and
    /// those of blocks that have changed meanwhile.
    fn look_and_copy(
        &self,
        (call, parts, need): (&mut MonitorCall<'_, State>, &[Elements], Version),
        copied: &mut Vec<u8>,
    ) -> (SmallVec<[ReadRun; 1]>, SmallVec<[Elements; 4]>) {
        let of = need.node;
        self.elements_pass(call, of, parts);
        let (heap, state) = call.split();
        let mut looks = SmallVec::<[PublishedBlock; 4]>::new();
        for &region in parts {
            let look = heap.look_at_block(of, region);
            let is_wanted = |look: &PublishedBlock| {
                let wanted = Wanted { region, need };
                state.protocol.is_wanted(wanted, look.version())
            };
            looks.extend(look.filter(is_wanted));
        }
        self.elements_pass(call, of, parts);
        let mut places = SmallVec::<[usize; 4]>::new();
        let heap = call.split().0;
        looks.retain(|look| {
            let from = copied.len();
            let is_there = heap.copy_block(look, copied);
            places.extend(is_there.then_some(from));
            is_there
        });
        self.elements_pass(call, of, parts);
        let heap = call.split().0;
        let (mut read, mut changed) = (SmallVec::<[ReadRun; 1]>::new(), SmallVec::new());
        for (place, look) in looks.iter().enumerate() {
            let (elements, from) = (look.elements(), places[place]);
            if !heap.is_still_there(look) {
                changed.push(elements);
                continue;
            }
            let end = places.get(place + 1).copied().unwrap_or(copied.len());
            match read.last_mut() {
                Some(run)
                    if run.from + run.bytes == from
                        && run.elements.range().end == elements.first =>
                {
                    run.elements.count += elements.count;
                    run.bytes += end - from;
                    run.blocks += 1;
                    run.newest = run.newest.max(look.version());
                }
                _ => read.push(ReadRun {
                    elements,
                    from,
                    bytes: end - from,
                    blocks: 1,
                    newest: look.version(),
                }),
            }
        }
        (read, changed)
    }

    /// A step of a one-sided read takes its time, where it takes any.
    fn elements_pass(&self, call: &mut MonitorCall<'_, State>, of: NodeId, parts: &[Elements]) {
        if self.machine.charges_reads() {
            let mut heap = call.split().0;
            let bytes = |part: &Elements| heap.bytes_of_elements(*part).unwrap_or(0) as u64;
            let bytes = parts.iter().map(bytes).sum();
            call.unlock();
            self.machine.reads_there(self.node.id, of, bytes);
        }
    }

    /// So many bytes, of so many blocks, were read at a line.
    fn notes_read_there(
        &self,
        call: &mut MonitorCall<'_, State>,
        miss: &ArrayMiss,
        (bytes, blocks): (usize, u64),
        took: Option<(u64, u64)>,
    ) {
        let State {
            counting,
            last_call,
            ..
        } = call.split().1;
        let (awaited, site) = (Awaited::from(miss), last_call.site());
        if let (true, Some((began_ns, took_ns))) = (counting.records, took) {
            let waited = Waited {
                track: Track::Process(self.fiber.0),
                began_ns,
                took_ns,
                processor_ns: None,
                reads: Some(SAMPLED),
            };
            counting.part_waits.records((awaited, site), waited);
        }
        let allocated_at = |oid| self.node.cluster.allocated_at(oid);
        let took_ns = took.map(|(_, took_ns)| took_ns);
        let read = (blocks, bytes, took_ns);
        counting.waits.read_there(awaited, site, read, allocated_at);
    }
}

impl State {
    /// Makes what was copied of blocks the copy of elements here: how many bytes came. `None` where
    /// they are no values that this node may have; then nothing has happened.
    fn take_elements(
        &mut self,
        wanted: Wanted<Elements>,
        (copied, blocks, newest): (&[u8], u64, Version),
        step: &mut Step<'_, '_>,
    ) -> Result<Option<usize>, ProtocolError> {
        let elements = wanted.region;
        // The neighbour may be malicious, or name objects of which this node has yet to hear: then
        // what it answers to a message counts.
        let Ok(bytes) = step.heap.install_copied(elements, copied) else {
            return Ok(None);
        };
        if let Some(info) = step.heap.type_of_array(elements.array) {
            self.counting.installed(info.name, bytes);
            self.counting.of_type(info.name).one_sided_reads += blocks;
        }
        self.counting.all.one_sided_reads += blocks;
        self.counting.all.one_sided_bytes += bytes as u64;
        self.protocol
            .read_elements_there(wanted, newest, &mut self.commands);
        self.hear_unpublished(step.heap);
        self.carry_out_all(Ok(()), step)?;
        Ok(Some(bytes))
    }

    /// The elements that the event stores here, which are published after it. An array that changes
    /// protocol is published no more.
    pub(crate) fn stored_by(&mut self, event: &Event, heap: &mut HeapMut<'_>) -> Option<Elements> {
        match event {
            Event::Array(ArrayEvent::Allocated { blocks, .. }) => Some(blocks.all()),
            Event::Array(ArrayEvent::Switched { blocks, .. }) => {
                heap.unpublish_elements(blocks.all());
                self.hear_read(heap);
                None
            }
            _ => None,
        }
    }

    /// Publishes what an event has stored.
    pub(crate) fn publish_stored(
        &mut self,
        stored: Option<Elements>,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        self.seen_blocks.later.extend(stored);
        self.publish_clean(step)
    }

    /// Lets neighbours read the blocks that these elements lie in, as far as none of their elements
    /// may be written.
    pub(crate) fn publish_elements(
        &mut self,
        elements: Elements,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        if !step.heap.publishes_blocks() || step.heap.are_published(elements) {
            return Ok(());
        }
        let Some(whole) = step.heap.whole_blocks(elements) else {
            return Ok(());
        };
        let held = self.protocol.held_elements(whole);
        let mut from = 0;
        let blocks: SmallVec<[Elements; 4]> = step.heap.parts_in_blocks(whole).collect();
        for block in blocks {
            from += held[from..]
                .iter()
                .take_while(|part| part.elements.range().end <= block.first)
                .count();
            let parts = held[from..].iter();
            let of_block: SmallVec<[HeldElements; 4]> = parts
                .take_while(|part| part.elements.first < block.range().end)
                .copied()
                .collect();
            self.publish_block(block, &of_block, step)?;
        }
        Ok(())
    }

    /// Lets neighbours read a block of which these are the parts.
    fn publish_block(
        &mut self,
        block: Elements,
        parts: &[HeldElements],
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let is_read = |part: &HeldElements| part.is_own && part.is_served && !part.is_exclusive;
        if parts.iter().any(|part| part.is_exclusive) && parts.iter().any(is_read) {
            // All of it is clean from here on, or from the worker's next call on.
            if step.heap.presence() == Presence::Computing {
                let asked = &mut self.seen_blocks.asked;
                if asked.len() < MOST_ASKED && !asked.contains(&block) {
                    asked.push(block);
                }
                return Ok(());
            }
            let mut commands = Commands::new();
            self.protocol.keep_elements_clean(block, &mut commands);
            for command in commands {
                self.carry_out(command, step)?;
            }
            self.publish_later(block, step.heap);
            return Ok(());
        }
        let is_own = parts.iter().any(|part| part.is_own);
        if is_own && !parts.iter().any(|part| part.is_open) {
            let lamport = parts.iter().map(|part| part.lamport).max().unwrap_or(0);
            let node = self.id;
            step.heap.publish_blocks(block, Version { lamport, node });
        }
        Ok(())
    }

    /// The worker is in a call: blocks that were asked for while it computed are clean from here
    /// on.
    pub(crate) fn publish_asked(&mut self, step: &mut Step<'_, '_>) -> Result<(), ProtocolError> {
        if self.seen_blocks.asked.is_empty() || step.heap.presence() == Presence::Computing {
            return Ok(());
        }
        let mut asked = std::mem::take(&mut self.seen_blocks.asked);
        self.seen_blocks.later.append(&mut asked);
        self.publish_clean(step)
    }

    /// Bytes of elements have changed or may change: the protocol hears which blocks others had
    /// read, and those that may not be written are published again later.
    #[inline]
    pub(crate) fn hear_unpublished(&mut self, heap: &mut HeapMut<'_>) {
        let blocks = self.hear_read(heap);
        self.seen_blocks.later.extend(blocks);
    }

    /// These elements may be clean. Their blocks are published once all that the step says is done:
    /// until then the protocol knows of more than the heap.
    #[inline]
    pub(crate) fn publish_later(&mut self, elements: Elements, heap: &HeapMut<'_>) {
        if heap.publishes_blocks() {
            self.seen_blocks.later.push(elements);
        }
    }

    /// All that the step said is done.
    #[inline]
    pub(crate) fn publish_clean(&mut self, step: &mut Step<'_, '_>) -> Result<(), ProtocolError> {
        while let Some(elements) = self.seen_blocks.later.pop() {
            self.publish_elements(elements, step)?;
        }
        Ok(())
    }

    /// The protocol hears which of the blocks that were made unpublished others had read. All of
    /// these blocks.
    #[inline]
    pub(crate) fn hear_read(&mut self, heap: &mut HeapMut<'_>) -> Vec<Elements> {
        let (me, nodes, protocol) = (self.id, self.nodes, &mut self.protocol);
        heap.take_unpublished(|block, readers: SeenBy| {
            if readers.of(nodes).any(|node| node != me) {
                protocol.elements_were_read(block);
            }
        })
    }
}
