//! What calls do with the [nursery](crate::nursery): they set objects aside in it, and take what
//! was born into the heap's records.

use std::panic::Location;

use dhole_model::{CHUNK, Oid, OidRange};

use crate::heap::Heap;
use crate::nursery::{Batch, Kind};
use crate::{Binding, HeapMut, Presence, Share};

/// A batch has as many bytes at most, if it has more than one object.
const MOST_BYTES: u64 = 16 << 10;

impl HeapMut<'_> {
    /// Takes what the worker allocated by itself since the last time into the heap's records: such
    /// objects are present and writable. `born` is called with each range of them, and what its
    /// objects are. Nothing happens while the worker computes.
    pub fn hear_of_born(&mut self, mut born: impl FnMut(OidRange, Binding)) {
        if self.heap.presence() == Presence::Computing {
            return;
        }
        let extents = self.heap.extents.clone();
        // SAFETY: the node lock is held, as `HeapMut` says, and the worker is in a call, as was
        // just tested. The reference ends with this function, which calls none that makes another.
        let batches = unsafe { extents.nursery.in_call() };
        for place in batches.born.drain(..) {
            let batch = &mut batches.all[place];
            let heard = std::mem::replace(&mut batch.heard, batch.next);
            for slot in heard..batch.next {
                let oid = Oid(batch.first.0 + slot as u64);
                self.heap.adopt(oid, batch.chunk, batch.storage[slot]);
            }
            let range = OidRange {
                first: Oid(batch.first.0 + heard as u64),
                count: (batch.next - heard) as u32,
            };
            born(range, self.heap.chunks[batch.chunk].binding);
        }
    }

    /// Whether the worker allocated something of which the heap has not heard. `false` while it
    /// computes.
    #[inline]
    pub fn has_born(&self) -> bool {
        // SAFETY: as in `hear_of_born`.
        self.heap.presence() != Presence::Computing
            && unsafe { !self.heap.extents.nursery.in_call().born.is_empty() }
    }

    /// Sets objects aside that the worker may allocate by itself at this place in the program:
    /// each time twice as many, as far as they are of one chunk. Nothing happens where some are
    /// left, without room, where every object has its place in a global space, or outside of an
    /// exclusive call: then the worker allocates by calls.
    pub fn set_aside<T: Share>(&mut self, site: &'static Location<'static>) {
        let has_places = self.heap.views.is_some() || self.heap.cluster.global().is_some();
        if has_places || self.heap.is_paged() || self.heap.presence() != Presence::Exclusive {
            return;
        }
        let kind = Kind::of::<T>(self.coherence, site);
        let extents = self.heap.extents.clone();
        // SAFETY: as in `hear_of_born`.
        let batches = unsafe { extents.nursery.in_call() };
        batches.base = Some(self.heap.store.pointer(0));
        let place = match batches.by_kind.get(&kind) {
            Some(place) => *place,
            None => {
                batches.by_kind.insert(kind, batches.all.len());
                batches.all.push(Batch {
                    kind,
                    chunk: 0,
                    first: Oid(0),
                    heard: 0,
                    next: 0,
                    end: 0,
                    storage: [0; CHUNK as usize],
                });
                batches.all.len() - 1
            }
        };
        let batch = &mut batches.all[place];
        if batch.next < batch.end || batch.heard < batch.next {
            return;
        }
        let bytes = (size_of::<T>() as u64).max(1);
        let most = (MOST_BYTES / bytes).clamp(1, CHUNK) as usize;
        let had = batch.end.max(1);
        // The record goes with its chunk, whose ids a neighbour may say are all freed.
        let goes_on = |slot| {
            let at = self.heap.place(batch.first);
            at.is_some_and(|at| {
                at.chunk == batch.chunk && !self.heap.chunks[at.chunk].is_taken(slot)
            })
        };
        if batch.end == 0 || batch.end == CHUNK as usize || !goes_on(batch.end) {
            let Ok((number, chunk)) = self.heap.new_chunk::<T>(self.coherence, site) else {
                return;
            };
            (batch.chunk, batch.first) = (chunk, Oid(number * CHUNK));
            (batch.heard, batch.next, batch.end) = (0, 0, 0);
        }
        for slot in (batch.end..CHUNK as usize).take(had.min(most)) {
            if self.heap.chunks[batch.chunk].is_taken(slot) {
                break;
            }
            let oid = Oid(batch.first.0 + slot as u64);
            let align = align_of::<T>() as u64;
            let Some(storage) = self.heap.store.take_for(oid, bytes, align) else {
                break;
            };
            self.heap.chunks[batch.chunk].set_aside(slot);
            batch.storage[slot] = storage;
            batch.end = slot + 1;
        }
    }
}

impl Heap {
    /// An object that was set aside in the chunk of this record has its value, and may be written.
    fn adopt(&mut self, oid: Oid, chunk: usize, storage: u64) {
        let record = &mut self.chunks[chunk];
        if record.adopt(oid.slot(), storage) {
            let bytes = record.binding.bytes();
            self.residency.add(oid, storage, bytes);
        }
    }
}
