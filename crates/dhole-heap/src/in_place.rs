//! New objects whose first value is made where it lies: of types that are larger than a stack.

use std::panic::Location;

use crate::alloc::what;
use crate::{AllocError, HeapMut, Ref, Refs, Share, TypeInfo};

impl HeapMut<'_> {
    /// A new object that begins as zeros, which `init` changes; present here and clean. The value
    /// is nowhere but in the object. `init` runs with the node lock held. Where it panics, no one
    /// gets to know the object.
    ///
    /// # Errors
    /// [`AllocError::NoZeros`] for a type of which zeros are no value, before `init` runs;
    /// otherwise as [`alloc`](HeapMut::alloc).
    #[track_caller]
    pub fn alloc_with<T: Share>(
        &mut self,
        init: impl FnOnce(&mut T),
    ) -> Result<Ref<T>, AllocError> {
        self.zeros_are::<T>(1)?;
        // SAFETY: `alloc_by` points to new storage for a `T` that nobody else knows, so that the
        // reference is the only one while `init` runs. Zeros are a `T`, as `zeros_are` has just
        // found, and `init` leaves one.
        unsafe {
            self.alloc_by(|mut to| {
                to.write_bytes(0, 1);
                init(to.as_mut());
            })
        }
    }

    /// `count` new objects with consecutive ids, each of which begins as zeros that `init` changes,
    /// as [`alloc_with`](HeapMut::alloc_with).
    ///
    /// # Errors
    /// As [`alloc_with`](HeapMut::alloc_with).
    #[track_caller]
    pub fn alloc_range_with<T: Share>(
        &mut self,
        count: u64,
        mut init: impl FnMut(u64, &mut T),
    ) -> Result<Refs<T>, AllocError> {
        self.zeros_are::<T>(count)?;
        // SAFETY: `alloc_range_by` points to new storage for a `T` that nobody else knows, so that
        // the reference is the only one while `init` runs. Zeros are a `T`, as `zeros_are` found.
        unsafe {
            self.alloc_range_by(count, |i, mut to| {
                to.write_bytes(0, 1);
                init(i, to.as_mut());
            })
        }
    }

    /// A new object of the value in a box, which is copied from there into the object; present here
    /// and clean.
    ///
    /// # Errors
    /// As [`alloc`](HeapMut::alloc).
    #[track_caller]
    #[expect(
        clippy::boxed_local,
        reason = "the value is taken, as it would be by value, and passes no stack"
    )]
    pub fn alloc_boxed<T: Share>(&mut self, value: Box<T>) -> Result<Ref<T>, AllocError> {
        self.fits::<T>(1, 1)?;
        // SAFETY: `alloc_by` points to new storage for a `T`, which overlaps no box. The value is
        // copied there whole; a shared type has no drop glue, so the box may drop its own.
        unsafe { self.alloc_by(|to| to.copy_from_nonoverlapping((&*value).into(), 1)) }
    }

    /// Tests that `count` objects of this type fit, and may begin as zeros.
    #[track_caller]
    fn zeros_are<T: Share>(&self, count: u64) -> Result<(), AllocError> {
        self.may_alloc::<T>()?;
        self.fits::<T>(count, 1)?;
        match TypeInfo::of::<T>().never_zero() {
            None => Ok(()),
            Some(part) => Err(AllocError::NoZeros {
                what: what::<T>(),
                node: self.node(),
                site: self.site.unwrap_or(Location::caller()).into(),
                part,
            }),
        }
    }
}
