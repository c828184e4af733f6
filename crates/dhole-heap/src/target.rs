//! What a token lends: the object that a reference names.

use std::panic::Location;
use std::ptr::NonNull;

use dhole_model::Oid;

use crate::{Miss, Ref, Row, Scalar, Share};

/// What a reference refers to: the borrow it gives, and how a pointer becomes one.
///
/// # Safety
/// `oid` is the id of a reference to one object. `shared` and `mutable` turn a pointer to that
/// object into a reference to all of it and to nothing else.
pub unsafe trait Target: Copy {
    type Shared<'w>;
    type Mutable<'w>;
    fn oid(self) -> Oid;
    fn miss(self, site: &'static Location<'static>) -> Miss;
    /// # Safety
    /// The object is there, valid, and nobody writes it during `'w`.
    unsafe fn shared<'w>(self, object: NonNull<u8>) -> Self::Shared<'w>;
    /// # Safety
    /// The object is there, valid, and nobody else reads or writes it during `'w`.
    unsafe fn mutable<'w>(self, object: NonNull<u8>) -> Self::Mutable<'w>;
}

// SAFETY: the id is that of a `Ref<T>`, so the object is a `T`.
unsafe impl<T: Share> Target for Ref<T> {
    type Shared<'w> = &'w T;
    type Mutable<'w> = &'w mut T;

    #[inline(always)]
    fn oid(self) -> Oid {
        Ref::oid(self)
    }

    fn miss(self, site: &'static Location<'static>) -> Miss {
        Miss::of(self, site)
    }

    #[inline(always)]
    unsafe fn shared<'w>(self, object: NonNull<u8>) -> &'w T {
        // SAFETY: the caller's promise; the object is a `T`.
        unsafe { object.cast().as_ref() }
    }

    #[inline(always)]
    unsafe fn mutable<'w>(self, object: NonNull<u8>) -> &'w mut T {
        // SAFETY: the caller's promise; the object is a `T`.
        unsafe { object.cast().as_mut() }
    }
}

// SAFETY: the id is that of a `Row<T>`, so the object is a row of `len` scalars: a row's length is
// part of what its id is bound to.
unsafe impl<T: Scalar> Target for Row<T> {
    type Shared<'w> = &'w [T];
    type Mutable<'w> = &'w mut [T];

    #[inline(always)]
    fn oid(self) -> Oid {
        Row::oid(self)
    }

    fn miss(self, site: &'static Location<'static>) -> Miss {
        Miss::of_row(self, site)
    }

    #[inline(always)]
    unsafe fn shared<'w>(self, object: NonNull<u8>) -> &'w [T] {
        // SAFETY: the caller's promise; the object is so many scalars.
        unsafe { NonNull::slice_from_raw_parts(object.cast(), self.len()).as_ref() }
    }

    #[inline(always)]
    unsafe fn mutable<'w>(self, object: NonNull<u8>) -> &'w mut [T] {
        // SAFETY: the caller's promise; the object is so many scalars.
        unsafe { NonNull::slice_from_raw_parts(object.cast(), self.len()).as_mut() }
    }
}
