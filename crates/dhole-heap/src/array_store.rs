//! One node's arrays: storage by blocks, and what may be done to elements under the node lock.

use std::ptr::NonNull;

use dhole_model::{Elements, NodeId, Oid, PageRange, RangeSet};
use dhole_space::{HUGE_BYTES, PAGE_BYTES, Reserved, View, space};

use crate::foreign::Unheard;
use crate::heap::Heap;
use crate::local_array::LocalArray;
use crate::{
    Array, ArrayBinding, ArrayMiss, BindError, Foreign, HeapMut, Invalid, Presence, Share, TypeInfo,
};

/// Why something cannot be done to elements of an array. Nothing was done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{operation} {elements} on {node}: {refusal}")]
pub struct ElementsRefused {
    /// What was asked for.
    pub operation: &'static str,
    /// The elements.
    pub elements: Elements,
    /// The node.
    pub node: NodeId,
    /// Why not.
    pub refusal: ElementsRefusal,
}

/// What stands against something that is to be done to elements.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ElementsRefusal {
    /// References may live that it would break.
    #[error("{0}")]
    Presence(Presence),
    /// The array has no such elements.
    #[error("the array has {0} elements")]
    Beyond(u64),
    /// Some of them are valid, and may be in use.
    #[error("valid ones are here, and may be in use")]
    Present,
    /// Some of them are written by the node's own interval.
    #[error("some are being written here")]
    Writable,
    /// Not all of them are valid here.
    #[error("not all are valid here")]
    Absent,
    /// Not all of them are stored here.
    #[error("not all are stored here")]
    NotStored,
    /// Pages are kept consistent, not elements.
    #[error("its cluster keeps whole pages consistent")]
    Paged,
    /// The array did not start as zeros.
    #[error("the array did not start as zeros")]
    NotZeros,
    /// Numbers of their type are not combined so.
    #[error("numbers of their type have no such operator")]
    NoOperator,
    /// They do not have as many bytes.
    #[error("{bytes} bytes for elements of {wanted}")]
    Length {
        /// Bytes that came.
        bytes: usize,
        /// Bytes of the elements without their padding.
        wanted: u64,
    },
    /// The bytes of one are no value of its type.
    #[error("{0}")]
    Invalid(#[from] Invalid),
    /// There is no such array, or a reference in the bytes is one that nobody can have.
    #[error("{0}")]
    Reference(#[from] BindError),
    /// The node's page store is full.
    #[error("the store of {0} bytes is full")]
    Full(u64),
}

impl From<Foreign> for ElementsRefusal {
    fn from(foreign: Foreign) -> ElementsRefusal {
        ElementsRefusal::Reference(foreign.into())
    }
}

pub(crate) type Refusable<T> = Result<T, ElementsRefusal>;

impl Heap {
    /// The array of these elements, with address space for all of it, if it has them.
    pub(crate) fn array(&mut self, elements: Elements) -> Refusable<&mut LocalArray> {
        let array = elements.array;
        if !self.arrays.contains_key(&array) {
            let binding = self.cluster.array(array)?;
            let (bytes, align) = (binding.bytes(), binding.info.align as u64);
            let full = ElementsRefusal::Full(self.store.capacity());
            let (storage, pages) = match self.cluster.address_of_array(array) {
                Some(address) => (self.store.reserve_at(address, bytes).ok_or(full)?, None),
                None if bytes < PAGE_BYTES => {
                    let storage = self.store.take(bytes, align).ok_or(full)?;
                    // An object may have lain there before. Elements that never came travel beside
                    // others of their block.
                    //
                    // SAFETY: the store has just given so many bytes to this array alone, so nobody
                    // refers to them.
                    unsafe { self.store.pointer(storage).write_bytes(0, bytes as usize) };
                    (storage, None)
                }
                None => {
                    let Reserved { at, pages } = self.store.reserve(bytes, align).ok_or(full)?;
                    (at, Some(pages))
                }
            };
            let local = LocalArray {
                binding,
                storage,
                pages,
                stored: RangeSet::new(),
                touched: RangeSet::new(),
                published: RangeSet::new(),
                advised: 0,
            };
            self.cluster.hold_array(array)?;
            self.arrays.insert(array, local);
        }
        let local = self.arrays.get_mut(&array).expect("just inserted");
        let end = elements.first.checked_add(elements.count);
        match end.is_some_and(|end| end <= local.binding.len) {
            true => Ok(local),
            false => Err(ElementsRefusal::Beyond(local.binding.len)),
        }
    }

    /// Where elements of an array are that [`Heap::array`] has found.
    pub(crate) fn span(&self, elements: Elements) -> (NonNull<u8>, &'static TypeInfo) {
        let LocalArray {
            binding, storage, ..
        } = &self.arrays[&elements.array];
        let offset = elements.first * binding.info.size as u64;
        (self.store.pointer(storage + offset), binding.info)
    }

    fn base(&self, array: Oid, view: View) -> NonNull<u8> {
        self.seen(view, self.arrays[&array].storage)
    }

    /// Where elements are in the store.
    fn place_of(&self, elements: Elements) -> u64 {
        let LocalArray {
            binding, storage, ..
        } = &self.arrays[&elements.array];
        storage + elements.first * binding.info.size as u64
    }

    /// Counts the blocks of elements that are stored from now on, or where arrays lie alike
    /// everywhere, the pages.
    pub(crate) fn store_blocks(&mut self, elements: Elements) {
        let local = self.arrays.get_mut(&elements.array).expect("found before");
        let (blocks, size) = (local.blocks(elements), local.binding.info.size as u64);
        let before = local.stored_bytes(elements.array, blocks.clone());
        local.stored.set(blocks.clone(), true);
        local.touched.set(blocks.clone(), true);
        if local.pages.is_some() {
            self.array_bytes += local.stored_bytes(elements.array, blocks) - before;
        } else if self.cluster.global().is_some() {
            let start = local.storage + elements.first * size;
            let bytes = start..start + elements.count * size;
            for page in PageRange::of(bytes, PAGE_BYTES).iter() {
                let reached = self.store.touch(page.0 * PAGE_BYTES);
                debug_assert!(reached.is_some(), "all of an array has addresses");
            }
        }
        self.advise_huge(elements);
    }

    /// What is stored at once, or goes on where as much was stored before, may have huge pages: a
    /// large array is found in fewer steps of address translation, and one of which little is
    /// touched stays small. Memory of a file is taken with the advice, so there as much is advised
    /// as is stored.
    fn advise_huge(&mut self, elements: Elements) {
        let local = self.arrays.get_mut(&elements.array).expect("found before");
        let size = local.binding.info.size as u64;
        let block = local.blocks(elements).start;
        let run = local.touched.around(block, 0..local.block_count());
        let bytes = local.binding.per_block() * size;
        let (start, end) = (run.start * bytes, run.end * bytes);
        let whole = local.binding.len * size;
        if end - start < HUGE_BYTES || end <= local.advised {
            return;
        }
        let array = self.store.pointer(local.storage);
        let is_file = self.store.is_of_file(local.storage + whole);
        let ahead = if is_file { end } else { 2 * end - start };
        let more = space::huge_from(array, ahead).min(whole);
        let from = start.max(local.advised);
        local.advised = more;
        if from < more {
            // SAFETY: a part of the array's storage, which the store has mapped.
            unsafe { self.store.advise_array(local.storage + from, more - from) };
        }
    }

    /// The elements, which [`Heap::array`] has found, may be read from now on. In a shared call the
    /// worker is told later.
    ///
    /// # Safety
    /// They hold valid values.
    ///
    /// # Panics
    /// While the worker computes, and could look at them.
    pub(crate) unsafe fn elements_appear(&mut self, elements: Elements) {
        match self.presence() {
            Presence::Shared => self.pending_elements.push(elements),
            // SAFETY: it is an exclusive call, whoever has the heap has the lock, and the values
            // are valid, as the caller promises.
            Presence::Exclusive => unsafe { self.set_readable(elements, true) },
            Presence::Computing => panic!("{elements} appear while the worker computes"),
        }
    }

    /// Tells the worker of what was installed in a shared call.
    ///
    /// # Safety
    /// The caller is the worker's own thread, in a call.
    pub(crate) unsafe fn publish_elements(&mut self) {
        let mut pending = std::mem::take(&mut self.pending_elements);
        for elements in pending.iter() {
            // SAFETY: the caller is the worker's own thread. `elements_appear` noted them, by whose
            // contract the values are valid.
            unsafe { self.set_readable(elements, true) };
        }
        pending.clear();
        self.pending_elements = pending;
    }

    /// # Safety
    /// As for [`Extents::set`](crate::extent::Extents::set), of what may be read. Where they `may`,
    /// the elements hold valid values.
    pub(crate) unsafe fn set_readable(&self, elements: Elements, may: bool) {
        let base = self.base(elements.array, View::Read);
        // SAFETY: as the caller promises.
        unsafe { self.extents.read.set(elements, base, may) };
        let [table, _] = self.tables();
        // SAFETY: as the caller promises; what handles lead to was just changed.
        unsafe { self.set_handles(elements, &self.extents.read, table) };
    }

    /// # Safety
    /// As for [`Extents::set`](crate::extent::Extents::set), of what may be written. Where they
    /// `may`, the elements may be read.
    pub(crate) unsafe fn set_writable(&self, elements: Elements, may: bool) {
        let base = self.base(elements.array, View::Write);
        // SAFETY: as the caller promises.
        unsafe { self.extents.write.set(elements, base, may) };
        let [_, table] = self.tables();
        // SAFETY: as the caller promises; what handles lead to was just changed.
        unsafe { self.set_handles(elements, &self.extents.write, table) };
    }

    /// A block's handle is set where all of the block may be touched.
    ///
    /// # Safety
    /// As for [`Extents::set`](crate::extent::Extents::set); `extents` are those of the table.
    unsafe fn set_handles(
        &self,
        elements: Elements,
        extents: &crate::extent::Extents,
        table: crate::handle::HandleTable,
    ) {
        let local = &self.arrays[&elements.array];
        for block in local.blocks(elements) {
            let of_block = local.of_block(elements.array, block);
            let oid = elements.array.plus(block);
            // SAFETY: as the caller promises, nobody looks at extents or handles meanwhile. What
            // the extents say of a block, the worker may do with all its elements, which are valid.
            unsafe {
                if self.views.is_some() {
                    table.set(oid, self.handle_of_block(of_block));
                } else if extents.find(of_block).is_some() {
                    table.set(oid, self.span(of_block).0.as_ptr());
                } else {
                    table.clear(oid);
                }
            }
        }
    }

    /// A block's handle selects a view where the worker may do the same with all of the block, and
    /// is null where that is not so: were it to lead to a view that forbids more than it must, each
    /// access to the part that may be touched would be a fault.
    ///
    /// # Safety
    /// As for [`Extents::find`](crate::extent::Extents::find).
    unsafe fn handle_of_block(&self, block: Elements) -> *mut u8 {
        let local = &self.arrays[&block.array];
        if !local.stored.covers(local.blocks(block)) {
            return std::ptr::null_mut();
        }
        let (read, write) = (&self.extents.read, &self.extents.write);
        // SAFETY: the caller's promise.
        let (all, some) = unsafe {
            (
                [read.find(block), write.find(block)].map(|found| found.is_some()),
                [read.meets(block), write.meets(block)],
            )
        };
        let view = match (all, some) {
            ([_, true], _) => View::Write,
            ([true, _], [_, false]) => View::Read,
            (_, [false, false]) => View::Nothing,
            _ => return std::ptr::null_mut(),
        };
        self.handle(view, self.place_of(block))
    }

    /// Tests that elements are absent, so that nobody can be using their bytes.
    fn may_install_elements(&mut self, elements: Elements) -> Refusable<()> {
        let presence = self.presence();
        if presence == Presence::Computing {
            return Err(ElementsRefusal::Presence(presence));
        }
        self.not_paged()?;
        self.array(elements)?;
        // SAFETY: whoever has the heap has the node lock.
        let [valid, written] = unsafe {
            [
                self.extents.read.meets(elements),
                self.extents.write.meets(elements),
            ]
        };
        match (written, valid || self.pending_elements.meets(elements)) {
            (true, _) => Err(ElementsRefusal::Writable),
            (_, true) => Err(ElementsRefusal::Present),
            _ => Ok(()),
        }
    }

    /// Makes packed bytes the node's valid copy of absent elements, if they are values.
    pub(crate) fn install_checked(
        &mut self,
        elements: Elements,
        bytes: &[u8],
        unheard: Unheard,
    ) -> Refusable<()> {
        self.may_install_elements(elements)?;
        self.check_elements(elements, bytes, unheard)?;
        self.store_blocks(elements);
        // SAFETY: `may_install_elements` returns only where the elements are found and absent, so
        // that no reference to them lives; and the bytes are values, as was just tested.
        unsafe {
            self.unpack_elements(elements, bytes);
            self.elements_appear(elements);
        }
        Ok(())
    }

    /// Tests that packed bytes are values of elements that [`Heap::array`] has found.
    pub(crate) fn check_elements(
        &self,
        elements: Elements,
        bytes: &[u8],
        unheard: Unheard,
    ) -> Refusable<()> {
        let info = self.span(elements).1;
        let wanted = elements.count * info.packed_size as u64;
        if bytes.len() as u64 != wanted {
            let bytes = bytes.len();
            return Err(ElementsRefusal::Length { bytes, wanted });
        }
        if !(info.leaves.is_empty() && info.references.is_empty()) {
            for packed in bytes.chunks_exact(info.packed_size) {
                info.check(packed)?;
                self.check_references(info, packed, unheard)?;
            }
        }
        Ok(())
    }

    /// Writes packed bytes, of exactly the elements' length, into their storage.
    ///
    /// # Safety
    /// [`Heap::array`] has found the elements, and no reference to them lives. Where they may be
    /// read then, the bytes are values.
    unsafe fn unpack_elements(&mut self, elements: Elements, packed: &[u8]) {
        self.unpublish_elements(elements);
        let (to, info) = self.span(elements);
        assert_eq!(
            packed.len() as u64,
            elements.count * info.packed_size as u64
        );
        let mut from = packed.as_ptr();
        // SAFETY: the storage has all the elements, to which no reference lives, as the caller
        // promises; others wait for the node lock, which whoever has the heap has. The ranges lie
        // within each, and `packed` has as many bytes as they add up to, by the test above.
        unsafe {
            if info.is_dense() {
                to.as_ptr().copy_from_nonoverlapping(from, packed.len());
                return;
            }
            for i in 0..elements.count as usize {
                for range in &info.data {
                    let to = to.as_ptr().add(i * info.size + range.offset);
                    to.copy_from_nonoverlapping(from, range.bytes);
                    from = from.add(range.bytes);
                }
            }
        }
    }

    /// Appends the packed bytes of elements.
    ///
    /// # Safety
    /// [`Heap::array`] has found the elements, and nobody may be writing them.
    pub(crate) unsafe fn pack_elements(&self, elements: Elements, out: &mut Vec<u8>) {
        let (from, info) = self.span(elements);
        let bytes = elements.count as usize * info.packed_size;
        out.reserve(bytes);
        let start = out.len();
        // SAFETY: the storage has all the elements, which nobody writes, as the caller promises.
        // The ranges lie within each, and `out` has room for what they add up to. Every byte of a
        // value is initialised, for `Heap::array` gives an array storage of zeros: address space
        // that no object had, pages that were given back, or bytes that it overwrites.
        unsafe {
            let mut to = out.as_mut_ptr().add(start);
            if info.is_dense() {
                to.copy_from_nonoverlapping(from.as_ptr(), bytes);
            } else {
                for i in 0..elements.count as usize {
                    for range in &info.data {
                        let from = from.as_ptr().add(i * info.size + range.offset);
                        to.copy_from_nonoverlapping(from, range.bytes);
                        to = to.add(range.bytes);
                    }
                }
            }
            out.set_len(start + bytes);
        }
    }
}

impl HeapMut<'_> {
    /// Tests that the array of `miss` is what the access takes it for; what it is.
    ///
    /// # Errors
    /// [`BindError`] when it is of another type or length, or no array of this cluster.
    pub fn bind_array(&mut self, miss: &ArrayMiss) -> Result<ArrayBinding, BindError> {
        let array = miss.elements.array;
        let known = self.heap.arrays.get(&array).map(|local| local.binding);
        let bound = match known {
            Some(binding) => binding,
            None => self.heap.cluster.array(array)?,
        };
        if bound.info.type_id == miss.ty.id() && bound.len == miss.len {
            return Ok(bound);
        }
        Err(bound.clash(array, miss.ty.info(), miss.len))
    }

    /// Makes packed `bytes` the node's valid copy of absent elements. In a shared call the worker
    /// sees them when the call ends.
    ///
    /// # Errors
    /// [`ElementsRefused`]; nothing was written.
    pub fn install_elements(
        &mut self,
        elements: Elements,
        bytes: &[u8],
    ) -> Result<(), ElementsRefused> {
        self.refusable("installing", elements, |heap| {
            heap.install_checked(elements, bytes, Unheard::IsGone)
        })
    }

    /// Puts packed `bytes` in the place of elements that are valid here.
    ///
    /// # Errors
    /// [`ElementsRefused`] outside of an exclusive call, where not all of them are valid, or
    /// where the bytes are no values; nothing was written.
    pub fn merge_elements(
        &mut self,
        elements: Elements,
        bytes: &[u8],
    ) -> Result<(), ElementsRefused> {
        self.refusable("merging", elements, |heap| {
            heap.exclusive_call()?;
            heap.not_paged()?;
            heap.array(elements)?;
            // SAFETY: whoever has the heap has the node lock.
            if unsafe { heap.extents.read.find(elements) }.is_none() {
                return Err(ElementsRefusal::Absent);
            }
            heap.check_elements(elements, bytes, Unheard::IsGone)?;
            heap.store_blocks(elements);
            // SAFETY: the elements are found, it is an exclusive call, so no reference to them
            // lives, and the bytes are values, as was just tested.
            unsafe { heap.unpack_elements(elements, bytes) };
            Ok(())
        })
    }

    /// Makes zeros the node's valid copy of elements that nobody has written, of an array that
    /// began as zeros.
    ///
    /// # Errors
    /// [`ElementsRefused`]; nothing was written.
    pub fn zero_fill_elements(&mut self, elements: Elements) -> Result<(), ElementsRefused> {
        self.refusable("filling with zeros", elements, |heap| {
            heap.may_install_elements(elements)?;
            let local = &heap.arrays[&elements.array];
            if !local.binding.zeros {
                return Err(ElementsRefusal::NotZeros);
            }
            // A block of pages of its own that was never stored is zeros already.
            if local.pages.is_none() || local.stored.meets(local.blocks(elements)) {
                heap.unpublish_elements(elements);
                let (to, info) = heap.span(elements);
                let bytes = elements.count as usize * info.size;
                // SAFETY: the storage has all the elements, to which no reference lives:
                // `may_install_elements` returns only where they are found and absent.
                unsafe { to.as_ptr().write_bytes(0, bytes) };
                heap.store_blocks(elements);
            }
            // Zeros that nobody has touched take no memory, at a home of all of them above all.
            let local = heap.arrays.get_mut(&elements.array).expect("found before");
            local.stored.set(local.blocks(elements), true);
            // SAFETY: the elements are found, and zeros, which are valid scalars: `zeros` is said
            // of arrays of such alone.
            unsafe { heap.elements_appear(elements) };
            Ok(())
        })
    }

    /// Makes the node's copies of elements invalid, and keeps their bytes.
    ///
    /// # Errors
    /// [`ElementsRefusal::Presence`] outside of an exclusive call.
    pub fn invalidate_elements(&mut self, elements: Elements) -> Result<(), ElementsRefused> {
        self.refusable("invalidating", elements, |heap| {
            heap.exclusive_call()?;
            if heap.arrays.contains_key(&elements.array) {
                heap.array(elements)?;
                // SAFETY: it is an exclusive call, by the first test.
                unsafe {
                    heap.set_writable(elements, false);
                    heap.set_readable(elements, false);
                }
            }
            Ok(())
        })
    }

    /// Lets the worker write elements that are valid here.
    ///
    /// # Errors
    /// [`ElementsRefusal::Presence`] outside of an exclusive call, [`ElementsRefusal::Absent`]
    /// unless all of them are valid.
    pub fn make_elements_writable(&mut self, elements: Elements) -> Result<(), ElementsRefused> {
        self.refusable("making writable", elements, |heap| {
            heap.exclusive_call()?;
            heap.not_paged()?;
            // SAFETY: whoever has the heap has the node lock.
            if unsafe { heap.extents.read.find(elements) }.is_none() {
                return Err(ElementsRefusal::Absent);
            }
            let local = heap.array(elements)?;
            if !local.touched.covers(local.blocks(elements)) {
                heap.store_blocks(elements);
            }
            heap.unpublish_elements(elements);
            // SAFETY: it is an exclusive call, by the first test, and the elements may be read.
            unsafe { heap.set_writable(elements, true) };
            Ok(())
        })
    }

    /// Takes the right to write elements away again.
    ///
    /// # Errors
    /// [`ElementsRefusal::Presence`] while the worker computes.
    pub fn make_elements_clean(&mut self, elements: Elements) -> Result<(), ElementsRefused> {
        self.refusable("making clean", elements, |heap| {
            if heap.presence() == Presence::Computing {
                return Err(ElementsRefusal::Presence(Presence::Computing));
            }
            if heap.arrays.contains_key(&elements.array) {
                heap.array(elements)?;
                // SAFETY: it is a call, by the first test.
                unsafe { heap.set_writable(elements, false) };
            }
            Ok(())
        })
    }

    /// Writes `values` over elements and makes them valid, whatever they were.
    ///
    /// # Errors
    /// [`ElementsRefused`] outside of an exclusive call, or where the array is of another type or
    /// has not these elements; nothing was written.
    pub fn overwrite_elements<T: Share + Copy>(
        &mut self,
        elements: Elements,
        values: &[T],
    ) -> Result<(), ElementsRefused> {
        self.refusable("overwriting", elements, |heap| {
            heap.exclusive_call()?;
            let bound = heap.array(elements)?.binding;
            let taken_for = TypeInfo::of::<T>();
            if bound.info.type_id != taken_for.type_id {
                let clash = bound.clash(elements.array, taken_for, bound.len);
                return Err(clash.into());
            }
            if values.len() as u64 != elements.count {
                let bytes = size_of_val(values);
                let wanted = elements.count * size_of::<T>() as u64;
                return Err(ElementsRefusal::Length { bytes, wanted });
            }
            if heap.is_paged() {
                let pages = heap.pages_of_elements(elements)?;
                if !heap.are_pages_writable(pages) {
                    return Err(ElementsRefusal::Absent);
                }
                heap.note_array_writes(elements);
            }
            heap.unpublish_elements(elements);
            heap.store_blocks(elements);
            let to = heap.span(elements).0.cast::<T>();
            // SAFETY: the storage has as many `T`s, by the tests above; it is an exclusive call, so
            // no reference to any object of this node lives, `values` among them.
            unsafe {
                to.copy_from_nonoverlapping(NonNull::from(values).cast(), values.len());
                heap.elements_appear(elements);
            }
            Ok(())
        })
    }

    /// Appends the bytes of elements to `out`, packed. Valid copies and copies that were made
    /// invalid alike: the caller knows which version it asks for.
    ///
    /// # Errors
    /// [`ElementsRefused`]: they may be written at this moment, or were never here. `out` is
    /// unchanged.
    pub fn gather_elements(
        &mut self,
        elements: Elements,
        out: &mut Vec<u8>,
    ) -> Result<(), ElementsRefused> {
        self.refusable("gathering", elements, |heap| {
            let local = heap.arrays.get(&elements.array);
            let local = local.ok_or(ElementsRefusal::NotStored)?;
            let blocks = local.blocks(elements);
            if elements.range().end > local.binding.len || !local.stored.covers(blocks) {
                return Err(ElementsRefusal::NotStored);
            }
            // SAFETY: whoever has the heap has the node lock.
            let written = unsafe { heap.extents.write.meets(elements) };
            if written && heap.presence() == Presence::Computing {
                return Err(ElementsRefusal::Writable);
            }
            // SAFETY: the array has these elements, and nobody may be writing them, by the tests
            // above.
            unsafe { heap.pack_elements(elements, out) };
            Ok(())
        })
    }

    /// Keeps packed bytes of elements aside that nobody has asked for, in place of older ones.
    pub fn keep_elements(&mut self, elements: Elements, bytes: &[u8]) {
        self.heap.retained_elements.put(elements, bytes);
    }

    /// Drops what was kept aside of elements.
    pub fn discard_kept_elements(&mut self, elements: Elements) {
        self.heap.retained_elements.discard(elements);
    }

    /// Makes what was kept aside the node's valid copy of absent elements, all of which were.
    ///
    /// # Errors
    /// As [`install_elements`](HeapMut::install_elements); nothing is kept any longer.
    pub fn install_kept_elements(&mut self, elements: Elements) -> Result<(), ElementsRefused> {
        let bytes = self.heap.retained_elements.take(elements);
        self.install_elements(elements, &bytes)
    }

    /// Whether all these elements are valid here.
    pub fn has_elements(&self, elements: Elements) -> bool {
        // SAFETY: whoever has the heap has the node lock.
        unsafe { self.heap.extents.read.find(elements).is_some() }
    }

    /// As [`has_elements`](HeapMut::has_elements), also of what came in this call and can be read
    /// when it returns.
    pub fn gets_elements(&self, elements: Elements) -> bool {
        self.has_elements(elements) || self.heap.pending_elements.has(elements)
    }

    /// Those of these elements that may be written here, range by range.
    pub fn writable_of(&self, elements: Elements) -> Vec<Elements> {
        // SAFETY: whoever has the heap has the node lock.
        unsafe { self.heap.extents.write.parts(elements) }
    }

    /// Whether all these elements may be written here.
    pub fn may_write_elements(&self, elements: Elements) -> bool {
        // SAFETY: whoever has the heap has the node lock.
        unsafe { self.heap.extents.write.find(elements).is_some() }
    }

    /// What the array's elements are, if there is such an array.
    pub fn type_of_array(&self, array: Oid) -> Option<&'static TypeInfo> {
        let known = self.heap.arrays.get(&array).map(|local| local.binding);
        let binding = known.or_else(|| self.heap.cluster.array(array).ok());
        binding.map(|binding| binding.info)
    }

    /// Bytes of elements as they travel.
    ///
    /// # Errors
    /// [`ElementsRefused`] when there are no such elements.
    pub fn bytes_of_elements(&mut self, elements: Elements) -> Result<usize, ElementsRefused> {
        self.refusable("sizing", elements, |heap| {
            let info = heap.array(elements)?.binding.info;
            Ok(elements.count as usize * info.packed_size)
        })
    }

    pub(crate) fn refusable<R>(
        &mut self,
        operation: &'static str,
        elements: Elements,
        f: impl FnOnce(&mut Heap) -> Refusable<R>,
    ) -> Result<R, ElementsRefused> {
        f(self.heap).map_err(|refusal| ElementsRefused {
            operation,
            elements,
            node: self.heap.node,
            refusal,
        })
    }

    /// Puts the first values of a new array into its storage. `None`: the store is full.
    pub(crate) fn put_array<T: Share>(
        &mut self,
        array: Array<T>,
        mut init: impl FnMut(u64) -> T,
    ) -> Option<()> {
        let all = array.range(..).elements();
        self.heap.array(all).ok()?;
        let to = self.heap.span(all).0.cast::<T>();
        if self.heap.is_paged() {
            // Before: `init` may unwind, and the elements before have been written with padding.
            self.heap.note_array_writes(all);
        }
        for i in 0..all.count {
            // SAFETY: the storage is new, has room for all elements, and nobody else knows it. A
            // shared type has no drop glue.
            unsafe { to.add(i as usize).write(init(i)) };
        }
        self.heap.store_blocks(all);
        // SAFETY: all of them were just written.
        unsafe { self.heap.elements_appear(all) };
        Some(())
    }
}

impl Heap {
    pub(crate) fn not_paged(&self) -> Refusable<()> {
        match self.is_paged() {
            true => Err(ElementsRefusal::Paged),
            false => Ok(()),
        }
    }

    pub(crate) fn exclusive_call(&self) -> Refusable<()> {
        match self.presence() {
            Presence::Exclusive => Ok(()),
            presence => Err(ElementsRefusal::Presence(presence)),
        }
    }
}
