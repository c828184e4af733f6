//! Arrays of two dimensions.

use std::fmt;
use std::ops::Range;
use std::panic::Location;

use dhole_model::CallSite;
use thiserror::Error;

use crate::array::span;
use crate::plain::plain;
use crate::{Access, Array, ArrayRange, Share, TypeMap};

/// An [`Array`] seen as rows of `columns` elements, one after the other. 32 bytes; it can be
/// stored in objects. What it gives are [`ArrayRange`]s: `grid.row(i).get(w)`.
#[repr(C)]
pub struct Array2<T> {
    array: Array<T>,
    rows: u64,
    columns: u64,
}

/// An array whose elements do not fill rows of a length.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error("an array of {len} as rows of {columns} at {site}: {}", left(*len, *columns))]
pub struct NotRows {
    /// Elements of the array.
    pub len: usize,
    /// Elements that each row should have.
    pub columns: usize,
    /// Where in the program.
    pub site: CallSite,
}

dhole_model::debug_in_words!(NotRows);

fn left(len: usize, columns: usize) -> String {
    match len.checked_rem(columns) {
        Some(left) => format!("{left} are left over"),
        None => "a row has an element at least".to_owned(),
    }
}

impl<T> Array2<T> {
    /// The elements of `array` as rows of `columns`.
    ///
    /// # Errors
    /// [`NotRows`] when elements are left over, or `columns` is 0.
    #[track_caller]
    pub fn of(array: Array<T>, columns: usize) -> Result<Array2<T>, NotRows> {
        match array.len().checked_rem(columns) {
            Some(0) => Ok(Array2::of_rows(array, array.len() / columns, columns)),
            _ => Err(NotRows {
                len: array.len(),
                columns,
                site: Location::caller().into(),
            }),
        }
    }

    /// So many rows of so many elements, which the array has all together. Rows without elements
    /// are rows.
    #[doc(hidden)]
    pub fn of_rows(array: Array<T>, rows: usize, columns: usize) -> Array2<T> {
        debug_assert_eq!(array.len(), rows * columns);
        let (rows, columns) = (rows as u64, columns as u64);
        Array2 {
            array,
            rows,
            columns,
        }
    }

    /// All elements, row by row.
    pub fn array(self) -> Array<T> {
        self.array
    }

    /// How many rows.
    #[inline]
    pub fn row_count(self) -> usize {
        self.rows as usize
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
            None => self.no_rows(i as u64, (i as u64).saturating_add(1)),
        }
    }

    /// Row `i`, if there is one.
    #[inline]
    pub fn try_row(self, i: usize) -> Option<ArrayRange<T>> {
        let (array, start) = (self.array, (i as u64).checked_mul(self.columns)?);
        let end = start.checked_add(self.columns)?;
        let is_there = (i as u64) < self.rows && end <= array.len() as u64;
        is_there.then_some(ArrayRange { array, start, end })
    }

    /// The rows `rows`, one after the other.
    ///
    /// # Panics
    /// When there are no such rows, like a slice.
    #[inline]
    #[track_caller]
    pub fn rows(self, rows: Range<usize>) -> ArrayRange<T> {
        let Range { start, end } = rows;
        let places = || {
            let columns = self.columns();
            let (start, end) = (start.checked_mul(columns)?, end.checked_mul(columns)?);
            self.array.try_range(start..end).ok()
        };
        match places().filter(|_| start <= end && end <= self.row_count()) {
            Some(places) => places,
            None => self.no_rows(start as u64, end as u64),
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn no_rows(self, start: u64, end: u64) -> ! {
        let (count, site) = (self.rows, Location::caller());
        let rows = span(start, end);
        panic!("rows {rows} of an array of {count} at {site}: there are no such rows")
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn no_column(self, i: usize, j: usize) -> ! {
        let (count, site) = (self.columns, Location::caller());
        panic!("element {j} of row {i} of an array of {count} columns at {site}: there is none")
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
            self.no_column(i, j);
        }
        row.places().start + j
    }
}

// SAFETY: `repr(C)` over an array's reference and two numbers, of which every value will do: rows
// are found within the array's length.
unsafe impl<T: Share> Share for Array2<T> {
    fn describe(map: &mut TypeMap) {
        map.field::<Array<T>>(std::mem::offset_of!(Self, array));
        map.field::<u64>(std::mem::offset_of!(Self, rows));
        map.field::<u64>(std::mem::offset_of!(Self, columns));
    }
}

plain! {
    Array2: array columns;
}

impl<T> fmt::Debug for Array2<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} by {}", self.array, self.rows, self.columns)
    }
}
