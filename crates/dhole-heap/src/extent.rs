//! Which elements of an array the worker may touch: handles for parts of blocks.

use std::cell::UnsafeCell;
use std::ptr::NonNull;

use dhole_model::{Elements, Oid, RangeSet};
use rustc_hash::FxHashMap;

/// What a node's worker may read, or may write, of each array: beside each handle table there is
/// one, for what a handle for each block cannot say. Read without the lock, as handles are.
#[derive(Default)]
pub(crate) struct Extents {
    arrays: UnsafeCell<FxHashMap<Oid, Extent>>,
}

/// Where an array begins, and which of its elements may be touched.
struct Extent {
    base: NonNull<u8>,
    elements: RangeSet,
}

// SAFETY: extents are looked at and changed by functions alone whose contracts exclude that one
// thread changes them while another looks; the addresses in them are no more than addresses.
unsafe impl Send for Extents {}
// SAFETY: as above.
unsafe impl Sync for Extents {}

impl Extents {
    /// Where the array of `elements` begins, if all of them may be touched.
    ///
    /// # Safety
    /// Nobody may change the extents meanwhile: the caller has the node lock, or borrows the
    /// worker's token, mutably for those of what may be written. See the [monitor](crate::monitor).
    pub(crate) unsafe fn find(&self, elements: Elements) -> Option<NonNull<u8>> {
        // SAFETY: nobody changes them, as the caller promises, so a shared reference is sound; it
        // ends with the call.
        let arrays = unsafe { &*self.arrays.get() };
        let extent = arrays.get(&elements.array)?;
        extent
            .elements
            .covers(elements.range())
            .then_some(extent.base)
    }

    /// Those of `elements` that may be touched, range by range.
    ///
    /// # Safety
    /// As [`find`](Extents::find).
    pub(crate) unsafe fn parts(&self, elements: Elements) -> Vec<Elements> {
        // SAFETY: as in `find`.
        let arrays = unsafe { &*self.arrays.get() };
        let extent = arrays.get(&elements.array).into_iter();
        let ranges = extent.flat_map(|extent| extent.elements.of(elements.range()));
        let ranges = ranges.filter(|(_, may)| *may);
        ranges
            .map(|(range, _)| Elements::new(elements.array, range))
            .collect()
    }

    /// Whether any of `elements` may be touched.
    ///
    /// # Safety
    /// As [`find`](Extents::find).
    pub(crate) unsafe fn meets(&self, elements: Elements) -> bool {
        // SAFETY: as in `find`.
        let arrays = unsafe { &*self.arrays.get() };
        let extent = arrays.get(&elements.array);
        extent.is_some_and(|extent| extent.elements.meets(elements.range()))
    }

    /// Forgets an array, which was freed.
    ///
    /// # Safety
    /// As [`set`](Extents::set).
    pub(crate) unsafe fn forget(&self, array: Oid) {
        // SAFETY: as in `set`.
        let arrays = unsafe { &mut *self.arrays.get() };
        arrays.remove(&array);
    }

    /// Says whether `elements`, of an array that begins at `base`, may be touched.
    ///
    /// # Safety
    /// Nobody may look at the extents meanwhile: the caller has the node lock, and the worker is
    /// in a call that borrows its token mutably; or, of what may be written, in any call; or the
    /// caller is the worker's own thread.
    pub(crate) unsafe fn set(&self, elements: Elements, base: NonNull<u8>, may: bool) {
        // SAFETY: nobody looks at them, as the caller promises, so a unique reference is sound; it
        // ends with the call.
        let arrays = unsafe { &mut *self.arrays.get() };
        let extent = arrays.entry(elements.array).or_insert_with(|| Extent {
            base,
            elements: RangeSet::new(),
        });
        debug_assert_eq!(extent.base, base, "an array never moves");
        extent.elements.set(elements.range(), may);
    }
}
