//! References to shared objects: ids that know the type they were allocated as.

use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::ops::{Bound, Range, RangeBounds};

use dhole_model::{Oid, OidRange};

use crate::layout::ReferenceForm;
use crate::plain::plain;
use crate::share::type_map::TypeMap;
use crate::share::{Nullable, Share};

/// A reference to one shared object: 8 bytes, and so is `Option<Ref<T>>`. It is not an address
/// and keeps nothing alive; it may be copied, sent, stored in objects, and compared. References
/// are equal when they name the same object.
///
/// There is no way to make one but to allocate an object or to read one from an object.
#[repr(transparent)]
pub struct Ref<T> {
    oid: NonZeroU64,
    // Invariant: the id is bound to exactly one type.
    of: PhantomData<fn(T) -> T>,
}

impl<T> Ref<T> {
    /// # Safety
    /// `oid` was allocated as a `T`; so it is below the size of every handle table.
    #[inline(always)]
    pub(crate) unsafe fn new(oid: Oid) -> Ref<T> {
        Ref {
            oid: NonZeroU64::new(oid.0).expect("an allocated id is not 0"),
            of: PhantomData,
        }
    }

    /// The id of the object.
    #[inline(always)]
    pub fn oid(self) -> Oid {
        Oid(self.oid.get())
    }
}

plain! {
    Ref: oid;
    Refs: first len;
}

// SAFETY: a `Ref` is a non-zero id of 8 bytes; that it is an id allocated as a `T` is tested
// against the directory wherever one is made of bytes.
unsafe impl<T: Share> Share for Ref<T> {
    fn describe(map: &mut TypeMap) {
        map.reference::<T>(ReferenceForm::One);
    }
}

// SAFETY: a `Ref` is transparent over a `NonZero`, so `None` is zero and nothing else changes.
unsafe impl<T: Share> Nullable for Ref<T> {
    fn describe_option(map: &mut TypeMap) {
        map.reference::<T>(ReferenceForm::Maybe);
    }
}

// SAFETY: `repr(C)` over two words, tested like a `Ref`.
unsafe impl<T: Share> Share for Refs<T> {
    fn describe(map: &mut TypeMap) {
        map.reference::<T>(ReferenceForm::Range);
    }
}

impl<T> PartialOrd for Ref<T> {
    fn partial_cmp(&self, other: &Ref<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Ref<T> {
    fn cmp(&self, other: &Ref<T>) -> Ordering {
        self.oid.cmp(&other.oid)
    }
}

impl<T> fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ref({:?})", self.oid())
    }
}

/// References to objects that were allocated together, with consecutive ids. Each is an object of
/// its own: fetched, written and invalidated alone.
#[repr(C)]
pub struct Refs<T> {
    first: NonZeroU64,
    len: u64,
    of: PhantomData<fn(T) -> T>,
}

impl<T> Refs<T> {
    /// # Safety
    /// The `len` ids from `first` on were allocated as `T`s, together.
    pub(crate) unsafe fn new(first: Oid, len: u64) -> Refs<T> {
        let first = NonZeroU64::new(first.0).expect("an allocated id is not 0");
        Refs {
            first,
            len,
            of: PhantomData,
        }
    }

    /// A range of no objects.
    pub const fn empty() -> Refs<T> {
        Refs {
            first: NonZeroU64::MIN,
            len: 0,
            of: PhantomData,
        }
    }

    /// How many objects.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The `i`-th object.
    ///
    /// # Panics
    /// When there is none, like a slice.
    #[inline(always)]
    #[track_caller]
    pub fn at(self, i: usize) -> Ref<T> {
        match self.get(i) {
            Some(r) => r,
            None => out_of_range(i, self.len),
        }
    }

    /// The `i`-th object, if there is one.
    #[inline(always)]
    pub fn get(self, i: usize) -> Option<Ref<T>> {
        if i as u64 >= self.len {
            return None;
        }
        // Saturation cannot happen, for all ids of the range exist; it says so without a branch.
        Some(Ref {
            oid: self.first.saturating_add(i as u64),
            of: PhantomData,
        })
    }

    /// The objects in order.
    #[inline]
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Ref<T>> + ExactSizeIterator + Clone {
        (0..self.len()).map(move |i| Ref {
            oid: self.first.saturating_add(i as u64),
            of: PhantomData,
        })
    }

    /// The objects `range` of these.
    ///
    /// # Panics
    /// When the range does not lie within these, like a slice.
    #[track_caller]
    pub fn slice(self, range: impl RangeBounds<usize>) -> Refs<T> {
        let (start, end) = bounds(range, self.len());
        let first = self.first.saturating_add(start as u64);
        Refs {
            first,
            len: (end - start) as u64,
            of: PhantomData,
        }
    }

    /// The ids, `None` for an empty range.
    pub fn oids(self) -> Option<OidRange> {
        let count = u32::try_from(self.len).expect("allocation limits the length of a range");
        (count > 0).then(|| OidRange {
            first: Oid(self.first.get()),
            count,
        })
    }
}

#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn out_of_range(i: usize, len: u64) -> ! {
    panic!("index out of range: the length is {len} but the index is {i}")
}

/// The bounds of a range over `len` places, whether they lie within or not.
pub(crate) fn places(range: impl RangeBounds<usize>, len: u64) -> Range<u64> {
    let start = match range.start_bound() {
        Bound::Included(&i) => i as u64,
        Bound::Excluded(&i) => (i as u64).saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&i) => (i as u64).saturating_add(1),
        Bound::Excluded(&i) => i as u64,
        Bound::Unbounded => len,
    };
    start..end
}

/// `range` within `0..len`.
#[track_caller]
pub(crate) fn bounds(range: impl RangeBounds<usize>, len: usize) -> (usize, usize) {
    let Range { start, end } = places(range, len as u64);
    assert!(
        start <= end && end <= len as u64,
        "range {start}..{end} out of range: the length is {len}"
    );
    (start as usize, end as usize)
}

impl<T> fmt::Debug for Refs<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Refs({:?}, {})", Oid(self.first.get()), self.len)
    }
}
