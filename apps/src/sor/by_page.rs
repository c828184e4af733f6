//! Rows that are read page by page, one fault after the other, as hardware finds missing pages
//! (DOSA, section 3.6: an object that is larger than a page is fetched by page).

use dhole::{Array2, Result, Share, Worker};

use super::Layout;

/// Numbers in a page of 4 KiB.
const PAGE: usize = 512;

/// An array of rows, of which each page is asked for by itself.
#[derive(Share, Clone, Copy)]
pub struct ByPage(Array2<f64>);

impl ByPage {
    /// Touches the pages of a row, one after the other.
    fn touch(self, w: &Worker<'_>, row: usize) {
        let places = Array2::row(self.0, row).places();
        for start in places.clone().step_by(PAGE) {
            let page = start..places.end.min(start + PAGE);
            self.0.array().slice(w, page);
        }
    }
}

impl Layout for ByPage {
    fn alloc(w: &mut Worker<'_>, rows: usize, len: usize) -> ByPage {
        ByPage(w.alloc_array2(rows, len))
    }

    fn row<'w>(self, w: &'w Worker<'_>, row: usize) -> &'w [f64] {
        self.touch(w, row);
        Layout::row(self.0, w, row)
    }

    fn row_mut<'w>(self, w: &'w mut Worker<'_>, row: usize) -> &'w mut [f64] {
        Layout::row_mut(self.0, w, row)
    }

    fn stencil<'w>(
        self,
        w: &'w mut Worker<'_>,
        read: ByPage,
        row: usize,
    ) -> Result<(&'w mut [f64], [&'w [f64]; 3])> {
        [row - 1, row + 1]
            .into_iter()
            .for_each(|row| read.touch(w, row));
        self.0.stencil(w, read.0, row)
    }
}
