//! New objects: ids in chunks of one type, and their first value.

use std::any::TypeId;
use std::ops::Range;
use std::panic::Location;
use std::ptr::NonNull;

use dhole_model::{CHUNK, CallSite, Coherence, NodeId, Oid, OidRange, PageRange};

use crate::chunk::OpenChunk;
use crate::directory::{ArrayRun, Life, Run};
use crate::global::Addresses;
use crate::heap::{Heap, Place};
use crate::{Array, ArrayBinding, Binding, HeapMut, LearnError, MAX_ALIGN, Presence};
use crate::{Ref, Refs, ReserveError, Rows};
use crate::{Scalar, Share, TypeInfo};

/// Why an object could not be allocated.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllocError {
    /// Only the worker allocates, from a call of its own.
    #[error("allocating {what} on {node}: {presence}")]
    Presence {
        /// The type.
        what: &'static str,
        /// The node.
        node: NodeId,
        /// Where the worker is.
        presence: Presence,
    },
    /// More objects at once than a range can name, or more bytes than a store has.
    #[error(
        "allocating {count} times {len} {what} on {node} at {site}: \
         more than a range names or a store holds"
    )]
    TooLarge {
        /// The type.
        what: &'static str,
        /// The node.
        node: NodeId,
        /// Objects asked for.
        count: u64,
        /// Scalars in each row, or 1.
        len: u64,
        /// Where in the program.
        site: CallSite,
    },
    /// An object that begins as zeros, where these are no value.
    #[error(
        "allocating {what} in place on {node} at {site}: it begins as zeros, which are no {part}: \
         make the value in a box and use `alloc_boxed`"
    )]
    NoZeros {
        /// The type.
        what: &'static str,
        /// The node.
        node: NodeId,
        /// Where in the program.
        site: CallSite,
        /// What in the type is never zero.
        part: &'static str,
    },
    /// The node's page store is full.
    #[error(
        "allocating {what} on {node}: its store of {capacity_bytes} bytes is full, which is half \
         of the node's part of the address space that the process could reserve (`ulimit -v`): \
         free objects, raise that limit, or run fewer nodes in a process"
    )]
    Full {
        /// The type.
        what: &'static str,
        /// The node.
        node: NodeId,
        /// Bytes of the whole store.
        capacity_bytes: u64,
    },
    /// The cluster keeps whole pages consistent, and those of the new objects are read-only.
    #[error("allocating {what} on {node}: not all of the {} pages from {} on may be written",
        pages.count, pages.first)]
    Pages {
        /// The type.
        what: &'static str,
        /// The node.
        node: NodeId,
        /// The pages where the objects would lie.
        pages: PageRange,
    },
    /// There are no object ids left.
    #[error("allocating {what} on {node}: {error}")]
    Ids {
        /// The type.
        what: &'static str,
        /// The node.
        node: NodeId,
        /// Why not.
        error: ReserveError,
    },
}

dhole_model::debug_in_words!(AllocError);

/// A place in the program.
type Site = &'static Location<'static>;

impl Heap {
    /// `chunks` consecutive chunks that no one ever had.
    fn take_chunks(&mut self, chunks: u64) -> Result<u64, ReserveError> {
        loop {
            if let Some(first) = self.ids.take(chunks) {
                return Ok(first);
            }
            let part = self.cluster.take_part(self.node, chunks * CHUNK)?;
            self.ids.add(part);
        }
    }

    /// Ids for an array of so many blocks. Small ones share a chunk: its handles are as small as
    /// they are.
    fn take_array(&mut self, blocks: u64) -> Result<OidRange, ReserveError> {
        let ids = |first, count| OidRange {
            first: Oid(first),
            count,
        };
        if blocks > 1 {
            let chunks = blocks.div_ceil(CHUNK);
            let first = self.take_chunks(chunks)? * CHUNK;
            let count = u32::try_from(chunks * CHUNK).expect("a store has fewer blocks");
            return Ok(ids(first, count));
        }
        if self.ids.of_small_arrays.is_empty() {
            let first = self.take_chunks(1)? * CHUNK;
            self.ids.of_small_arrays = first..first + CHUNK;
        }
        let first = self.ids.of_small_arrays.start;
        self.ids.of_small_arrays.start += 1;
        Ok(ids(first, 1))
    }

    /// Ids for `count` objects of one kind, as yet without storage. Where they are `kept`, the
    /// caller adds the records of their chunks.
    fn take_run(
        &mut self,
        count: u64,
        binding: Binding,
        site: Site,
        kept: bool,
        addresses: Addresses,
    ) -> Result<u64, ReserveError> {
        let chunks = count.div_ceil(CHUNK);
        let first = self.take_chunks(chunks)?;
        let run = Run {
            chunks,
            ids: count,
            binding,
            site: site.into(),
            life: Life::new(if kept { chunks } else { 0 }),
            addresses,
        };
        self.cluster.bind(first, run);
        for table in self.tables() {
            table.advise_huge(Oid(first * CHUNK), count);
        }
        Ok(first)
    }

    /// A chunk of ids for single `T`s that are kept consistent so, for this place in the program:
    /// its number, and its record.
    pub(crate) fn new_chunk<T: Share>(
        &mut self,
        coherence: Coherence,
        site: Site,
    ) -> Result<(u64, usize), ReserveError> {
        let binding = Binding {
            info: TypeInfo::of::<T>(),
            len: 1,
            row: false,
            coherence,
        };
        let addresses = match self.cluster.global() {
            Some(_) => Addresses::Each(Box::new([None; CHUNK as usize])),
            None => Addresses::Anywhere,
        };
        let number = self.take_run(CHUNK, binding, site, true, addresses)?;
        Ok((number, self.add_chunk(number, binding)))
    }

    /// The next id of the open chunk of `T`s that are kept consistent so, for this place in the
    /// program.
    fn take_single<T: Share>(
        &mut self,
        coherence: Coherence,
        site: Site,
    ) -> Result<(Oid, Place), ReserveError> {
        // The compiler may keep several copies of one place; that costs a chunk.
        let place = std::ptr::from_ref(site).addr();
        let kind = (TypeId::of::<T>(), coherence, place);
        loop {
            let open = match self.open.get_mut(&kind) {
                Some(open) if open.next < CHUNK as usize => open,
                _ => {
                    let (number, place) = self.new_chunk::<T>(coherence, site)?;
                    let open = OpenChunk {
                        place,
                        number,
                        next: 0,
                    };
                    self.open.entry(kind).insert_entry(open).into_mut()
                }
            };
            let at = Place {
                chunk: open.place,
                slot: open.next,
            };
            let oid = Oid(open.number * CHUNK + open.next as u64);
            open.next += 1;
            // An id that bytes have named before its time already is an object of this type,
            // and may be in use: then the next id.
            let chunk = &self.chunks[at.chunk];
            if chunk.storage(at.slot).is_none() && !chunk.is_freed(at.slot) {
                return Ok((oid, at));
            }
        }
    }

    /// Puts the first value of a new object into storage of its own, which `write` is given.
    /// `None`: the store is full.
    ///
    /// # Safety
    /// `write` leaves a value of `T` where it is pointed to, unless it unwinds.
    unsafe fn put<T: Share>(
        &mut self,
        oid: Oid,
        at: Place,
        write: impl FnOnce(NonNull<T>),
    ) -> Option<()> {
        debug_assert!(!self.chunks[at.chunk].is_present(at.slot));
        debug_assert_eq!(
            self.chunks[at.chunk].binding.info.type_id,
            TypeId::of::<T>()
        );
        let storage = self.storage(oid, at)?;
        // The storage is new, has the size and the alignment of the binding, which is a `T`, and
        // nobody else knows it. A shared type has no drop glue.
        write(self.store.pointer(storage).cast::<T>());
        // SAFETY: a value was just written there, as the caller promises of `write`.
        unsafe { self.appear(oid, at, storage) };
        Some(())
    }
}

impl HeapMut<'_> {
    /// How many ids this node has to be handed out by another process before it can allocate
    /// objects or blocks of so many ids; `None` where it has them, or can take them.
    pub fn ids_wanted(&self, ids: u64) -> Option<u64> {
        let chunks = ids.div_ceil(CHUNK).max(1);
        let has = self.heap.ids.position_of(chunks).is_some();
        let asks = !has && self.heap.cluster.asks_for_ids();
        asks.then_some(chunks.saturating_mul(CHUNK))
    }

    /// Takes ids that node 0 handed out to this node.
    ///
    /// # Errors
    /// [`LearnError::Part`] where they cannot be this node's, or it was handed them before.
    pub fn take_ids(&mut self, ids: Range<u64>) -> Result<(), LearnError> {
        self.heap.cluster.got_part(ids.clone(), self.heap.node)?;
        self.heap.ids.add(ids);
        Ok(())
    }

    /// A new object, present here and clean.
    ///
    /// # Errors
    /// [`AllocError`]; outside of a call of the worker, or out of space.
    #[track_caller]
    pub fn alloc<T: Share>(&mut self, value: T) -> Result<Ref<T>, AllocError> {
        // SAFETY: the value is written where `alloc_by` points to.
        unsafe { self.alloc_by(|to| to.write(value)) }
    }

    /// A new object, present here and clean, whose value `write` leaves in its storage.
    ///
    /// # Safety
    /// `write` leaves a value of `T` where it is pointed to, unless it unwinds.
    #[track_caller]
    pub(crate) unsafe fn alloc_by<T: Share>(
        &mut self,
        write: impl FnOnce(NonNull<T>),
    ) -> Result<Ref<T>, AllocError> {
        const { assert!(align_of::<T>() <= MAX_ALIGN) };
        self.may_alloc::<T>()?;
        self.may_store::<T>(1)?;
        let site = self.site.unwrap_or(Location::caller());
        let (oid, at) = self
            .heap
            .take_single::<T>(self.coherence, site)
            .map_err(|error| self.ids::<T>(error))?;
        if self.heap.cluster.global().is_some() {
            let (bytes, align) = (size_of::<T>() as u64, align_of::<T>() as u64);
            let address = self.heap.take_address(bytes, align);
            let address = address.ok_or_else(|| self.full::<T>())?;
            self.heap.cluster.put_at(oid, address);
        }
        self.note_written(oid);
        // SAFETY: as the caller promises of `write`.
        unsafe { self.heap.put(oid, at, write) }.ok_or_else(|| self.full::<T>())?;
        // SAFETY: `take_single` has bound the id to `T`.
        Ok(unsafe { Ref::new(oid) })
    }

    /// `count` new objects with consecutive ids, the `i`-th of which is `init(i)`; present here
    /// and clean. `init` runs with the node lock held. Where it panics, or space runs out on the
    /// way, no one gets to know the ids.
    ///
    /// # Errors
    /// [`AllocError`]; outside of a call of the worker, or out of space.
    #[track_caller]
    pub fn alloc_range<T: Share>(
        &mut self,
        count: u64,
        mut init: impl FnMut(u64) -> T,
    ) -> Result<Refs<T>, AllocError> {
        // SAFETY: each value is written where `alloc_range_by` points to.
        unsafe { self.alloc_range_by(count, |i, to| to.write(init(i))) }
    }

    /// As [`alloc_range`](HeapMut::alloc_range), of objects whose values `write` leaves in their
    /// storage.
    ///
    /// # Safety
    /// `write` leaves a value of `T` where it is pointed to, unless it unwinds.
    #[track_caller]
    pub(crate) unsafe fn alloc_range_by<T: Share>(
        &mut self,
        count: u64,
        mut write: impl FnMut(u64, NonNull<T>),
    ) -> Result<Refs<T>, AllocError> {
        const { assert!(align_of::<T>() <= MAX_ALIGN) };
        self.may_alloc::<T>()?;
        self.fits::<T>(count, 1)?;
        if count == 0 {
            return Ok(Refs::empty());
        }
        self.may_store::<T>(count)?;
        let binding = Binding {
            info: TypeInfo::of::<T>(),
            len: 1,
            row: false,
            coherence: self.coherence,
        };
        let site = self.site.unwrap_or(Location::caller());
        let addresses = self.addresses::<T>(&binding, count)?;
        let run = self.heap.take_run(count, binding, site, true, addresses);
        let first = run.map_err(|error| self.ids::<T>(error))?;
        let mut chunk = 0;
        for i in 0..count {
            let oid = Oid(first * CHUNK + i);
            if oid.slot() == 0 {
                chunk = self.heap.add_chunk(oid.chunk(), binding);
            }
            let at = Place {
                chunk,
                slot: oid.slot(),
            };
            self.note_written(oid);
            // SAFETY: as the caller promises of `write`.
            let put = unsafe { self.heap.put(oid, at, |to| write(i, to)) };
            put.ok_or_else(|| self.full::<T>())?;
        }
        // SAFETY: `take_run` has bound the ids to `T`.
        Ok(unsafe { Refs::new(Oid(first * CHUNK), count) })
    }

    /// `count` new rows of `len` zeros each, with consecutive ids. They have no storage anywhere
    /// until they are touched, and so are not present.
    ///
    /// # Errors
    /// [`AllocError`]; outside of a call of the worker, or out of space.
    #[track_caller]
    pub fn alloc_rows<T: Scalar>(&mut self, count: u64, len: u64) -> Result<Rows<T>, AllocError> {
        self.may_alloc::<T>()?;
        self.fits::<T>(count, len)?;
        if count == 0 {
            return Ok(Rows::empty());
        }
        let binding = Binding {
            info: TypeInfo::of::<T>(),
            len,
            row: true,
            coherence: self.coherence,
        };
        let site = self.site.unwrap_or(Location::caller());
        let addresses = self.addresses::<T>(&binding, count)?;
        let run = self.heap.take_run(count, binding, site, false, addresses);
        let first = run.map_err(|error| self.ids::<T>(error))?;
        // SAFETY: `take_run` has bound the ids to rows of so many `T`s.
        Ok(unsafe { Rows::new(Oid(first * CHUNK), count, len) })
    }

    /// Stores new rows of zeros here from the start: here is their home.
    ///
    /// # Errors
    /// [`AllocError::Full`] when the page store is.
    pub fn store_rows<T: Scalar>(&mut self, rows: OidRange) -> Result<(), AllocError> {
        let mut all = rows.iter();
        all.try_for_each(|row| self.zero_fill(row))
            .map_err(|_full| self.full::<T>())
    }

    /// A new array of `len` zeros. It has no storage anywhere until it is touched.
    ///
    /// # Errors
    /// [`AllocError`]; outside of a call of the worker, or out of space.
    #[track_caller]
    pub fn alloc_array<T: Scalar>(&mut self, len: u64) -> Result<Array<T>, AllocError> {
        self.array_ids(len, true)
    }

    /// Stores a new array of zeros here from the start: here is its home.
    ///
    /// # Errors
    /// [`AllocError::Full`] when the page store is.
    pub fn store_array<T: Scalar>(&mut self, array: Array<T>) -> Result<(), AllocError> {
        let stored = self.zero_fill_elements(array.range(..).elements());
        stored.map_err(|_full| self.full::<T>())
    }

    /// A new array of `len` elements, the `i`-th of which is `init(i)`; all of it is valid here.
    /// `init` runs with the node lock held. Where it panics, no one gets to know the array.
    ///
    /// # Errors
    /// [`AllocError`]; outside of a call of the worker, or out of space.
    #[track_caller]
    pub fn alloc_array_with<T: Share>(
        &mut self,
        len: u64,
        init: impl FnMut(u64) -> T,
    ) -> Result<Array<T>, AllocError> {
        self.may_alloc::<T>()?;
        if len > 0 {
            self.may_store::<T>(len)?;
        }
        let array = self.array_ids(len, false)?;
        if !array.is_empty() {
            self.put_array(array, init)
                .ok_or_else(|| self.full::<T>())?;
        }
        Ok(array)
    }

    #[track_caller]
    fn array_ids<T: Share>(&mut self, len: u64, zeros: bool) -> Result<Array<T>, AllocError> {
        const { assert!(align_of::<T>() <= MAX_ALIGN) };
        let blocks = len.div_ceil(Array::<T>::PER_BLOCK);
        self.may_alloc::<T>()?;
        self.fits::<T>(1, len)?;
        if len == 0 {
            return Ok(Array::empty());
        }
        let info = TypeInfo::of::<T>();
        let ids = self.heap.take_array(blocks);
        let OidRange { first, count } = ids.map_err(|error| self.ids::<T>(error))?;
        let coherence = self.coherence;
        let binding = ArrayBinding {
            info,
            len,
            zeros,
            coherence,
        };
        let address = match self.heap.cluster.global() {
            Some(_) => {
                let address = self.heap.take_address(binding.bytes(), info.align as u64);
                Some(address.ok_or_else(|| self.full::<T>())?)
            }
            None => None,
        };
        let run = ArrayRun {
            ids: count,
            binding,
            site: self.site.unwrap_or(Location::caller()).into(),
            address,
            freed: false,
            records: 0,
        };
        self.heap.cluster.bind_array(first, run);
        for table in self.heap.tables() {
            table.advise_huge(first, blocks);
        }
        // SAFETY: the ids were just bound to an array of so many `T`s.
        Ok(unsafe { Array::new(first, len) })
    }

    /// Where `count` new objects are to lie: one after the other, in the global space if there is
    /// one.
    fn addresses<T>(&mut self, binding: &Binding, count: u64) -> Result<Addresses, AllocError> {
        if self.heap.cluster.global().is_none() {
            return Ok(Addresses::Anywhere);
        }
        let align = binding.info.align as u64;
        let bytes = binding.bytes().checked_mul(count);
        let address = bytes.and_then(|bytes| self.heap.take_address(bytes, align));
        address.map(Addresses::From).ok_or_else(|| self.full::<T>())
    }

    pub(crate) fn may_alloc<T>(&self) -> Result<(), AllocError> {
        match self.heap.presence() {
            Presence::Shared | Presence::Exclusive => Ok(()),
            presence => Err(AllocError::Presence {
                what: what::<T>(),
                node: self.heap.node,
                presence,
            }),
        }
    }

    #[track_caller]
    pub(crate) fn fits<T>(&self, count: u64, len: u64) -> Result<(), AllocError> {
        let bytes = (size_of::<T>() as u64).checked_mul(len);
        let fits = bytes.is_some_and(|bytes| bytes <= self.heap.store.capacity());
        if fits && count <= u64::from(u32::MAX) && isize::try_from(len).is_ok() {
            return Ok(());
        }
        Err(AllocError::TooLarge {
            what: what::<T>(),
            node: self.heap.node,
            count,
            len,
            site: self.site.unwrap_or(Location::caller()).into(),
        })
    }

    fn ids<T>(&self, error: ReserveError) -> AllocError {
        AllocError::Ids {
            what: what::<T>(),
            node: self.heap.node,
            error,
        }
    }

    pub(crate) fn full<T>(&self) -> AllocError {
        let capacity_bytes = self.heap.store.capacity();
        AllocError::Full {
            what: what::<T>(),
            node: self.heap.node,
            capacity_bytes,
        }
    }
}

pub(crate) fn what<T>() -> &'static str {
    std::any::type_name::<T>()
}
