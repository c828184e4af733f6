//! One node's heap, and what may be done to its objects under the node lock.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dhole_model::{CHUNK, Coherence, NodeId, Oid, OidRange};
use dhole_space::{PageStore, ReadRoom, View, Views, touch};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::chunk::{Chunk, OpenChunk};
use crate::cluster::TakenSlot;
use crate::extent::Extents;
use crate::foreign::Unheard;
use crate::geometry::KEPT_BYTES;
use crate::global::Segment;
use crate::handle::HandleTable;
use crate::local_array::LocalArray;
use crate::noted::{NotedReads, NotedWrites};
use crate::nursery::Nursery;
use crate::pages::Pages;
use crate::parts::IdParts;
use crate::pending_elements::PendingElements;
use crate::pre_image::PreImages;
use crate::published::{Published, Unpublished};
use crate::residency::Residency;
use crate::retained_elements::RetainedElements;
use crate::shapes::Shapes;
use crate::share::type_map::Named;
use crate::{BindError, Binding, Cluster, Foreign, Miss, Presence, TypeInfo};

/// Chunks of ids that share an entry of the index.
pub(crate) const CHUNKS_OF_PAGE: u64 = 64;

/// The place of a chunk that the node has not seen.
pub(crate) const UNSEEN: u32 = u32::MAX;

/// One node's objects. Everything but the handles and the bytes is guarded by the node lock.
pub(crate) struct Heap {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) node: NodeId,
    presence: Presence,
    /// Whether the worker computes, for those without the node lock.
    pub(crate) computes: Arc<AtomicBool>,
    pub(crate) slot: TakenSlot,
    pub(crate) read: HandleTable,
    /// The same table where there are views: there one handle says both.
    pub(crate) write: HandleTable,
    /// The views that handles lead to, where the detector is `vm`.
    pub(crate) views: Option<Views>,
    pub(crate) store: PageStore,
    pub(crate) residency: Residency,
    /// Where the record of a chunk is in `chunks`, by pages of chunk numbers: so few entries
    /// stay in the cache, where one for each chunk would not.
    pub(crate) index: FxHashMap<u64, Box<[u32; CHUNKS_OF_PAGE as usize]>>,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) shapes: Shapes,
    /// Places in `chunks` whose chunk is all freed.
    pub(crate) spare: Vec<u32>,
    /// By type, protocol, and place in the program, so that a chunk tells where its objects are
    /// from.
    pub(crate) open: FxHashMap<(TypeId, Coherence, usize), OpenChunk>,
    pub(crate) ids: IdParts,
    /// The addresses of the global space that this node fills.
    pub(crate) segment: Segment,
    /// Installed in a shared call, and not yet known to the worker.
    pending: Vec<Appeared>,
    pub(crate) pre_images: PreImages,
    /// Copies that were pushed here and not read yet.
    pub(crate) pushed: PreImages,
    /// Pages, where objects are kept consistent by pages.
    pub(crate) pages: Pages,
    pub(crate) arrays: BTreeMap<Oid, LocalArray>,
    /// Elements that were pushed here and not read yet.
    pub(crate) retained_elements: RetainedElements,
    /// Bytes of the blocks of arrays that are stored, beside those that share a page.
    pub(crate) array_bytes: u64,
    pub(crate) extents: Arc<BothExtents>,
    /// Elements installed in a shared call, and not yet known to the worker.
    pub(crate) pending_elements: PendingElements,
    /// What neighbours read here without a message, where they can.
    pub(crate) published: Option<Published>,
    /// Blocks of arrays that neighbours read no more, of which the engine has yet to hear.
    pub(crate) unpublished: Unpublished,
    /// Pages of memory with gates that were used.
    pub(crate) gate_pages: FxHashSet<u64>,
    /// What was copied from a neighbour last, as it lies there.
    pub(crate) there: Vec<u8>,
    /// Where objects come to that are read in windows.
    pub(crate) room: ReadRoom,
}

/// What the worker may read, and what it may write, of each array.
#[derive(Default)]
pub(crate) struct BothExtents {
    pub(crate) read: Extents,
    pub(crate) write: Extents,
    /// What was written of the objects that were expected to be.
    pub(crate) noted: NotedWrites,
    /// What was read of the objects that were expected to be.
    pub(crate) read_notes: NotedReads,
    /// What the worker allocates by itself.
    pub(crate) nursery: Nursery,
}

/// An object that was installed in a shared call.
struct Appeared {
    oid: Oid,
    storage: u64,
    /// Its first read is to be noted.
    expected: bool,
}

/// Where the record of an object is.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) chunk: usize,
    pub(crate) slot: usize,
}

impl Heap {
    pub(crate) fn new(cluster: &Arc<Cluster>, node: NodeId) -> (Heap, HandleTable, HandleTable) {
        let slot = cluster.take_slot(node);
        let views = cluster.views(node);
        // SAFETY: a slot's tables are mapped for ever, and null wherever untouched or released.
        // They are this heap's alone (the type `TakenSlot`) as long as it keeps the cluster.
        let (read, write) = unsafe {
            let entries = slot.entries();
            (
                HandleTable::new(slot.read_table(), entries),
                HandleTable::new(slot.write_table(), entries),
            )
        };
        let write = if views.is_some() { read } else { write };
        let (store, store_bytes) = match &views {
            None => (slot.store(), slot.store_bytes()),
            Some(views) => (views.store(), views.store_bytes()),
        };
        // SAFETY: the slot's store, or its views, stay mapped while the heap keeps the cluster.
        let store = unsafe { PageStore::new(store, store_bytes) };
        let store = store.of_file(cluster.bytes_of_file());
        let heap = Heap {
            cluster: cluster.clone(),
            node,
            presence: Presence::Exclusive,
            computes: Arc::default(),
            slot,
            read,
            write,
            views,
            store,
            residency: Residency::default(),
            index: FxHashMap::default(),
            chunks: Vec::new(),
            shapes: Shapes::default(),
            spare: Vec::new(),
            open: FxHashMap::default(),
            ids: cluster.first_part(node),
            segment: Segment::new(),
            pending: Vec::new(),
            pre_images: PreImages::default(),
            pushed: PreImages::default(),
            pages: Pages::default(),
            arrays: BTreeMap::new(),
            retained_elements: RetainedElements::default(),
            array_bytes: 0,
            extents: Arc::default(),
            pending_elements: PendingElements::default(),
            published: cluster.publishes_in(node),
            unpublished: Unpublished::default(),
            gate_pages: FxHashSet::default(),
            room: ReadRoom::default(),
            there: Vec::new(),
        };
        (heap, read, write)
    }

    /// The read handles and the write handles.
    pub(crate) fn tables(&self) -> [HandleTable; 2] {
        [self.read, self.write]
    }

    #[inline]
    pub(crate) fn presence(&self) -> Presence {
        self.presence
    }

    /// # Safety
    /// The worker is there, and no reference to an object lives that the presence does not allow
    /// for (the table of the [monitor](crate::monitor)), as long as it says so.
    #[inline]
    pub(crate) unsafe fn set_presence(&mut self, presence: Presence) {
        let none_pending = self.pending.is_empty() && self.pending_elements.is_empty();
        debug_assert!(none_pending || presence == Presence::Shared);
        self.presence = presence;
        let computes = presence == Presence::Computing;
        self.computes.store(computes, Ordering::Relaxed);
    }

    /// The record of `oid`'s chunk, if this node has seen the chunk.
    #[inline]
    pub(crate) fn place(&self, oid: Oid) -> Option<Place> {
        let page = self.index.get(&(oid.chunk() / CHUNKS_OF_PAGE))?;
        let chunk = page[(oid.chunk() % CHUNKS_OF_PAGE) as usize];
        (chunk != UNSEEN).then_some(Place {
            chunk: chunk as usize,
            slot: oid.slot(),
        })
    }

    /// The record of `oid`'s chunk, made at first sight of the chunk from the directory.
    pub(crate) fn see(&mut self, oid: Oid) -> Result<Place, Foreign> {
        if let Some(place) = self.place(oid) {
            return Ok(place);
        }
        let (binding, freed) = self.cluster.hold(oid)?;
        let chunk = self.add_chunk(oid.chunk(), binding);
        // This node hears only of what is freed later.
        self.chunks[chunk].set_freed(freed);
        Ok(Place {
            chunk,
            slot: oid.slot(),
        })
    }

    /// A record of a chunk, which the directory counts already.
    pub(crate) fn add_chunk(&mut self, number: u64, binding: Binding) -> usize {
        let place = match self.spare.pop() {
            Some(place) => {
                self.chunks[place as usize] = Chunk::new(binding);
                place
            }
            None => {
                self.chunks.push(Chunk::new(binding));
                u32::try_from(self.chunks.len() - 1).expect("fewer than 2^32 chunks of ids")
            }
        };
        self.shapes.set(place as usize, &binding);
        let page = self.index.entry(number / CHUNKS_OF_PAGE);
        let page = page.or_insert_with(|| Box::new([UNSEEN; CHUNKS_OF_PAGE as usize]));
        page[(number % CHUNKS_OF_PAGE) as usize] = place;
        place as usize
    }

    /// The storage of an object, allocated at its first access (DOSA, section 3.3). `None` when
    /// the page store is full.
    pub(crate) fn storage(&mut self, oid: Oid, at: Place) -> Option<u64> {
        let chunk = &mut self.chunks[at.chunk];
        if let Some(storage) = chunk.storage(at.slot) {
            return Some(storage);
        }
        if chunk.is_aside(at.slot) {
            // Its id is named before its time.
            return None;
        }
        let (bytes, align) = (chunk.binding.bytes(), chunk.binding.info.align as u64);
        let storage = match self.cluster.global() {
            None => self.store.take_for(oid, bytes, align)?,
            Some(_) => {
                let address = self.cluster.address(oid)?;
                self.store.take_at(address, bytes)?
            }
        };
        chunk.set_storage(at.slot, storage);
        self.residency.add(oid, storage, bytes);
        Some(storage)
    }

    /// The object may be read from now on. In a shared call the handle waits for the worker's own
    /// thread.
    ///
    /// # Safety
    /// Its storage holds a valid value of the object's type and length, which only
    /// [`HeapMut::make_writable`] lets anyone write.
    ///
    /// # Panics
    /// While the worker computes, and could load the handle.
    pub(crate) unsafe fn appear(&mut self, oid: Oid, at: Place, storage: u64) {
        self.chunks[at.chunk].set_present(at.slot);
        match self.presence {
            Presence::Shared => self.pending.push(Appeared {
                oid,
                storage,
                expected: false,
            }),
            // SAFETY: the value is valid, as the caller promises, and it is an exclusive call.
            Presence::Exclusive => unsafe {
                self.read.set(oid, self.handle(View::Read, storage));
            },
            Presence::Computing => panic!("{oid} appears while the worker computes"),
        }
    }

    /// Stores the handles of what was installed in a shared call.
    ///
    /// # Safety
    /// The caller is the worker's own thread, in a call.
    pub(crate) unsafe fn publish(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        for appeared in pending.drain(..) {
            let handle = self.handle(View::Read, appeared.storage);
            let handle = match appeared.expected {
                true => touch::expected(handle),
                false => handle,
            };
            // SAFETY: `appear` noted it, by whose contract the value is valid; and this is the
            // worker's own thread.
            unsafe { self.read.set(appeared.oid, handle) };
        }
        self.pending = pending;
        if !self.pending_elements.is_empty() {
            // SAFETY: the caller's promise.
            unsafe { self.publish_elements() };
        }
    }

    /// The next address of the global space with room for `bytes` bytes, in program order; `None`
    /// when the space is used up. `align` is a power of two of at most a page.
    pub(crate) fn take_address(&mut self, bytes: u64, align: u64) -> Option<u64> {
        self.segment.take(self.cluster.global()?, bytes, align)
    }

    /// Where [`take_address`](Heap::take_address) will lead.
    pub(crate) fn next_address(&mut self, bytes: u64, align: u64) -> Option<u64> {
        self.segment.next(self.cluster.global()?, bytes, align)
    }

    /// Where a place of the store is as the worker sees it that may do this there.
    pub(crate) fn seen(&self, view: View, storage: u64) -> NonNull<u8> {
        let object = self.store.pointer(storage);
        match &self.views {
            None => object,
            Some(views) => views.of(object, view),
        }
    }

    /// The handle that leads there.
    pub(crate) fn handle(&self, view: View, storage: u64) -> *mut u8 {
        let object = self.seen(view, storage).as_ptr();
        match (&self.views, view) {
            (Some(_), _) => touch::negated(object),
            (None, View::Nothing) => std::ptr::null_mut(),
            (None, _) => object,
        }
    }

    /// Gives whole pages of the store back to the system; they read as zero again.
    ///
    /// # Safety
    /// Nothing lies there any more, and nothing refers to it.
    pub(crate) unsafe fn release_store(&self, pages: Range<u64>) {
        // SAFETY: as the caller promises. Where there are views the store is theirs, and else the
        // slot's.
        unsafe {
            match &self.views {
                None => self.slot.release_store(pages, self.cluster.bytes_of_file()),
                Some(views) => {
                    let (at, bytes) = (self.store.pointer(pages.start), pages.end - pages.start);
                    views.release(at, bytes);
                }
            }
        }
    }

    /// The worker may not touch an object any more.
    ///
    /// # Safety
    /// It is an exclusive call.
    pub(crate) unsafe fn hide(&self, oid: Oid, at: Place) {
        let storage = self.chunks[at.chunk].storage(at.slot);
        // SAFETY: it is an exclusive call, as the caller promises. The view allows nothing.
        unsafe {
            match storage {
                Some(storage) if self.views.is_some() => {
                    self.read.set(oid, self.handle(View::Nothing, storage));
                }
                _ => self.tables().iter().for_each(|table| table.clear(oid)),
            }
        }
    }

    /// The worker may write an object no longer, which it may read.
    ///
    /// # Safety
    /// It is a call, and the object is one that could be written.
    pub(crate) unsafe fn close(&self, oid: Oid, at: Place) {
        let storage = self.chunks[at.chunk].storage(at.slot);
        // SAFETY: it is a call, as the caller promises. Where one handle says both, in a shared
        // call the worker may read through the old one or the new one, and the bytes are the same.
        unsafe {
            match storage {
                Some(storage) if self.views.is_some() => {
                    self.write.set(oid, self.handle(View::Read, storage));
                }
                _ => self.write.clear(oid),
            }
        }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        let kept = self.store.extent().min(KEPT_BYTES);
        if let Some(published) = &mut self.published {
            // Neighbours may go on for a while.
            published.clear();
        }
        self.cluster.each_range(|ids| {
            // SAFETY: the monitor that owns this is gone, so there is no token of the node, which
            // borrows it, and nobody who could follow a handle.
            unsafe { self.slot.release_handles(ids) };
        });
        if self.views.is_some() {
            // The cluster gives all of it back.
            return;
        }
        let (used, reserved) = (kept..self.store.extent(), self.store.reserved());
        for bytes in [used, reserved] {
            // SAFETY: as of the handles. What a store has given are whole pages of the slot.
            unsafe { self.release_store(bytes) };
        }
    }
}

/// A node's heap, as whoever holds the node lock may use it. Every operation tests that the
/// worker's [`Presence`] allows it, and refuses otherwise.
pub struct HeapMut<'g> {
    pub(crate) heap: &'g mut Heap,
    /// What is allocated through this is kept consistent so.
    pub(crate) coherence: Coherence,
    /// The place in the program for which this acts, if it is not the caller.
    pub(crate) site: Option<&'static Location<'static>>,
}

/// Why a change of an object's state was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{operation} {oid} on {node}: {refusal}")]
pub struct ObjectRefused {
    /// What was asked for.
    pub operation: &'static str,
    /// The object.
    pub oid: Oid,
    /// The node.
    pub node: NodeId,
    /// Why not.
    pub refusal: ObjectRefusal,
}

/// What stands against a change of an object's state.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ObjectRefusal {
    /// References may live that the change would break.
    #[error("{0}")]
    Presence(Presence),
    /// The node has no valid copy.
    #[error("no valid copy is here")]
    Absent,
    /// Pages are kept consistent, not objects.
    #[error("its cluster keeps whole pages consistent")]
    Paged,
}

impl<'g> HeapMut<'g> {
    #[inline]
    pub(crate) fn new(heap: &'g mut Heap) -> HeapMut<'g> {
        HeapMut {
            heap,
            coherence: Coherence::default(),
            site: None,
        }
    }

    /// The same heap, whose new objects are kept consistent by another protocol than the lazy one.
    #[inline]
    pub fn under(&mut self, coherence: Coherence) -> HeapMut<'_> {
        HeapMut {
            coherence,
            ..self.reborrow()
        }
    }

    /// The same heap, for a shorter time.
    #[inline]
    pub(crate) fn reborrow(&mut self) -> HeapMut<'_> {
        HeapMut {
            heap: &mut *self.heap,
            coherence: self.coherence,
            site: self.site,
        }
    }

    /// The same heap, which allocates for this place in the program.
    #[inline]
    pub fn for_site(self, site: &'static Location<'static>) -> HeapMut<'g> {
        HeapMut {
            site: Some(site),
            ..self
        }
    }

    /// The node.
    #[inline]
    pub fn node(&self) -> NodeId {
        self.heap.node
    }

    /// The node's cluster.
    #[inline]
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.heap.cluster
    }

    /// Where the worker is.
    #[inline]
    pub fn presence(&self) -> Presence {
        self.heap.presence
    }

    /// How an object was allocated to be kept consistent.
    pub fn coherence_of(&self, oid: Oid) -> Option<Coherence> {
        let binding = self.heap.cluster.binding(oid);
        binding.ok().map(|binding| binding.coherence)
    }

    /// Tests that the object of `miss` is what the access takes it for.
    ///
    /// # Errors
    /// [`BindError`] when it is of another type, or no object of this cluster.
    pub fn bind(&mut self, miss: &Miss) -> Result<(), BindError> {
        let at = self.heap.see(miss.oid)?;
        let bound = &self.heap.chunks[at.chunk].binding;
        if bound.agrees(miss) {
            return Ok(());
        }
        let seen = Binding {
            info: miss.ty.info(),
            len: miss.len as u64,
            row: miss.row,
            coherence: bound.coherence,
        };
        let (bound, seen) = (bound.to_string(), seen.to_string());
        Err(BindError::TypeClash {
            oid: miss.oid,
            bound,
            seen,
        })
    }

    /// As [`bind`](HeapMut::bind), and that `range` was allocated together as what `miss` takes
    /// its first object for.
    ///
    /// # Errors
    /// As [`bind`](HeapMut::bind).
    pub fn bind_all(&mut self, miss: &Miss, range: OidRange) -> Result<(), BindError> {
        self.bind(miss)?;
        let named = Named {
            first: range.first,
            count: range.count.into(),
            len: miss.len as u64,
            row: miss.row,
            array: false,
        };
        self.heap.cluster.check(&named, miss.ty, Unheard::IsGone)?;
        for chunk in range.first.chunk()..=range.last().chunk() {
            self.heap.see(Oid(chunk * CHUNK).max(range.first))?;
        }
        Ok(())
    }

    /// Makes the node's copy of `oid` invalid, and keeps its storage. Nothing happens where there
    /// is no valid copy. Drops its pre-image.
    ///
    /// # Errors
    /// [`ObjectRefusal::Presence`] outside of an exclusive call.
    pub fn invalidate(&mut self, oid: Oid) -> Result<(), ObjectRefused> {
        self.exclusive("invalidating", oid)?;
        let Some(at) = self.heap.place(oid) else {
            return Ok(());
        };
        if self.heap.chunks[at.chunk].is_present(at.slot) {
            self.heap.unpublish(oid);
            self.heap.chunks[at.chunk].set_absent(at.slot);
            // SAFETY: it is an exclusive call, as was tested first.
            unsafe { self.heap.hide(oid, at) };
            self.heap.pre_images.forget(oid);
        }
        Ok(())
    }

    /// Lets the worker write its copy of `oid`; with `pre_image`, keeps a copy of the bytes as
    /// they are now. Nothing happens where the copy is writable.
    ///
    /// # Errors
    /// [`ObjectRefusal::Presence`] outside of an exclusive call, [`ObjectRefusal::Absent`] without
    /// a valid copy, [`ObjectRefusal::Paged`] where pages are kept consistent.
    pub fn make_writable(&mut self, oid: Oid, pre_image: bool) -> Result<(), ObjectRefused> {
        self.open(oid, pre_image, false)
    }

    /// Notes whether the worker reads the copy of `oid` that was installed last, in this call. A
    /// program is not told of it: the object counts as one that is here. Nothing happens where the
    /// detector is `vm`.
    pub fn expect_read(&mut self, oid: Oid) {
        if self.heap.views.is_some() {
            return;
        }
        if let Some(appeared) = self.heap.pending.last_mut() {
            appeared.expected |= appeared.oid == oid;
            return;
        }
        let handle = self.heap.read.load(oid).map(NonNull::as_ptr);
        if let Some(handle) = handle.filter(|_| self.heap.presence() == Presence::Exclusive) {
            // SAFETY: the handle leads to what may be read, and still does once the read is noted;
            // it is an exclusive call, as was just tested.
            unsafe { self.heap.read.set(oid, touch::expected(handle)) };
        }
    }

    /// The objects that were [expected to be read](HeapMut::expect_read) and have been since the
    /// last time, in the order of their first reads. None while the worker computes.
    pub fn take_read(&mut self) -> Vec<Oid> {
        match self.heap.presence() {
            Presence::Computing => Vec::new(),
            // SAFETY: the worker is in a call, and the node lock is held.
            _ => unsafe { self.heap.extents.read_notes.take() },
        }
    }

    pub(crate) fn open(
        &mut self,
        oid: Oid,
        pre_image: bool,
        expected: bool,
    ) -> Result<(), ObjectRefused> {
        const OPERATION: &str = "making writable";
        self.exclusive(OPERATION, oid)?;
        if self.heap.is_paged() {
            return Err(self.refuse(OPERATION, oid, ObjectRefusal::Paged));
        }
        let found = self.heap.place(oid);
        let Some(at) = found.filter(|at| self.heap.chunks[at.chunk].is_present(at.slot)) else {
            return Err(self.refuse(OPERATION, oid, ObjectRefusal::Absent));
        };
        if self.heap.chunks[at.chunk].is_writable(at.slot) {
            return Ok(());
        }
        let storage = self.heap.chunks[at.chunk]
            .storage(at.slot)
            .expect("a valid copy has bytes");
        if pre_image {
            let mut packed = self.heap.pre_images.buffer();
            // SAFETY: the object is present, as was just found, so its storage holds a value; it is
            // an exclusive call, so nobody writes it.
            unsafe { self.heap.pack(at, storage, &mut packed) };
            self.heap.pre_images.keep(oid, packed);
        }
        self.heap.unpublish(oid);
        self.heap.chunks[at.chunk].set_writable(at.slot);
        let handle = self.heap.handle(View::Write, storage);
        let handle = match expected && self.heap.views.is_none() {
            true => touch::expected(handle),
            false => handle,
        };
        // SAFETY: the object is present, as was just found, so its storage holds a value; and it is
        // an exclusive call. What `expected` makes of an address leads there once it is noted.
        unsafe { self.heap.write.set(oid, handle) };
        Ok(())
    }

    /// Takes the right to write `oid` away again, and drops its pre-image. Behind a gate it is no
    /// longer. Nothing happens where the copy is not writable, nor behind a gate.
    ///
    /// # Errors
    /// [`ObjectRefusal::Presence`] while the worker computes.
    pub fn make_clean(&mut self, oid: Oid) -> Result<(), ObjectRefused> {
        if self.heap.presence == Presence::Computing {
            let refusal = ObjectRefusal::Presence(Presence::Computing);
            return Err(self.refuse("making clean", oid, refusal));
        }
        let Some(at) = self.heap.place(oid) else {
            return Ok(());
        };
        let chunk = &mut self.heap.chunks[at.chunk];
        if chunk.is_writable(at.slot) || chunk.is_gated(at.slot) {
            chunk.set_clean(at.slot);
            // SAFETY: it is a call, as was tested first.
            unsafe { self.heap.close(oid, at) };
            self.heap.pre_images.forget(oid);
        }
        Ok(())
    }

    /// Whether the node has a valid copy.
    #[inline]
    pub fn is_present(&self, oid: Oid) -> bool {
        self.heap
            .place(oid)
            .is_some_and(|at| self.heap.chunks[at.chunk].is_present(at.slot))
    }

    /// Whether the node's copy may be written.
    #[inline]
    pub fn is_writable(&self, oid: Oid) -> bool {
        self.heap
            .place(oid)
            .is_some_and(|at| self.heap.chunks[at.chunk].is_writable(at.slot))
    }

    /// Whether the node has bytes of the object, valid or not.
    #[inline]
    pub fn has_storage(&self, oid: Oid) -> bool {
        let at = self.heap.place(oid);
        at.is_some_and(|at| self.heap.chunks[at.chunk].bytes_at(at.slot).is_some())
    }

    /// What the object is, if this node has seen its chunk.
    #[inline]
    pub fn binding(&self, oid: Oid) -> Option<Binding> {
        self.heap
            .place(oid)
            .map(|at| self.heap.chunks[at.chunk].binding)
    }

    /// The object's type, or that of a row's scalars, if this node has seen its chunk.
    #[inline]
    pub fn type_of(&self, oid: Oid) -> Option<&'static TypeInfo> {
        self.binding(oid).map(|binding| binding.info)
    }

    /// Bytes of the object as it travels, if this node has seen its chunk.
    #[inline]
    pub fn bytes_of(&self, oid: Oid) -> Option<usize> {
        self.binding(oid)
            .map(|binding| binding.packed_bytes() as usize)
    }

    /// Bytes of the object as it travels, of a chunk that this node may see for the first time.
    ///
    /// # Errors
    /// [`Foreign`] when the id names no object of this cluster.
    pub fn see_bytes_of(&mut self, oid: Oid) -> Result<usize, Foreign> {
        let at = self.heap.see(oid)?;
        Ok(self.heap.chunks[at.chunk].binding.packed_bytes() as usize)
    }

    /// Bytes of the pages that hold objects on this node.
    pub fn store_bytes(&self) -> u64 {
        self.heap.store.bytes() + self.heap.array_bytes
    }

    /// Bytes of the node's whole store.
    pub fn capacity_bytes(&self) -> u64 {
        self.heap.store.capacity()
    }

    /// Bytes of the [global space](dhole_model::Placement::Everywhere) that objects were given
    /// which were allocated on this node; a node that stored all objects would need the sum over
    /// all nodes.
    pub fn allotted_bytes(&self) -> u64 {
        self.heap.segment.allotted
    }

    pub(crate) fn exclusive(&self, operation: &'static str, oid: Oid) -> Result<(), ObjectRefused> {
        match self.heap.presence {
            Presence::Exclusive => Ok(()),
            presence => Err(self.refuse(operation, oid, ObjectRefusal::Presence(presence))),
        }
    }

    pub(crate) fn refuse(
        &self,
        operation: &'static str,
        oid: Oid,
        refusal: ObjectRefusal,
    ) -> ObjectRefused {
        ObjectRefused {
            operation,
            oid,
            node: self.heap.node,
            refusal,
        }
    }
}

impl fmt::Debug for HeapMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "heap of {} ({})", self.heap.node, self.heap.presence)
    }
}
