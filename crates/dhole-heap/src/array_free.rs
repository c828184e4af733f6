//! Freed arrays: their storage, extents and pages of handles go back.

use dhole_model::{CHUNK, Oid, OidRange};
use dhole_space::IDS_PER_PAGE;

use crate::heap::Heap;
use crate::local_array::LocalArray;
use crate::{ElementsRefusal, ElementsRefused, HeapMut, Presence};

impl Heap {
    /// Forgets the arrays whose first ids are among these.
    ///
    /// # Safety
    /// It is an exclusive call.
    pub(crate) unsafe fn free_arrays(&mut self, ids: OidRange) {
        while let Some((&array, _)) = self.arrays.range(ids.first..=ids.last()).next() {
            // SAFETY: the caller's promise.
            unsafe { self.free_array(array) };
        }
    }

    /// # Safety
    /// As [`free_arrays`](Heap::free_arrays).
    unsafe fn free_array(&mut self, array: Oid) {
        self.unpublish_freed(array);
        let Some(local) = self.arrays.remove(&array) else {
            return;
        };
        self.cluster.let_array_go(array);
        // SAFETY: it is an exclusive call, as the caller promises, and whoever has the heap has the
        // node lock.
        unsafe {
            self.clear_handles(array, &local);
            self.extents.read.forget(array);
            self.extents.write.forget(array);
        }
        let LocalArray {
            binding,
            storage,
            pages,
            ..
        } = &local;
        let released = match pages {
            // Where arrays lie alike everywhere, they share pages with whatever came next.
            None if self.cluster.global().is_some() => 0..0,
            None => self.store.give_back(*storage, binding.bytes()),
            Some(pages) => {
                self.array_bytes -= local.stored_bytes(array, 0..u64::MAX);
                self.store.unreserve(pages.clone());
                pages.clone()
            }
        };
        if !released.is_empty() {
            // SAFETY: whole pages of this node's store in which nothing lies any more; it is an
            // exclusive call, so no reference to them lives.
            unsafe { self.release_store(released) };
        }
        let first = array.0 / IDS_PER_PAGE;
        let last = (array.0 + local.block_count().max(1) - 1) / IDS_PER_PAGE;
        (first..=last).for_each(|page| self.release_handles(page));
    }

    /// Handles are set only for blocks that hold something. A page of a table that was never
    /// touched stays so.
    ///
    /// # Safety
    /// As [`free_arrays`](Heap::free_arrays).
    unsafe fn clear_handles(&self, array: Oid, local: &LocalArray) {
        let blocks = local.stored.of(0..u64::MAX).filter(|(_, stored)| *stored);
        for oid in blocks.flat_map(|(blocks, _)| blocks).map(|b| array.plus(b)) {
            for table in self.tables() {
                if table.load(oid).is_some() {
                    // SAFETY: it is an exclusive call, as the caller promises.
                    unsafe { table.clear(oid) };
                }
            }
        }
    }

    /// Gives a page of handles of both tables back, if there is nothing left that they could be
    /// set for.
    pub(crate) fn release_handles(&self, page: u64) {
        let first = page * IDS_PER_PAGE;
        let seen = |chunk: u64| self.place(Oid(chunk * CHUNK)).is_some();
        if (first / CHUNK..(first + IDS_PER_PAGE) / CHUNK).any(seen) {
            return;
        }
        let before = self.arrays.range(..Oid(first + IDS_PER_PAGE)).next_back();
        if before.is_some_and(|(array, local)| array.0 + local.block_count() > first) {
            return;
        }
        // SAFETY: the handles are all null: they are set only for objects of chunks and for blocks
        // of arrays of which this heap has a record, and it has none here, as was just found.
        unsafe { self.slot.release_handles(first..first + IDS_PER_PAGE) };
        if let Some(published) = &self.published {
            // What is published is of a chunk of which this heap has a record.
            published.release(self.cluster.record_of(Oid(first)));
        }
    }
}

impl HeapMut<'_> {
    /// Frees an array: its handles are null, its storage goes back, and it leaves no record.
    /// Nothing happens where there is nothing of it.
    ///
    /// # Errors
    /// [`ElementsRefusal::Presence`] outside of an exclusive call.
    pub fn free_array(&mut self, ids: OidRange) -> Result<(), ElementsRefused> {
        let presence = self.heap.presence();
        if presence != Presence::Exclusive {
            return Err(ElementsRefused {
                operation: "freeing",
                elements: dhole_model::Elements::new(ids.first, 0..0),
                node: self.heap.node,
                refusal: ElementsRefusal::Presence(presence),
            });
        }
        self.heap.cluster.hear_freed(ids);
        self.heap.retained_elements.forget(ids);
        // SAFETY: it is an exclusive call, by the test above.
        unsafe { self.heap.free_arrays(ids) };
        Ok(())
    }

    /// Arrays of which this node keeps a record.
    pub fn arrays_kept(&self) -> usize {
        self.heap.arrays.len()
    }

    /// Whether nothing is left of an array here because it was freed.
    pub fn is_array_freed(&self, array: Oid) -> bool {
        !self.heap.arrays.contains_key(&array) && self.heap.cluster.is_freed(array)
    }
}
