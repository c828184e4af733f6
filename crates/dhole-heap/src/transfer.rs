//! Bytes out of a node and into it: packed, without padding, by raw copies alone.

use dhole_model::{NodeId, Oid};
use dhole_space::PAGE_BYTES;

use crate::diff::{self, DiffError};
use crate::foreign::Unheard;
use crate::heap::{Heap, Place};
use crate::share::type_map::Named;
use crate::{BindError, Binding, Foreign, HeapMut, Invalid, Presence, TypeInfo, TypeRef};

/// Why an object's bytes could not be had.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GatherError {
    /// The worker may be writing it at this moment.
    #[error("gathering {oid} on {node}: it is being written")]
    BeingWritten {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
    },
    /// The node has no bytes of it, not even old ones; or no pre-image, where that was asked for.
    #[error("gathering {oid} on {node}: it is not stored here")]
    NotStored {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
    },
}

/// Why bytes were not installed as an object. Nothing was written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InstallError {
    /// References may live that the bytes would change.
    #[error("installing {oid} on {node}: {presence}")]
    Presence {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
        /// Where the worker is.
        presence: Presence,
    },
    /// There is a valid copy, and the worker may be reading it.
    #[error("installing {oid} on {node}: a valid copy is here, and may be in use")]
    Present {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
    },
    /// The node's own interval has written the object.
    #[error("installing {oid} on {node}: it is written here")]
    Writable {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
    },
    /// The object does not have as many bytes.
    #[error("installing {oid} on {node}: {bytes} bytes for an object of {wanted}")]
    Length {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
        /// Bytes that came.
        bytes: usize,
        /// Bytes of the object without its padding.
        wanted: u64,
    },
    /// The bytes are no value of the object's type.
    #[error("installing {oid} on {node}: {invalid}")]
    Invalid {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
        /// What is wrong.
        invalid: Invalid,
    },
    /// The bytes contain a reference that nobody can have.
    #[error("installing {oid} on {node}: a reference in it: {error}")]
    Reference {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
        /// What is wrong with it.
        error: BindError,
    },
    /// The bytes are no diff of the object.
    #[error("merging into {oid} on {node}: the diff: {error}")]
    Diff {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
        /// What is wrong with it.
        error: DiffError,
    },
    /// There is no valid copy to merge into.
    #[error("changing {oid} on {node}: no valid copy is here")]
    Absent {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
    },
    /// Nothing was pushed, or it was dropped.
    #[error("installing what was pushed of {oid} on {node}: nothing is kept")]
    NotKept {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
    },
    /// Only rows start as zeros.
    #[error("filling {oid} on {node} with zeros: it is not a row")]
    NotARow {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
    },
    /// Pages are kept consistent, not objects.
    #[error("changing {oid} on {node}: its cluster keeps whole pages consistent")]
    Paged {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
    },
    /// The id names no object of this cluster.
    #[error("installing on {node}: {foreign}")]
    Foreign {
        /// The node.
        node: NodeId,
        /// What the id is instead.
        foreign: Foreign,
    },
    /// The node's page store is full.
    #[error("installing {oid} on {node}: its store of {capacity_bytes} bytes is full")]
    Full {
        /// The object.
        oid: Oid,
        /// The node.
        node: NodeId,
        /// Bytes of the whole store.
        capacity_bytes: u64,
    },
}

impl Heap {
    /// Appends the packed bytes of an object to `out`.
    ///
    /// # Safety
    /// The object's storage is there, holds a value, and nobody may be writing it.
    pub(crate) unsafe fn pack(&self, at: Place, storage: u64, out: &mut Vec<u8>) -> usize {
        let binding = &self.chunks[at.chunk].binding;
        let bytes = binding.packed_bytes() as usize;
        out.reserve(bytes);
        let from = self.store.pointer(storage).as_ptr();
        let start = out.len();
        // SAFETY: the storage has all bytes of the binding and holds a value that nobody writes, as
        // the caller promises. The ranges lie within it and are initialised in every value (the
        // type `TypeInfo`); `out` has room for their sum, which is `bytes`. No reference is formed
        // to the object.
        unsafe {
            let mut to = out.as_mut_ptr().add(start);
            if binding.row || binding.info.is_dense() {
                to.copy_from_nonoverlapping(from, bytes);
            } else {
                for range in &binding.info.data {
                    to.copy_from_nonoverlapping(from.add(range.offset), range.bytes);
                    to = to.add(range.bytes);
                }
            }
            out.set_len(start + bytes);
        }
        bytes
    }

    /// Writes packed bytes, of exactly the object's length, into its storage.
    ///
    /// # Safety
    /// The object's storage is there, and no reference to it lives. Where the object may be read
    /// then, the bytes are a value.
    unsafe fn unpack(&mut self, at: Place, storage: u64, packed: &[u8]) {
        let binding = &self.chunks[at.chunk].binding;
        assert_eq!(packed.len() as u64, binding.packed_bytes());
        let to = self.store.pointer(storage).as_ptr();
        // SAFETY: the storage has all bytes of the binding, and no reference to it lives, as the
        // caller promises; others who read or write it wait for the node lock, which whoever has
        // the heap has. The ranges lie within it, and `packed` has as many bytes as they add up to.
        unsafe {
            let mut from = packed.as_ptr();
            if binding.row || binding.info.is_dense() {
                to.copy_from_nonoverlapping(from, packed.len());
            } else {
                for range in &binding.info.data {
                    to.add(range.offset)
                        .copy_from_nonoverlapping(from, range.bytes);
                    from = from.add(range.bytes);
                }
            }
        }
    }

    /// Tests that every reference in an object's packed bytes is one that allocation gave out.
    pub(crate) fn check_references(
        &self,
        info: &TypeInfo,
        packed: &[u8],
        unheard: Unheard,
    ) -> Result<(), BindError> {
        check_each_reference(info, packed, |named, target| {
            self.check_reference(named, target, unheard)
        })
    }

    /// Tests that allocation gave out what is named as what it is taken for.
    pub(crate) fn check_reference(
        &self,
        named: &Named,
        target: TypeRef,
        unheard: Unheard,
    ) -> Result<(), BindError> {
        match self.knows(named, target.id()) {
            true => Ok(()),
            false => self.cluster.check(named, target, unheard),
        }
    }

    /// Whether this node has seen the one object named, as what it is taken for.
    fn knows(&self, named: &Named, seen: std::any::TypeId) -> bool {
        named.count == 1
            && !named.array
            && self.place(named.first).is_some_and(|at| {
                let shape = self.shapes.of(at.chunk);
                shape.of == seen && shape.len == named.len && shape.row == named.row
            })
    }
}

impl HeapMut<'_> {
    /// Gives an object that is accessed here for the first time its storage, before its bytes are
    /// here: pages are filled in the order of first access.
    ///
    /// # Errors
    /// [`InstallError`]: the id names no object of this cluster, or the store is full.
    pub fn make_room(&mut self, oid: Oid) -> Result<(), InstallError> {
        let node = self.heap.node;
        let seen = self.heap.see(oid);
        let at = seen.map_err(|foreign| InstallError::Foreign { node, foreign })?;
        self.storage(oid, at).map(drop)
    }

    /// The other objects that lie on the page of `oid`, in the order of their first access, each
    /// with whether a valid copy of it is here. None where `oid` is not smaller than a page.
    pub fn beside(&self, oid: Oid) -> impl Iterator<Item = (Oid, bool)> {
        let storage = |oid| {
            let at = self.heap.place(oid)?;
            Some((at, self.heap.chunks[at.chunk].storage(at.slot)?))
        };
        let page = storage(oid).map(|(_, storage)| storage / PAGE_BYTES);
        let residents = page.map_or(&[][..], |page| self.heap.residency.of(page));
        // A large object may begin where small ones lay once.
        let is_small = residents.iter().any(|range| range.contains(oid));
        let ranges = residents.iter().filter(move |_| is_small);
        let others = ranges.flat_map(|range| range.iter());
        others
            .filter(move |other| *other != oid)
            .filter_map(move |other| {
                let (at, storage) = storage(other)?;
                let here = Some(storage / PAGE_BYTES) == page;
                here.then(|| (other, self.heap.chunks[at.chunk].is_present(at.slot)))
            })
    }

    /// Appends the bytes of `oid` to `out`, packed, and returns how many. Valid copies and copies
    /// that were made invalid alike: the caller knows which version it asks for.
    ///
    /// # Errors
    /// [`GatherError`]: it may be written at this moment, or was never here. `out` is unchanged.
    pub fn gather(&self, oid: Oid, out: &mut Vec<u8>) -> Result<usize, GatherError> {
        let node = self.heap.node;
        let not_stored = GatherError::NotStored { oid, node };
        let Some(at) = self.heap.place(oid) else {
            return Err(not_stored);
        };
        let chunk = &self.heap.chunks[at.chunk];
        let Some(storage) = chunk.bytes_at(at.slot) else {
            return Err(not_stored);
        };
        if chunk.is_writable(at.slot) && self.heap.presence() == Presence::Computing {
            return Err(GatherError::BeingWritten { oid, node });
        }
        // SAFETY: the chunk says that these bytes are a value, and nobody may be writing it, by the
        // test above.
        Ok(unsafe { self.heap.pack(at, storage, out) })
    }

    /// As [`gather`](HeapMut::gather), of an object that owns no other and has at most so many
    /// bytes; `None` where that is not so, or it is refused.
    pub fn gather_small(&self, oid: Oid, most: usize, out: &mut Vec<u8>) -> Option<usize> {
        let at = self.heap.place(oid)?;
        let chunk = &self.heap.chunks[at.chunk];
        let binding = &chunk.binding;
        if binding.info.owns || binding.packed_bytes() > most as u64 {
            return None;
        }
        let storage = chunk.bytes_at(at.slot)?;
        let is_written = chunk.is_writable(at.slot) && self.heap.presence() == Presence::Computing;
        // SAFETY: the chunk says that these bytes are a value, and nobody may be writing it.
        (!is_written).then(|| unsafe { self.heap.pack(at, storage, out) })
    }

    /// Appends the bytes of `oid` as they were before this interval's first write.
    ///
    /// # Errors
    /// [`GatherError::NotStored`] when none were kept. `out` is unchanged.
    pub fn gather_pre_image(&self, oid: Oid, out: &mut Vec<u8>) -> Result<usize, GatherError> {
        match self.heap.pre_images.get(oid) {
            Some(packed) => {
                out.extend_from_slice(packed);
                Ok(packed.len())
            }
            None => Err(GatherError::NotStored {
                oid,
                node: self.heap.node,
            }),
        }
    }

    /// Appends how `oid` differs from its pre-image, in whole leaves, and returns how many bytes
    /// that takes: nothing where it does not.
    ///
    /// # Errors
    /// [`GatherError`]: it may be written at this moment, or no pre-image was kept. `out` is
    /// unchanged.
    pub fn gather_diff(&mut self, oid: Oid, out: &mut Vec<u8>) -> Result<usize, GatherError> {
        let mut new = self.heap.pre_images.buffer();
        let gathered = self.gather(oid, &mut new).and_then(|_| {
            let old = self.heap.pre_images.get(oid);
            let node = self.heap.node;
            old.ok_or(GatherError::NotStored { oid, node })
        });
        let start = out.len();
        let gathered = gathered.map(|old| {
            let at = self.heap.place(oid).expect("what is gathered is known");
            diff::diff(&self.heap.chunks[at.chunk].binding, old, &new, out);
            out.len() - start
        });
        self.heap.pre_images.recycle(new);
        gathered
    }

    /// Changes the node's copy of `oid` by a diff that another node gathered, whoever else has
    /// written other leaves meanwhile. Where the copy has a pre-image, it gets a new one: what the
    /// worker has written before is no difference any more.
    ///
    /// # Errors
    /// [`InstallError`]; nothing was written.
    pub fn merge(&mut self, oid: Oid, bytes: &[u8]) -> Result<(), InstallError> {
        let (node, presence) = (self.heap.node, self.heap.presence());
        if presence != Presence::Exclusive {
            return Err(InstallError::Presence {
                oid,
                node,
                presence,
            });
        }
        if self.heap.is_paged() {
            return Err(InstallError::Paged { oid, node });
        }
        let here = |at: &Place| self.heap.chunks[at.chunk].is_present(at.slot);
        let at = self.heap.place(oid).filter(here);
        let at = at.ok_or(InstallError::Absent { oid, node })?;
        let binding = self.heap.chunks[at.chunk].binding;
        let storage = self.heap.chunks[at.chunk]
            .storage(at.slot)
            .expect("a valid copy has bytes");
        let mut packed = self.heap.pre_images.buffer();
        // SAFETY: the object is present, so its storage holds a value; it is an exclusive call, so
        // nobody writes it.
        unsafe { self.heap.pack(at, storage, &mut packed) };
        let merged = diff::apply(bytes, &mut packed)
            .map_err(|error| InstallError::Diff { oid, node, error })
            .and_then(|()| self.check(oid, &binding, &packed, Unheard::IsGone));
        if merged.is_ok() {
            self.heap.unpublish(oid);
            // SAFETY: the bytes are a value, as was just tested, and it is an exclusive call, so no
            // reference to the object lives.
            unsafe { self.heap.unpack(at, storage, &packed) };
        }
        match merged.is_ok() && self.heap.pre_images.get(oid).is_some() {
            true => self.heap.pre_images.keep(oid, packed),
            false => self.heap.pre_images.recycle(packed),
        }
        merged
    }

    /// Keeps packed bytes of `oid` aside that nobody has asked for, in place of older ones.
    pub fn keep_pushed(&mut self, oid: Oid, bytes: &[u8]) {
        let mut packed = self.heap.pushed.buffer();
        packed.extend_from_slice(bytes);
        self.heap.pushed.keep(oid, packed);
    }

    /// Drops what was kept aside.
    pub fn discard_pushed(&mut self, oid: Oid) {
        self.heap.pushed.forget(oid);
    }

    /// Makes what was kept aside the node's valid copy of `oid`.
    ///
    /// # Errors
    /// [`InstallError`]; nothing was written, and nothing is kept any longer.
    pub fn install_pushed(&mut self, oid: Oid) -> Result<(), InstallError> {
        let node = self.heap.node;
        let packed = self.heap.pushed.take(oid);
        let packed = packed.ok_or(InstallError::NotKept { oid, node })?;
        let installed = self.install(oid, &packed);
        self.heap.pushed.recycle(packed);
        installed
    }

    /// Tests that packed bytes of the right length are a value.
    pub(crate) fn check(
        &self,
        oid: Oid,
        binding: &Binding,
        packed: &[u8],
        unheard: Unheard,
    ) -> Result<(), InstallError> {
        let node = self.heap.node;
        binding
            .check(packed)
            .map_err(|invalid| InstallError::Invalid { oid, node, invalid })?;
        self.heap
            .check_references(binding.info, packed, unheard)
            .map_err(|error| InstallError::Reference { oid, node, error })
    }

    /// Makes packed `bytes` the node's valid copy of `oid`. In a shared call the worker sees it
    /// when the call ends.
    ///
    /// # Errors
    /// [`InstallError`]; nothing was written.
    pub fn install(&mut self, oid: Oid, bytes: &[u8]) -> Result<(), InstallError> {
        self.install_whole(oid, bytes, Unheard::IsGone)
    }

    /// As [`install`](HeapMut::install), of bytes that may name objects of which this node has yet
    /// to hear, or not.
    pub(crate) fn install_whole(
        &mut self,
        oid: Oid,
        bytes: &[u8],
        unheard: Unheard,
    ) -> Result<(), InstallError> {
        let at = self.may_install(oid)?;
        let wanted = self.heap.chunks[at.chunk].binding.packed_bytes();
        match bytes.len() as u64 == wanted {
            true => self.install_at(oid, at, bytes, unheard).map(drop),
            false => Err(self.wrong_length(oid, bytes, wanted)),
        }
    }

    #[cold]
    fn wrong_length(&self, oid: Oid, bytes: &[u8], wanted: u64) -> InstallError {
        let (node, bytes) = (self.heap.node, bytes.len());
        InstallError::Length {
            oid,
            node,
            bytes,
            wanted,
        }
    }

    /// As [`install`](HeapMut::install), of the object with which `bytes` begin: its type, and how
    /// many of the bytes it takes.
    ///
    /// # Errors
    /// As there; [`InstallError::Length`] where there are too few bytes.
    pub fn install_first(
        &mut self,
        oid: Oid,
        bytes: &[u8],
    ) -> Result<(&'static TypeInfo, usize), InstallError> {
        let at = self.may_install(oid)?;
        self.install_at(oid, at, bytes, Unheard::IsGone)
    }

    /// As [`install_first`](HeapMut::install_first), of an object of which
    /// [that is allowed](HeapMut::may_install).
    #[inline]
    fn install_at(
        &mut self,
        oid: Oid,
        at: Place,
        bytes: &[u8],
        unheard: Unheard,
    ) -> Result<(&'static TypeInfo, usize), InstallError> {
        let binding = self.heap.chunks[at.chunk].binding;
        let wanted = binding.packed_bytes();
        let first = usize::try_from(wanted).ok();
        let Some(object) = first.and_then(|first| bytes.get(..first)) else {
            return Err(self.wrong_length(oid, bytes, wanted));
        };
        self.check(oid, &binding, object, unheard)?;
        let storage = self.storage(oid, at)?;
        self.heap.unpublish(oid);
        // SAFETY: the storage is the object's, the bytes are a value, as was just tested, and no
        // reference to the object lives: `may_install` returns only such, and both callers call it
        // first.
        unsafe {
            self.heap.unpack(at, storage, object);
            self.heap.appear(oid, at, storage);
        }
        Ok((binding.info, object.len()))
    }

    /// Makes a row of zeros the node's valid copy of `oid`, which is a row that nobody has
    /// written yet.
    ///
    /// # Errors
    /// [`InstallError`]; nothing was written.
    pub fn zero_fill(&mut self, oid: Oid) -> Result<(), InstallError> {
        let at = self.may_install(oid)?;
        let binding = self.heap.chunks[at.chunk].binding;
        if !binding.row {
            return Err(InstallError::NotARow {
                oid,
                node: self.heap.node,
            });
        }
        let storage = self.storage(oid, at)?;
        self.heap.unpublish(oid);
        let to = self.heap.store.pointer(storage).as_ptr();
        // SAFETY: the storage has as many bytes; no reference to the row lives: `may_install`
        // returns only such. Zeros are a valid row of scalars, which it is, by the test above.
        unsafe {
            to.write_bytes(0, binding.bytes() as usize);
            self.heap.appear(oid, at, storage);
        }
        Ok(())
    }

    /// The place of an object to which no reference lives: it is an exclusive call, or a shared one
    /// and the object is absent; nor is it written here. So it stays as long as the heap is
    /// borrowed.
    fn may_install(&mut self, oid: Oid) -> Result<Place, InstallError> {
        let (node, presence) = (self.heap.node, self.heap.presence());
        if presence == Presence::Computing {
            return Err(InstallError::Presence {
                oid,
                node,
                presence,
            });
        }
        if self.heap.is_paged() {
            return Err(InstallError::Paged { oid, node });
        }
        let seen = self.heap.see(oid);
        let at = seen.map_err(|foreign| InstallError::Foreign { node, foreign })?;
        let chunk = &self.heap.chunks[at.chunk];
        if chunk.is_writable(at.slot) {
            return Err(InstallError::Writable { oid, node });
        }
        if presence == Presence::Shared && chunk.is_present(at.slot) {
            return Err(InstallError::Present { oid, node });
        }
        Ok(at)
    }

    pub(crate) fn storage(&mut self, oid: Oid, at: Place) -> Result<u64, InstallError> {
        let (node, capacity_bytes) = (self.heap.node, self.heap.store.capacity());
        self.heap.storage(oid, at).ok_or(InstallError::Full {
            oid,
            node,
            capacity_bytes,
        })
    }
}

/// Looks at each reference in the packed bytes of a type.
pub(crate) fn check_each_reference(
    info: &TypeInfo,
    packed: &[u8],
    mut check: impl FnMut(&Named, TypeRef) -> Result<(), BindError>,
) -> Result<(), BindError> {
    for slot in &info.references {
        for i in 0..slot.count {
            // Whether the bytes are a reference at all is the same question as whether its
            // id was ever allocated: 0 never is.
            let none = Named {
                first: Oid(0),
                count: 1,
                len: 1,
                row: false,
                array: false,
            };
            if let Some(named) = slot.named(packed, i).unwrap_or(Some(none)) {
                check(&named, slot.target)?;
            }
        }
    }
    Ok(())
}
