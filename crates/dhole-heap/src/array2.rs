//! Arrays of two dimensions.

use std::fmt;
use std::ops::Range;

use crate::{Access, Array, ArrayRange, Share, TypeMap};

/// An [`Array`] seen as rows of `columns` elements, one after the other. 24 bytes; it can be
/// stored in objects. What it gives are [`ArrayRange`]s: `grid.row(i).get(w)`.
#[repr(C)]
pub struct Array2<T> {
    array: Array<T>,
    columns: u64,
}

impl<T> Array2<T> {
    /// The elements of `array` as rows of `columns`. Elements that fill no row belong to none;
    /// without columns there are no rows.
    pub fn of(array: Array<T>, columns: usize) -> Array2<T> {
        let columns = columns as u64;
        Array2 { array, columns }
    }

    /// All elements, row by row.
    pub fn array(self) -> Array<T> {
        self.array
    }

    /// How many rows.
    #[inline]
    pub fn row_count(self) -> usize {
        (self.array.len() as u64)
            .checked_div(self.columns)
            .unwrap_or(0) as usize
    }

    /// How many elements in each row.
    #[inline]
    pub fn columns(self) -> usize {
        self.columns as usize
    }

    /// Row `i`.
    ///
    /// # Panics
    /// When there is no such row, like a slice.
    #[inline]
    #[track_caller]
    pub fn row(self, i: usize) -> ArrayRange<T> {
        match self.try_row(i) {
            Some(row) => row,
            None => crate::reference::out_of_range(i, self.row_count() as u64),
        }
    }

    /// Row `i`, if there is one.
    #[inline]
    fn try_row(self, i: usize) -> Option<ArrayRange<T>> {
        let (array, start) = (self.array, (i as u64).checked_mul(self.columns)?);
        let end = start.checked_add(self.columns)?;
        let is_there = self.columns > 0 && end <= array.len() as u64;
        is_there.then_some(ArrayRange { array, start, end })
    }

    /// The rows `rows`, one after the other.
    ///
    /// # Panics
    /// When there are no such rows, like a slice.
    #[inline]
    #[track_caller]
    pub fn rows(self, rows: Range<usize>) -> ArrayRange<T> {
        let count = self.row_count();
        assert!(
            rows.start <= rows.end && rows.end <= count,
            "rows {}..{} of an array of {count}: there are no such rows",
            rows.start,
            rows.end
        );
        let columns = self.columns();
        self.array.range(rows.start * columns..rows.end * columns)
    }
}

impl<T: Share> Array2<T> {
    /// The element at row `i` and column `j`, to read. See [`Array::get`].
    ///
    /// # Panics
    /// When there is no such element, like a slice.
    #[inline]
    #[track_caller]
    pub fn get<'w, 'id: 'w, W: Access<'id>>(self, w: &'w W, i: usize, j: usize) -> &'w T {
        self.array.get(w, self.place(i, j))
    }

    /// The element at row `i` and column `j`, to write. See [`Array::get_mut`].
    ///
    /// # Panics
    /// When there is no such element, like a slice.
    #[inline]
    #[track_caller]
    pub fn get_mut<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w mut W,
        i: usize,
        j: usize,
    ) -> &'w mut T {
        self.array.get_mut(w, self.place(i, j))
    }

    #[inline]
    #[track_caller]
    fn place(self, i: usize, j: usize) -> usize {
        let row = self.row(i);
        if j >= row.len() {
            crate::reference::out_of_range(j, self.columns);
        }
        row.places().start + j
    }
}

// SAFETY: `repr(C)` over an array's reference and a number, of which every value will do: rows
// are found within the array's length.
unsafe impl<T: Share> Share for Array2<T> {
    fn describe(map: &mut TypeMap) {
        map.field::<Array<T>>(std::mem::offset_of!(Self, array));
        map.field::<u64>(std::mem::offset_of!(Self, columns));
    }
}

impl<T> Clone for Array2<T> {
    #[inline(always)]
    fn clone(&self) -> Array2<T> {
        *self
    }
}

impl<T> Copy for Array2<T> {}

impl<T> PartialEq for Array2<T> {
    fn eq(&self, other: &Array2<T>) -> bool {
        (self.array, self.columns) == (other.array, other.columns)
    }
}

impl<T> Eq for Array2<T> {}

impl<T> fmt::Debug for Array2<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} by {}", self.array, self.columns)
    }
}
