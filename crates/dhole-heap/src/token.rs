//! The worker's right to touch objects.

use std::marker::PhantomData;
use std::panic::Location;
use std::ptr::NonNull;

use dhole_model::Oid;

use crate::handle::HandleTable;
use crate::{Miss, Ref, Row, Scalar, Share};

/// What a node's one worker holds while it computes. Borrowing it is what makes access safe: a
/// reference to an object borrows the token, so it ends before anything that takes the token
/// mutably, and with it every synchronisation.
///
/// Made by [`Monitor::lend`](crate::Monitor::lend), for as long as its closure runs. The brand
/// `'id` is different for every token, so that no two can be swapped:
///
/// ```compile_fail
/// use dhole_heap::Monitor;
/// fn swap(a: &Monitor<()>, b: &Monitor<()>) {
///     a.lend(|mut x| b.lend(|mut y| std::mem::swap(&mut x, &mut y)));
/// }
/// ```
///
/// A token stays with its thread:
///
/// ```compile_fail,E0277
/// fn send<T: Send>() {}
/// send::<dhole_heap::Token<'static>>();
/// ```
/// ```compile_fail,E0277
/// fn share<T: Sync>() {}
/// share::<dhole_heap::Token<'static>>();
/// ```
///
/// and cannot leave the closure:
///
/// ```compile_fail
/// fn keep(m: &dhole_heap::Monitor<()>) {
///     let token = m.lend(|token| token);
/// }
/// ```
///
/// A reference does not outlive a synchronisation:
///
/// ```compile_fail,E0502
/// use dhole_heap::{Monitor, Ref, Token};
/// fn late<'id>(m: &Monitor<()>, t: &mut Token<'id>, r: Ref<u64>) -> u64 {
///     let seen = t.get(r).unwrap();
///     m.exclusive_call(t, |_| ());
///     *seen
/// }
/// ```
///
/// and what is being written is not read beside it:
///
/// ```compile_fail,E0502
/// use dhole_heap::{Ref, Token};
/// fn both<'id>(t: &mut Token<'id>, a: Ref<u64>, b: Ref<u64>) {
///     let read = t.get(a).unwrap();
///     let written = t.get_mut(b).unwrap();
///     *written = *read;
/// }
/// ```
/// ```compile_fail,E0499
/// use dhole_heap::{Ref, Token};
/// fn both<'id>(t: &mut Token<'id>, a: Ref<u64>, b: Ref<u64>) {
///     let one = t.get_mut(a).unwrap();
///     let two = t.get_mut(b).unwrap();
///     std::mem::swap(one, two);
/// }
/// ```
pub struct Token<'id> {
    read: HandleTable,
    write: HandleTable,
    brand: PhantomData<Brand<'id>>,
    not_send_nor_sync: PhantomData<*mut ()>,
}

/// Invariant in `'id`.
type Brand<'id> = fn(&'id ()) -> &'id ();

impl<'id> Token<'id> {
    /// The caller lends it to one worker, for a lifetime that no other token has.
    pub(crate) fn new(read: HandleTable, write: HandleTable) -> Token<'id> {
        Token {
            read,
            write,
            brand: PhantomData,
            not_send_nor_sync: PhantomData,
        }
    }

    pub(crate) fn is_of(&self, read: &HandleTable) -> bool {
        self.read.is(read)
    }

    /// Where the object is, if it may be read.
    ///
    /// # Safety
    /// `oid` must come from a reference.
    #[inline(always)]
    pub(crate) unsafe fn readable(&self, oid: Oid) -> Option<NonNull<u8>> {
        // SAFETY: every id in a reference was allocated, so it is below the table's size.
        NonNull::new(unsafe { self.read.load_unchecked(oid.0) })
    }

    /// Where the object is, if it may be written.
    ///
    /// # Safety
    /// `oid` must come from a reference.
    #[inline(always)]
    pub(crate) unsafe fn writable(&self, oid: Oid) -> Option<NonNull<u8>> {
        // SAFETY: every id in a reference was allocated, so it is below the table's size.
        NonNull::new(unsafe { self.write.load_unchecked(oid.0) })
    }

    /// Whether this node may read the object of an access now.
    pub fn is_readable(&self, miss: &Miss) -> bool {
        // A miss may name any id, unlike a reference.
        self.read.load(miss.oid).is_some()
    }

    /// The object, if this node may read it now.
    ///
    /// # Errors
    /// The [`Miss`] that the engine must answer first.
    #[inline(always)]
    #[track_caller]
    pub fn get<T: Share>(&self, r: Ref<T>) -> Result<&T, Miss> {
        // SAFETY: the id comes from a reference.
        match unsafe { self.readable(r.oid()) } {
            // SAFETY: a set handle of an id allocated as a `T` points to a valid `T`, which
            // nobody writes while the token is borrowed (the monitor's rules).
            Some(object) => Ok(unsafe { object.cast().as_ref() }),
            None => Err(Miss::of(r, Location::caller())),
        }
    }

    /// The object, if this node may write it now.
    ///
    /// # Errors
    /// The [`Miss`] that the engine must answer first.
    #[inline(always)]
    #[track_caller]
    pub fn get_mut<T: Share>(&mut self, r: Ref<T>) -> Result<&mut T, Miss> {
        // SAFETY: the id comes from a reference.
        match unsafe { self.writable(r.oid()) } {
            // SAFETY: as in `get`; and nobody reads or writes an object whose write handle is
            // set while the token is borrowed mutably, which also excludes other references.
            Some(object) => Ok(unsafe { object.cast().as_mut() }),
            None => Err(Miss::of(r, Location::caller())),
        }
    }

    /// The row, if this node may read it now.
    ///
    /// # Errors
    /// The [`Miss`] that the engine must answer first.
    #[inline(always)]
    #[track_caller]
    pub fn row<T: Scalar>(&self, r: Row<T>) -> Result<&[T], Miss> {
        // SAFETY: the id comes from a reference.
        match unsafe { self.readable(r.oid()) } {
            // SAFETY: as in `get`, for `len` scalars: a row's length is part of its binding.
            Some(at) => Ok(unsafe { NonNull::slice_from_raw_parts(at.cast(), r.len()).as_ref() }),
            None => Err(Miss::of_row(r, Location::caller())),
        }
    }

    /// The row, if this node may write it now.
    ///
    /// # Errors
    /// The [`Miss`] that the engine must answer first.
    #[inline(always)]
    #[track_caller]
    pub fn row_mut<T: Scalar>(&mut self, r: Row<T>) -> Result<&mut [T], Miss> {
        // SAFETY: the id comes from a reference.
        match unsafe { self.writable(r.oid()) } {
            // SAFETY: as in `get_mut`, for `len` scalars: a row's length is part of its binding.
            Some(at) => Ok(unsafe { NonNull::slice_from_raw_parts(at.cast(), r.len()).as_mut() }),
            None => Err(Miss::of_row(r, Location::caller())),
        }
    }
}
