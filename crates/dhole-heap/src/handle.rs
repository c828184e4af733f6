//! A handle table: for every object id of the process, where this node keeps the object (DOSA,
//! section 3.2).

use std::ptr::{self, NonNull};

use dhole_model::Oid;
use dhole_space::touch::HandlePlace;
use dhole_space::{HUGE_BYTES, View, space, touch, view_of};

/// One of a node's two tables, indexed by object id. The entry of an object that the node does
/// not hold is null, which is also what untouched memory of the reservation reads as.
#[derive(Clone, Copy)]
pub(crate) struct HandleTable {
    base: NonNull<HandlePlace>,
    entries: u64,
}

// SAFETY: a table is a pointer to atomics, which by the contract of `new` are there for as long as
// any copy of it is used, on whichever thread.
unsafe impl Send for HandleTable {}
// SAFETY: as above; a shared table gives only shared access to atomics.
unsafe impl Sync for HandleTable {}

impl HandleTable {
    /// The table of `entries` entries at `base`.
    ///
    /// # Safety
    /// `entries` pointers' worth of memory from `base` on must be mapped, hold null or what
    /// [`set`](HandleTable::set) may store, be accessed through tables alone, and stay so while any
    /// copy of the table is used.
    pub(crate) unsafe fn new(base: NonNull<u8>, entries: u64) -> HandleTable {
        HandleTable {
            base: base.cast(),
            entries,
        }
    }

    /// Where the object is, or null. See [`touch`] for how to follow it.
    ///
    /// # Safety
    /// `oid` must be below the number of entries: it is for the id of every [`Ref`](crate::Ref).
    #[inline(always)]
    pub(crate) unsafe fn load_unchecked(&self, oid: u64) -> *mut u8 {
        // SAFETY: the entry exists, as the caller promises, and is mapped, by the contract of
        // `new`.
        unsafe { self.base.add(oid as usize).as_ref() }.load()
    }

    /// The entry; `None` when `oid` is beyond the table.
    #[inline]
    fn place(&self, oid: Oid) -> Option<&HandlePlace> {
        // SAFETY: the entry exists, by the test before, and is mapped, by the contract of `new`.
        (oid.0 < self.entries).then(|| unsafe { self.base.add(oid.0 as usize).as_ref() })
    }

    /// Whether the object may be read; `false` as well when `oid` is beyond the table.
    #[inline]
    pub(crate) fn is_readable(&self, oid: Oid) -> bool {
        let handle = self.load(oid).map(NonNull::as_ptr);
        handle.is_some_and(|handle| {
            let is_address = handle.addr().cast_signed() > 0;
            is_address || touch::is_expected(handle) || view_of(handle) != View::Nothing
        })
    }

    /// The handle, if it is set; `None` as well when `oid` is beyond the table.
    #[inline]
    pub(crate) fn load(&self, oid: Oid) -> Option<NonNull<u8>> {
        self.place(oid).and_then(|place| NonNull::new(place.load()))
    }

    /// Points the entry of `oid` to `object`.
    ///
    /// # Safety
    /// The worker may read, and in the table of write handles write, what `object` leads to: a
    /// valid value of the type and length to which the id is bound, or of all elements of that
    /// block, as [`touch`] says. And it cannot be loading the entry: the node lock is
    /// held, and the worker is in a call that borrows its token mutably; or, in the table of write
    /// handles, in any call; or the caller is the worker's own thread. See the
    /// [monitor](crate::monitor).
    ///
    /// # Panics
    /// When `oid` is beyond the table.
    #[inline]
    pub(crate) unsafe fn set(&self, oid: Oid, object: *mut u8) {
        let place = self.place(oid);
        let place = place.unwrap_or_else(|| panic!("{oid} is beyond the handle table"));
        place.set(object);
    }

    /// Notes that the worker writes an object that it is [`expected`](touch::expected) to write;
    /// whether that was so, and the object was not [withdrawn](HandleTable::withdraw) meanwhile.
    ///
    /// # Safety
    /// The caller is the worker's own thread, and the handle was stored under the contract of
    /// [`set`](HandleTable::set) for a worker that writes once its write is noted.
    #[inline]
    pub(crate) unsafe fn note(&self, oid: Oid) -> bool {
        self.place(oid).is_some_and(HandlePlace::note)
    }

    /// Makes the entry of an object null that the worker is [`expected`](touch::expected) to write;
    /// whether that was so, and the worker has not [noted](HandleTable::note) its write meanwhile.
    ///
    /// # Safety
    /// The node lock is held.
    #[inline]
    pub(crate) unsafe fn withdraw(&self, oid: Oid) -> bool {
        self.place(oid).is_some_and(HandlePlace::withdraw)
    }

    /// Makes the entry of `oid` null.
    ///
    /// # Safety
    /// As for [`set`](HandleTable::set), of when: what no handle leads to is nobody's.
    #[inline]
    pub(crate) unsafe fn clear(&self, oid: Oid) {
        // SAFETY: as the caller promises; null leads nowhere.
        unsafe { self.set(oid, ptr::null_mut()) };
    }

    /// Lets the system use huge pages for the entries of `count` ids, if they fill some.
    pub(crate) fn advise_huge(&self, first: Oid, count: u64) {
        let bytes = count * size_of::<HandlePlace>() as u64;
        let end = first.0.checked_add(count);
        if bytes >= HUGE_BYTES && end.is_some_and(|end| end <= self.entries) {
            // SAFETY: the entries exist, by that test, and are mapped, by `new`'s contract.
            unsafe {
                let at = self.base.add(first.0 as usize);
                space::advise_huge(at.cast(), bytes);
            }
        }
    }

    /// Whether both are the same table.
    #[inline]
    pub(crate) fn is(&self, other: &HandleTable) -> bool {
        self.base == other.base
    }
}
