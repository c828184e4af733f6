//! SOR without hoisting: the code of a compiler that cannot move the access through the handle out
//! of the loop (DOSA, section 4). Every point is reached from its row's handle anew.

use dhole::{Result, Share, Worker};

use super::kernel::{Columns, relaxed};
use super::{Layout, Problem};

/// The rows of one colour, accessed point by point.
#[derive(Share, Clone, Copy)]
pub struct PointByPoint<L>(L);

impl<L: Layout> Layout for PointByPoint<L> {
    fn alloc(w: &mut Worker<'_>, rows: usize, len: usize) -> PointByPoint<L> {
        PointByPoint(L::alloc(w, rows, len))
    }

    fn row<'w>(self, w: &'w Worker<'_>, row: usize) -> &'w [f64] {
        self.0.row(w, row)
    }

    fn row_mut<'w>(self, w: &'w mut Worker<'_>, row: usize) -> &'w mut [f64] {
        self.0.row_mut(w, row)
    }

    fn stencil<'w>(
        self,
        w: &'w mut Worker<'_>,
        read: PointByPoint<L>,
        row: usize,
    ) -> Result<(&'w mut [f64], [&'w [f64]; 3])> {
        self.0.stencil(w, read.0, row)
    }

    fn relax(
        self,
        w: &mut Worker<'_>,
        read: PointByPoint<L>,
        row: usize,
        which: Columns,
        problem: &Problem,
    ) -> Result<()> {
        let at = |w: &Worker<'_>, row, k: usize| read.row(w, row)[k];
        let (last, columns) = (problem.columns / 2, problem.columns);
        let points = match which {
            Columns::Odd => 0..last + columns % 2,
            Columns::Even => 1..last + 1,
        };
        for k in points {
            let (left, right) = match which {
                Columns::Odd if k == last => (at(w, row, last), at(w, row, 0)),
                Columns::Odd => (at(w, row, k), at(w, row, k + 1)),
                Columns::Even if columns % 2 == 0 && k == last => {
                    (at(w, row, last - 1), self.row(w, row)[0])
                }
                Columns::Even => (at(w, row, k - 1), at(w, row, k)),
            };
            let (above, below) = (at(w, row - 1, k), at(w, row + 1, k));
            let old = self.row(w, row)[k];
            let new = relaxed(old, above, below, left, right, problem.omega);
            self.row_mut(w, row)[k] = new;
        }
        Ok(())
    }
}
