//! The layouts of a colour's rows: each row an object, or all rows one array.

use dhole::{Array2, Read, Result, Rows, Share, Worker, Write};

use super::{Columns, Problem, relax};

/// The rows of one colour. The two layouts say the same to the runtime, which fetches and
/// announces a row by itself under either.
pub trait Layout: Share + Copy {
    /// `rows` rows of `len` zeros.
    fn alloc(w: &mut Worker<'_>, rows: usize, len: usize) -> Self;

    /// Row `row`, to read.
    fn row<'w>(self, w: &'w Worker<'_>, row: usize) -> &'w [f64];

    /// Row `row`, to write.
    fn row_mut<'w>(self, w: &'w mut Worker<'_>, row: usize) -> &'w mut [f64];

    /// Row `row` to write, and of `read` the rows above, below and beside it.
    ///
    /// # Errors
    /// Those of `Worker::borrow`.
    fn stencil<'w>(
        self,
        w: &'w mut Worker<'_>,
        read: Self,
        row: usize,
    ) -> Result<(&'w mut [f64], [&'w [f64]; 3])>;

    /// Relaxes the points of row `row`, which lie in the columns that `which` says. The handles of
    /// the rows are read once for all points: hoisted out of the loop.
    ///
    /// # Errors
    /// Those of `Worker::borrow`.
    #[inline]
    fn relax(
        self,
        w: &mut Worker<'_>,
        read: Self,
        row: usize,
        which: Columns,
        problem: &Problem,
    ) -> Result<()> {
        let (out, neighbours) = self.stencil(w, read, row)?;
        relax(out, neighbours, which, problem.columns, problem.omega);
        Ok(())
    }
}

impl Layout for Rows<f64> {
    fn alloc(w: &mut Worker<'_>, rows: usize, len: usize) -> Rows<f64> {
        w.alloc_rows(rows, len)
    }

    fn row<'w>(self, w: &'w Worker<'_>, row: usize) -> &'w [f64] {
        Rows::row(self, row).get(w)
    }

    fn row_mut<'w>(self, w: &'w mut Worker<'_>, row: usize) -> &'w mut [f64] {
        Rows::row(self, row).get_mut(w)
    }

    #[inline]
    fn stencil<'w>(
        self,
        w: &'w mut Worker<'_>,
        read: Rows<f64>,
        row: usize,
    ) -> Result<(&'w mut [f64], [&'w [f64]; 3])> {
        let read = |row| Read(Rows::row(read, row));
        let (above, below, same) = (read(row - 1), read(row + 1), read(row));
        let rows = w.borrow((Write(Rows::row(self, row)), above, below, same))?;
        let (out, above, below, same) = rows;
        Ok((out, [above, below, same]))
    }
}

impl Layout for Array2<f64> {
    fn alloc(w: &mut Worker<'_>, rows: usize, len: usize) -> Array2<f64> {
        w.alloc_array2(rows, len)
    }

    fn row<'w>(self, w: &'w Worker<'_>, row: usize) -> &'w [f64] {
        Array2::row(self, row).get(w)
    }

    fn row_mut<'w>(self, w: &'w mut Worker<'_>, row: usize) -> &'w mut [f64] {
        Array2::row(self, row).get_mut(w)
    }

    #[inline]
    fn stencil<'w>(
        self,
        w: &'w mut Worker<'_>,
        read: Array2<f64>,
        row: usize,
    ) -> Result<(&'w mut [f64], [&'w [f64]; 3])> {
        let read = |row| Read(Array2::row(read, row));
        let (above, below, same) = (read(row - 1), read(row + 1), read(row));
        let rows = w.borrow((Write(Array2::row(self, row)), above, below, same))?;
        let (out, above, below, same) = rows;
        Ok((out, [above, below, same]))
    }
}
