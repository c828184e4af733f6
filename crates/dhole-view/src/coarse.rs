//! Many rows read in the order in which they lie in the memory object, through one view of all of
//! it (MultiView, section 5: composed views).
//!
//! The minipages of a page lie in different views, so rows that follow each other in the memory
//! object have addresses far apart. The privileged view shows them one behind the other. While
//! rows are held to be read no node writes them: so a program may read them there.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use dhole_model::CallSite;
use dhole_node::Worker;

use crate::held;
use crate::number::SharedNumber;
use crate::shared::{MemoryError, SharedRange, Use};

/// Rows that are held to be read, in the order of the memory object ([`SharedRange::read`]).
#[derive(Debug)]
pub struct HeldRows<'a, N> {
    /// Where each row begins.
    rows: Vec<NonNull<N>>,
    len: usize,
    held: PhantomData<&'a N>,
}

impl<'a, N: SharedNumber> HeldRows<'a, N> {
    /// How many rows.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// The `i`-th of the rows.
    ///
    /// # Panics
    /// When there is none, like a slice.
    #[track_caller]
    pub fn row(&self, i: usize) -> &'a [N] {
        let begins = self.rows[i];
        // SAFETY: so many numbers lie there, which are held as long as 'a (`SharedRange::read`):
        // no node writes them, and the bytes of what is held are in no minipage that is installed
        // meanwhile. Every pattern is a number (`SharedNumber`).
        unsafe { std::slice::from_raw_parts(begins.as_ptr(), self.len) }
    }

    /// All rows as one slice, if each begins where the one before ends: rows of a power of two of
    /// bytes do.
    pub fn contiguous(&self) -> Option<&'a [N]> {
        let [first, ..] = self.rows[..] else {
            return Some(&[]);
        };
        let bytes = self.len * size_of::<N>();
        let follows = |pair: &[NonNull<N>]| {
            let [one, next] = [pair[0], pair[1]].map(|row| row.addr().get());
            one + bytes == next
        };
        if !self.rows.windows(2).all(follows) {
            return None;
        }
        let len = self.len * self.rows.len();
        // SAFETY: as in `row`, of rows that lie one behind the other in one mapping.
        Some(unsafe { std::slice::from_raw_parts(first.as_ptr(), len) })
    }
}

impl<N: SharedNumber> SharedRange<N> {
    /// Runs `f` with all rows to read, which no node writes meanwhile. Those of which this node has
    /// no copy are fetched in one round first; no page of a view is opened for it. As
    /// [`SharedRow::read`](crate::SharedRow::read).
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn read<R>(
        self,
        w: &mut Worker<'_>,
        f: impl FnOnce(HeldRows<'_, N>) -> R,
    ) -> Result<R, MemoryError> {
        self.holding(w, Use::Slices, |rows, len| {
            f(HeldRows {
                rows,
                len,
                held: PhantomData,
            })
        })
    }

    /// Copies the numbers of all rows behind each other into `to`: as they are at one moment, but
    /// for what cells of other nodes of the domain change meanwhile. For rows that this node uses
    /// by [cells](crate::SharedRow::cells). Otherwise as [`read`](SharedRange::read).
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// Unless `to` has as many numbers as the rows.
    #[track_caller]
    pub fn copy_to(self, w: &mut Worker<'_>, to: &mut [N]) -> Result<(), MemoryError> {
        let numbers = self.row_len() * self.count();
        assert_eq!(to.len(), numbers, "numbers of {} rows", self.count());
        self.holding(w, Use::Cells, |rows, len| {
            for (row, to) in rows.iter().zip(to.chunks_mut(len.max(1))) {
                for (place, to) in to.iter_mut().enumerate() {
                    // SAFETY: the number is one of a row that is held, of which this node sees
                    // atomics of its size alone (`Use::Cells`, `Sizes`).
                    *to = unsafe { load(row.add(place)) };
                }
            }
        })
    }

    /// Fetches the rows, and runs `f` while they are held, with the places at which they begin.
    #[track_caller]
    fn holding<R>(
        self,
        w: &mut Worker<'_>,
        is_used: Use,
        f: impl FnOnce(Vec<NonNull<N>>, usize) -> R,
    ) -> Result<R, MemoryError> {
        let memory = self.tested(w)?;
        let len = self.row_len();
        let (mut rows, mut wanted) = (Vec::new(), Vec::new());
        for row in self.each() {
            row.place(memory, is_used)?;
            let bytes = len * size_of::<N>();
            rows.push(memory.arena.coarse_at(row.address(), bytes).cast());
            // What is held is where the rows lie, whatever a reference says of their minipages.
            wanted.push(row.wanted(false));
        }
        let site = CallSite::caller();
        memory.fetch(&mut self.minipages(), false, site)?;
        held::holding((memory, site), wanted, || f(rows, len))
    }
}

/// Loads a number as its atomic.
///
/// # Safety
/// It is mapped and aligned, and other threads access it as an atomic of its size.
unsafe fn load<N: SharedNumber>(at: NonNull<N>) -> N {
    macro_rules! of {
        ($atomic:ty) => {{
            // SAFETY: the caller's.
            let bits = unsafe { at.cast::<$atomic>().as_ref() }.load(Relaxed);
            // SAFETY: as many bytes, of which every pattern is a number (`SharedNumber`).
            unsafe { std::mem::transmute_copy(&bits) }
        }};
    }
    match size_of::<N>() {
        1 => of!(AtomicU8),
        2 => of!(AtomicU16),
        4 => of!(AtomicU32),
        _ => of!(AtomicU64),
    }
}
