//! Shared arrays: any number of elements, each of which is consistent for itself.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::ops::{Range, RangeBounds};
use std::panic::Location;

use dhole_model::{CallSite, Elements, Oid};
use thiserror::Error;

use crate::bad_indices::BadIndices;
use crate::geometry::per_block;
use crate::layout::ReferenceForm;
use crate::plain::plain;
use crate::reference::places;
use crate::share::Share;
use crate::share::type_map::{TypeMap, TypeRef};

/// A reference to a shared array of `len` elements. 16 bytes, and like [`Ref`](crate::Ref) no
/// address: it may be copied, sent and stored in objects.
///
/// [`slice`](Array::slice) and [`slice_mut`](Array::slice_mut) borrow the worker and give plain
/// slices. What was asked for with `slice_mut` counts as written, element by element, so nodes
/// may write different elements at once, wherever they lie.
#[repr(C)]
pub struct Array<T> {
    first: NonZeroU64,
    len: u64,
    of: PhantomData<fn(T) -> T>,
}

/// Some consecutive elements of an [`Array`]: what [`Array::range`] gives, and what can be
/// borrowed with others, and fetched ahead.
pub struct ArrayRange<T> {
    pub(crate) array: Array<T>,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// A range that does not lie within its array, or ends before it starts.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "elements {} of an array of {len} at {site}: there are no such elements",
    span(*start, *end)
)]
pub struct OutOfBounds {
    /// Elements of the array.
    pub len: u64,
    /// Where the range starts.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// Where in the program.
    pub site: CallSite,
}

dhole_model::debug_in_words!(OutOfBounds);

/// Places beyond all numbers have no end.
pub(crate) fn span(start: u64, end: u64) -> String {
    match end {
        u64::MAX => format!("from {start} on"),
        end => format!("{start}..{end}"),
    }
}

/// Why elements of an array cannot be had.
#[derive(Clone, PartialEq, Error)]
pub enum ArrayError<E: std::error::Error + 'static> {
    /// There are none.
    #[error(transparent)]
    OutOfBounds(#[from] OutOfBounds),
    /// Indices name elements that there are not, or do not go with the values.
    #[error(transparent)]
    Indices(#[from] BadIndices),
    /// They cannot be brought here.
    #[error(transparent)]
    Access(E),
}

impl<E: std::error::Error + 'static> std::fmt::Debug for ArrayError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        dhole_model::write_error(self, f)
    }
}

/// An access to elements of an array that may not be touched here: which, taken for what, from
/// where.
#[derive(Clone, Debug)]
pub struct ArrayMiss {
    /// The elements.
    pub elements: Elements,
    /// Neighbours that were written together with them may be brought too, as far as this.
    pub within: Elements,
    /// The type that the array is taken for.
    pub ty: TypeRef,
    /// Elements of the array.
    pub len: u64,
    /// Where the program accessed them.
    pub site: &'static Location<'static>,
}

impl ArrayMiss {
    /// Where the program accessed the elements.
    pub fn call_site(&self) -> CallSite {
        self.site.into()
    }
}

const TOO_LARGE: &str = "the elements of a shared array have 1 to 4096 bytes each: make larger \
     ones objects of their own, with `alloc_range`, or arrays of what they consist of";

impl<T> Array<T> {
    /// How many blocks, and so ids, so many elements take.
    #[doc(hidden)]
    pub const fn blocks(len: u64) -> u64 {
        len.div_ceil(Self::PER_BLOCK)
    }

    /// Elements in a block. Elements without bytes, or of more than a page, do not compile.
    #[doc(hidden)]
    pub const PER_BLOCK: u64 = match per_block(size_of::<T>()) {
        Some(elements) => elements,
        None => panic!("{}", TOO_LARGE),
    };

    /// Evaluated where a program makes an array, so that the compiler names that place.
    #[doc(hidden)]
    pub const ELEMENTS_FIT: () = assert!(per_block(size_of::<T>()).is_some(), "{}", TOO_LARGE);

    /// # Safety
    /// An array of `len` `T`s was allocated whose first block is `first`.
    pub(crate) unsafe fn new(first: Oid, len: u64) -> Array<T> {
        let first = NonZeroU64::new(first.0).expect("an allocated id is not 0");
        Array {
            first,
            len,
            of: PhantomData,
        }
    }

    /// An array without elements.
    pub const fn empty() -> Array<T> {
        Array {
            first: NonZeroU64::MIN,
            len: 0,
            of: PhantomData,
        }
    }

    /// How many elements.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The array's id: that of its first block.
    #[inline(always)]
    pub fn oid(self) -> Oid {
        Oid(self.first.get())
    }

    /// The block of element `i`, which must exist.
    #[inline(always)]
    pub(crate) fn block(self, i: u64) -> Oid {
        Oid(self.first.get() + i / Self::PER_BLOCK)
    }

    /// The elements `range`.
    ///
    /// # Panics
    /// When there are no such elements, like a slice.
    #[inline]
    #[track_caller]
    pub fn range(self, range: impl RangeBounds<usize>) -> ArrayRange<T> {
        match self.try_range(range) {
            Ok(range) => range,
            Err(error) => panic!("{error}"),
        }
    }

    /// The elements `range`.
    ///
    /// # Errors
    /// [`OutOfBounds`] when there are no such elements.
    #[inline]
    #[track_caller]
    pub fn try_range(self, range: impl RangeBounds<usize>) -> Result<ArrayRange<T>, OutOfBounds> {
        let Range { start, end } = places(range, self.len);
        if start <= end && end <= self.len {
            let array = self;
            return Ok(ArrayRange { array, start, end });
        }
        Err(OutOfBounds {
            len: self.len,
            start,
            end,
            site: Location::caller().into(),
        })
    }
}

impl<T> ArrayRange<T> {
    /// The array.
    pub fn array(self) -> Array<T> {
        self.array
    }

    /// The places in the array.
    pub fn places(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// How many elements.
    #[inline(always)]
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    pub(crate) fn elements(self) -> Elements {
        Elements::new(self.array.oid(), self.start..self.end)
    }
}

impl<T: Share> ArrayRange<T> {
    /// An access to these elements.
    #[inline]
    pub(crate) fn miss(self, site: &'static Location<'static>) -> ArrayMiss {
        ArrayMiss {
            elements: self.elements(),
            within: self.elements(),
            ty: TypeRef::of::<T>(),
            len: self.array.len,
            site,
        }
    }

    /// An access to these elements that may bring others of their blocks.
    pub(crate) fn miss_of_blocks(self, site: &'static Location<'static>) -> ArrayMiss {
        let block = Array::<T>::PER_BLOCK;
        let start = self.start / block * block;
        let end = self.end.next_multiple_of(block).min(self.array.len);
        ArrayMiss {
            within: Elements::new(self.array.oid(), start..end),
            ..self.miss(site)
        }
    }
}

plain! {
    Array: first len;
    ArrayRange: array start end;
}

// SAFETY: `repr(C)` over two words, tested like a `Ref`, its length too.
unsafe impl<T: Share> Share for Array<T> {
    fn describe(map: &mut TypeMap) {
        map.reference::<T>(ReferenceForm::Array);
    }
}

impl<T> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({:?}, {})", self.oid(), self.len)
    }
}

impl<T> fmt::Debug for ArrayRange<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}[{:?}]", self.array, self.places())
    }
}
