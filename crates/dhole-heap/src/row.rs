//! Rows of scalars: one object each, however long, and without storage until it is touched.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;

use dhole_model::{Oid, OidRange};

use crate::layout::ReferenceForm;
use crate::plain::plain;
use crate::reference::out_of_range;
use crate::share::Share;
use crate::share::type_map::TypeMap;

mod sealed {
    pub trait Sealed {}
}

/// A number of which every bit pattern is valid, zero too: what rows are made of.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number, so that nothing is known of its zeros",
    label = "rows and arrays of zeros are made of numbers",
    note = "an array of any other shared type is made with its values: \
            `w.alloc_array_with(len, |i| value)`",
    note = "or take an array of numbers with an element for each: `w.alloc_array2(rows, columns)`"
)]
pub trait Scalar: Share + Copy + sealed::Sealed {}

macro_rules! scalars {
    ($($t:ty)*) => {$(
        impl sealed::Sealed for $t {}
        impl Scalar for $t {}
    )*};
}
scalars!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

/// A reference to a row of `len` scalars, which is one object. 16 bytes.
#[repr(C)]
pub struct Row<T> {
    oid: NonZeroU64,
    len: u64,
    of: PhantomData<fn(T) -> T>,
}

impl<T> Row<T> {
    /// The id of the row.
    #[inline(always)]
    pub fn oid(self) -> Oid {
        Oid(self.oid.get())
    }

    /// How many scalars.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// References to rows of one length that were allocated together, with consecutive ids. 24 bytes.
#[repr(C)]
pub struct Rows<T> {
    first: NonZeroU64,
    count: u64,
    len: u64,
    of: PhantomData<fn(T) -> T>,
}

impl<T> Rows<T> {
    /// # Safety
    /// The `count` ids from `first` on were allocated as such rows, together.
    pub(crate) unsafe fn new(first: Oid, count: u64, len: u64) -> Rows<T> {
        let first = NonZeroU64::new(first.0).expect("an allocated id is not 0");
        Rows {
            first,
            count,
            len,
            of: PhantomData,
        }
    }

    /// No rows.
    pub const fn empty() -> Rows<T> {
        Rows {
            first: NonZeroU64::MIN,
            count: 0,
            len: 0,
            of: PhantomData,
        }
    }

    /// How many rows.
    #[inline(always)]
    pub fn count(self) -> usize {
        self.count as usize
    }

    /// How many scalars in each.
    #[inline(always)]
    pub fn row_len(self) -> usize {
        self.len as usize
    }

    /// The `i`-th row.
    ///
    /// # Panics
    /// When there is none, like a slice.
    #[inline(always)]
    #[track_caller]
    pub fn row(self, i: usize) -> Row<T> {
        match self.get(i) {
            Some(row) => row,
            None => out_of_range(i, self.count),
        }
    }

    /// The `i`-th row, if there is one.
    #[inline(always)]
    pub fn get(self, i: usize) -> Option<Row<T>> {
        if i as u64 >= self.count {
            return None;
        }
        let oid = self.first.saturating_add(i as u64);
        Some(Row {
            oid,
            len: self.len,
            of: PhantomData,
        })
    }

    /// The rows in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Row<T>> + ExactSizeIterator + Clone {
        (0..self.count()).map(move |i| self.row(i))
    }

    /// The ids, `None` when there are no rows.
    pub fn oids(self) -> Option<OidRange> {
        let count = u32::try_from(self.count).expect("allocation limits the number of rows");
        (count > 0).then(|| OidRange {
            first: Oid(self.first.get()),
            count,
        })
    }
}

plain! {
    Row: oid len;
    Rows: first count len;
}

// SAFETY: `repr(C)` over two words, tested like a `Ref`, its length too.
unsafe impl<T: Scalar> Share for Row<T> {
    fn describe(map: &mut TypeMap) {
        map.reference::<T>(ReferenceForm::Row);
    }
}

// SAFETY: `repr(C)` over three words, tested like a `Ref`, its lengths too.
unsafe impl<T: Scalar> Share for Rows<T> {
    fn describe(map: &mut TypeMap) {
        map.reference::<T>(ReferenceForm::Rows);
    }
}

impl<T> fmt::Debug for Row<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Row({:?}, {})", self.oid(), self.len)
    }
}

impl<T> fmt::Debug for Rows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Rows({:?}, {} of {})",
            Oid(self.first.get()),
            self.count,
            self.len
        )
    }
}
