//! Freed objects: their storage, records and pages of handles go back.
//!
//! An id is never used again, so a stale reference to a freed object reads a null handle for ever,
//! and takes the slow path to an error.

use dhole_model::{CHUNK, Oid, OidRange};
use dhole_space::{IDS_PER_PAGE, PAGE_BYTES};

use crate::heap::{CHUNKS_OF_PAGE, Heap, Place, UNSEEN};
use crate::{HeapMut, ObjectRefusal, ObjectRefused, Presence};

impl Heap {
    /// Gives the storage of an object back, and makes its handles null.
    ///
    /// # Safety
    /// It is an exclusive call.
    unsafe fn free_one(&mut self, oid: Oid, at: Place) {
        self.unpublish(oid);
        let bytes = self.chunks[at.chunk].binding.bytes();
        let Some(storage) = self.chunks[at.chunk].free(at.slot) else {
            return;
        };
        for table in self.tables() {
            // SAFETY: it is an exclusive call, as the caller promises.
            unsafe { table.clear(oid) };
        }
        self.pre_images.forget(oid);
        self.pushed.forget(oid);
        let pages = self.store.give_back(storage, bytes);
        let page = storage / PAGE_BYTES;
        if self.store.is_empty(page) {
            self.residency.clear(page);
        }
        // What is left of pages that are kept as a whole is theirs, whatever was freed on them.
        if !pages.is_empty() && !self.is_paged() {
            // SAFETY: whole pages of this node's store, in which no object lies any more. It is an
            // exclusive call, as the caller promises, so no reference to them lives.
            unsafe { self.release_store(pages) };
        }
    }

    /// Forgets a chunk of which no object is left, and gives the page of handles back that it
    /// lies in if all chunks there are forgotten or were never seen.
    fn forget_chunk(&mut self, number: u64, place: usize) {
        let of_page = number / CHUNKS_OF_PAGE;
        if let Some(page) = self.index.get_mut(&of_page) {
            page[(number % CHUNKS_OF_PAGE) as usize] = UNSEEN;
            if page.iter().all(|place| *place == UNSEEN) {
                self.index.remove(&of_page);
            }
        }
        self.open.retain(|_, open| open.place != place);
        self.spare.push(place as u32);
        self.cluster.let_go(number);
        self.release_handles(number * CHUNK / IDS_PER_PAGE);
        self.release_gates(Oid(number * CHUNK));
    }
}

impl HeapMut<'_> {
    /// Frees what has these ids, objects and whole arrays: their handles are null, their storage
    /// goes back, and whole chunks leave no record. Nothing happens where there is nothing of them.
    ///
    /// # Errors
    /// [`ObjectRefusal::Presence`] outside of an exclusive call.
    pub fn free(&mut self, range: OidRange) -> Result<(), ObjectRefused> {
        let presence = self.heap.presence();
        if presence != Presence::Exclusive {
            return Err(ObjectRefused {
                operation: "freeing",
                oid: range.first,
                node: self.heap.node,
                refusal: ObjectRefusal::Presence(presence),
            });
        }
        self.heap.cluster.hear_freed(range);
        self.heap.retained_elements.forget(range);
        // SAFETY: it is an exclusive call, by the test above.
        unsafe { self.heap.free_arrays(range) };
        let end = range.first.0.saturating_add(u64::from(range.count));
        let mut next = range.first.0;
        while next < end {
            let of_page = next / CHUNK / CHUNKS_OF_PAGE;
            if !self.heap.index.contains_key(&of_page) {
                // Nothing is here of all these chunks.
                next = end.min((of_page + 1) * CHUNKS_OF_PAGE * CHUNK);
                continue;
            }
            let chunk_end = end.min((next / CHUNK + 1) * CHUNK);
            if let Some(Place { chunk, .. }) = self.heap.place(Oid(next)) {
                for oid in (next..chunk_end).map(Oid) {
                    let slot = oid.slot();
                    // SAFETY: it is an exclusive call, by the test above.
                    unsafe { self.heap.free_one(oid, Place { chunk, slot }) };
                }
                if self.heap.chunks[chunk].is_all_freed() {
                    self.heap.forget_chunk(next / CHUNK, chunk);
                }
            }
            next = chunk_end;
        }
        Ok(())
    }

    /// Whether an object was freed, as far as this node has heard; where it has no record of the
    /// object, as far as anyone has.
    pub fn is_freed(&self, oid: Oid) -> bool {
        match self.heap.place(oid) {
            Some(at) => self.heap.chunks[at.chunk].is_freed(at.slot),
            None => self.heap.cluster.is_freed(oid),
        }
    }

    /// Chunks of ids of which this node keeps a record.
    #[cfg(test)]
    pub(crate) fn chunks_kept(&self) -> usize {
        self.heap.chunks.len() - self.heap.spare.len()
    }
}

#[cfg(test)]
mod tests {
    use dhole_model::NodeId;

    use super::*;
    use crate::{Cluster, Monitor};

    fn node() -> Monitor<()> {
        let cluster = Cluster::new(1).expect("room for a node");
        Monitor::new(&cluster, NodeId(0), ())
    }

    #[test]
    fn what_was_freed_is_absent_and_nothing_is_kept_of_it() {
        let node = node();
        let mut guard = node.lock();
        let mut heap = guard.split().0;
        for round in 0..10_000_u64 {
            let small = heap.alloc_range(64, |i| i + round).unwrap();
            let large = heap.alloc_range(3, |_| [round; 1000]).unwrap();
            let one = heap.alloc(round as u32).unwrap();
            for range in [small.oids(), large.oids()].into_iter().flatten() {
                let range = heap.cluster().with_rest(range);
                heap.free(range).unwrap();
                heap.cluster().free(range);
                assert!(!heap.is_present(range.first) && heap.is_freed(range.first));
            }
            heap.free(OidRange::one(one.oid())).unwrap();
        }
        assert!(
            heap.store_bytes() <= 4 * 4096,
            "{} bytes",
            heap.store_bytes()
        );
        assert!(heap.chunks_kept() <= 2, "{} chunks", heap.chunks_kept());
    }

    #[test]
    fn the_handles_of_an_array_stay_when_the_objects_beside_them_are_freed() {
        let node = node();
        let mut guard = node.lock();
        let (mut heap, _) = guard.split();
        let small = heap.alloc_range(64, |i| i).unwrap();
        let array = heap.alloc_array_with(10, |i| i).unwrap();
        assert_eq!(
            array.oid().0 / IDS_PER_PAGE,
            small.at(0).oid().0 / IDS_PER_PAGE
        );
        let [readable, _] = heap.heap.tables();
        assert!(readable.load(array.oid()).is_some());
        heap.free(small.oids().unwrap()).unwrap();
        assert_eq!(heap.chunks_kept(), 0);
        assert!(readable.load(array.oid()).is_some());
    }
}
