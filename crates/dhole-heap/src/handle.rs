//! A handle table: for every object id of the process, where this node keeps the object (DOSA,
//! section 3.2).

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use dhole_model::Oid;

use crate::space;
use crate::views::{View, view_of};

/// One of a node's two tables, indexed by object id. The entry of an object that the node does
/// not hold is null, which is also what untouched memory of the reservation reads as.
#[derive(Clone, Copy)]
pub(crate) struct HandleTable {
    base: NonNull<AtomicPtr<u8>>,
    entries: u64,
}

// SAFETY: the entries are atomics that are valid for as long as the cluster's slot is held; the
// table is no more than a pointer to them.
unsafe impl Send for HandleTable {}
// SAFETY: as above; a shared table gives only shared access to atomics.
unsafe impl Sync for HandleTable {}

impl HandleTable {
    /// The table of `entries` entries at `base`.
    ///
    /// # Safety
    /// `entries` pointers' worth of memory from `base` on must be mapped, hold null or valid
    /// pointers, be accessed through tables alone, and stay so while any copy of the table is used.
    pub(crate) unsafe fn new(base: NonNull<u8>, entries: u64) -> HandleTable {
        HandleTable {
            base: base.cast(),
            entries,
        }
    }

    /// Where the object is, or null. See [`touch`](crate::touch) for how to follow it.
    ///
    /// # Safety
    /// `oid` must be below the number of entries: it is for the id of every [`Ref`](crate::Ref).
    #[inline(always)]
    pub(crate) unsafe fn load_unchecked(&self, oid: u64) -> *mut u8 {
        // SAFETY: the entry exists, as the caller promises, and the mapping is valid by `new`.
        let entry = unsafe { self.base.add(oid as usize).as_ref() };
        entry.load(Ordering::Relaxed)
    }

    /// Whether the object may be read; `false` as well when `oid` is beyond the table.
    #[inline]
    pub(crate) fn is_readable(&self, oid: Oid) -> bool {
        let handle = self.load(oid).map(NonNull::as_ptr);
        handle.is_some_and(|handle| {
            handle.addr().cast_signed() > 0 || view_of(handle) != View::Nothing
        })
    }

    /// The handle, if it is set; `None` as well when `oid` is beyond the table.
    #[inline]
    pub(crate) fn load(&self, oid: Oid) -> Option<NonNull<u8>> {
        if oid.0 >= self.entries {
            return None;
        }
        // SAFETY: the entry exists, by the test above.
        NonNull::new(unsafe { self.load_unchecked(oid.0) })
    }

    /// Points the entry of `oid` to `object`.
    ///
    /// # Panics
    /// When `oid` is beyond the table.
    #[inline]
    pub(crate) fn set(&self, oid: Oid, object: *mut u8) {
        assert!(oid.0 < self.entries, "{oid} is beyond the handle table");
        // SAFETY: the entry exists, by the test above.
        let entry = unsafe { self.base.add(oid.0 as usize).as_ref() };
        entry.store(object, Ordering::Relaxed);
    }

    /// Makes the entry of `oid` null.
    #[inline]
    pub(crate) fn clear(&self, oid: Oid) {
        self.set(oid, ptr::null_mut());
    }

    /// Lets the system use huge pages for the entries of `count` ids, if they fill some.
    pub(crate) fn advise_huge(&self, first: Oid, count: u64) {
        let bytes = count * size_of::<AtomicPtr<u8>>() as u64;
        if bytes >= space::HUGE_BYTES && first.0 + count <= self.entries {
            // SAFETY: the entry exists, by the test just made.
            let at = unsafe { self.base.add(first.0 as usize) };
            space::advise_huge(at.cast(), bytes);
        }
    }

    /// Whether both are the same table.
    #[inline]
    pub(crate) fn is(&self, other: &HandleTable) -> bool {
        self.base == other.base
    }
}
