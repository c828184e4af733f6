//! The worker's right to touch objects.

use std::marker::PhantomData;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;

use dhole_model::{Coherence, Oid};
use dhole_space::touch::{self, Found};

use crate::extent::Extents;
use crate::handle::HandleTable;
use crate::heap::BothExtents;
use crate::nursery::Kind;
use crate::target::Target;
use crate::{ArrayMiss, Miss, Ref, Share};

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
    extents: Arc<BothExtents>,
    brand: PhantomData<Brand<'id>>,
    not_send_nor_sync: PhantomData<*mut ()>,
}

/// Invariant in `'id`.
type Brand<'id> = fn(&'id ()) -> &'id ();

impl<'id> Token<'id> {
    /// A token of the node with these tables.
    ///
    /// # Safety
    /// The node's [presence](crate::Presence) says that its worker computes, and from here on what
    /// this token's borrows allow, until it is gone: no other token of the node lives that is not
    /// borrowed mutably as long. Its lifetime `'id` is no other token's.
    pub(crate) unsafe fn new(
        read: HandleTable,
        write: HandleTable,
        extents: Arc<BothExtents>,
    ) -> Token<'id> {
        Token {
            read,
            write,
            extents,
            brand: PhantomData,
            not_send_nor_sync: PhantomData,
        }
    }

    pub(crate) fn is_of(&self, read: &HandleTable) -> bool {
        self.read.is(read)
    }

    pub(crate) fn read_table(&self) -> HandleTable {
        self.read
    }

    /// What may be read of each array.
    pub(crate) fn read_extents(&self) -> &Extents {
        &self.extents.read
    }

    /// What may be written of each array.
    pub(crate) fn write_extents(&mut self) -> &Extents {
        &self.extents.write
    }

    /// A new object of this value, if some were [set aside](crate::HeapMut::set_aside) for its
    /// type, its protocol and this place in the program. It may be read and written. If not, the
    /// value.
    #[inline]
    pub fn bear<T: Share>(
        &mut self,
        coherence: Coherence,
        site: &'static Location<'static>,
        value: T,
    ) -> Result<Ref<T>, T> {
        let kind = Kind::of::<T>(coherence, site);
        // SAFETY: the token is borrowed mutably, and the value is stored next.
        let Some((oid, at)) = (unsafe { self.extents.nursery.take(&kind) }) else {
            return Err(value);
        };
        // SAFETY: what was set aside for a `T` has its size and alignment, is this worker's alone,
        // and its id is bound to `T`. The handles are stored by the worker's own thread, once the
        // value is there, and nobody but the worker may touch the object.
        unsafe {
            at.cast::<T>().write(value);
            self.read.set(oid, at.as_ptr());
            self.write.set(oid, at.as_ptr());
            Ok(Ref::new(oid))
        }
    }

    /// Where the object is, if it may be read.
    ///
    /// # Safety
    /// `oid` must come from a reference, which names ids below the size of every table.
    #[inline(always)]
    pub(crate) unsafe fn readable(&self, oid: Oid) -> Option<Found> {
        // SAFETY: the caller's promise; and the token is borrowed.
        unsafe { touch::to_read(self.read.load_unchecked(oid.0)) }
    }

    /// Where the object is, if it may be written.
    ///
    /// # Safety
    /// As [`readable`](Token::readable).
    #[inline(always)]
    pub(crate) unsafe fn writable(&mut self, oid: Oid) -> Option<Found> {
        // SAFETY: the caller's promise; and the token is borrowed mutably.
        unsafe { touch::to_write(self.write.load_unchecked(oid.0)) }
    }

    /// Notes that the object of an access is written, if it was
    /// [expected](crate::HeapMut::expect_write) to be, and was not
    /// [withdrawn](crate::HeapMut::withdraw): then it is writable from now on.
    #[inline]
    pub fn note_write(&mut self, miss: &Miss) -> bool {
        // SAFETY: by the contract of `HandleTable::set` under which the handle was stored, the
        // worker may write what it leads to once this is noted. This is the worker's own thread,
        // for it borrows the token.
        if !unsafe { self.write.note(miss.oid) } {
            return false;
        }
        // SAFETY: the token is borrowed mutably.
        unsafe { self.extents.noted.push((miss.oid, miss.site)) };
        true
    }

    /// Notes that the object of an access is read, if it was
    /// [expected](crate::HeapMut::expect_read) to be: then the handle leads to it from now on.
    #[inline]
    pub fn note_read(&self, miss: &Miss) -> bool {
        // A miss may name any id, unlike a reference.
        let handle = self.read.load(miss.oid).map(NonNull::as_ptr);
        let Some(handle) = handle.filter(|handle| touch::is_expected(*handle)) else {
            return false;
        };
        // SAFETY: by the contract of `HandleTable::set` under which the handle was stored, the
        // worker may read what it leads to. This is the worker's own thread, for it borrows the
        // token.
        unsafe { self.read.set(miss.oid, touch::noted(handle)) };
        // SAFETY: the token is borrowed, and this type stays with its thread.
        unsafe { self.extents.read_notes.push(miss.oid) };
        true
    }

    /// Whether this node may read the object of an access now. If so the access counts as a read.
    pub fn is_readable(&self, miss: &Miss) -> bool {
        // A miss may name any id, unlike a reference.
        self.note_read(miss) || self.read.is_readable(miss.oid)
    }

    /// Whether this node may read the elements of an access now.
    pub fn are_readable(&self, miss: &ArrayMiss) -> bool {
        // SAFETY: the token is borrowed, so nobody changes what may be read.
        unsafe { self.read_extents().find(miss.elements).is_some() }
    }

    /// What `target` refers to, if this node may read it now.
    #[inline(always)]
    pub(crate) fn shared<R: Target>(&self, target: R) -> Option<R::Shared<'_>> {
        // SAFETY: a target is a reference (the contract of `Target`).
        let found = unsafe { self.readable(target.oid()) }?;
        // SAFETY: what was found is a valid object of the type and length that the id is bound to
        // (the contract of `HandleTable::set`), which nobody writes while the token is borrowed
        // (the contract of `Token::new`).
        Some(unsafe { target.shared(found.object()) })
    }

    /// What `target` refers to, if this node may write it now.
    #[inline(always)]
    pub(crate) fn mutable<R: Target>(&mut self, target: R) -> Option<R::Mutable<'_>> {
        // SAFETY: a target is a reference (the contract of `Target`).
        let found = unsafe { self.writable(target.oid()) }?;
        // SAFETY: as in `shared`; and the token is borrowed mutably, which excludes other
        // references, and all who read or write an object whose write handle is set.
        Some(unsafe { target.mutable(found.object()) })
    }

    /// What a [`Ref`](crate::Ref) or a [`Row`](crate::Row) refers to, if this node may read it
    /// now.
    ///
    /// # Errors
    /// The [`Miss`] that the engine must answer first.
    #[inline(always)]
    #[track_caller]
    pub fn get<R: Target>(&self, target: R) -> Result<R::Shared<'_>, Miss> {
        let site = Location::caller();
        self.shared(target).ok_or_else(|| target.miss(site))
    }

    /// What a [`Ref`](crate::Ref) or a [`Row`](crate::Row) refers to, if this node may write it
    /// now.
    ///
    /// # Errors
    /// The [`Miss`] that the engine must answer first.
    #[inline(always)]
    #[track_caller]
    pub fn get_mut<R: Target>(&mut self, target: R) -> Result<R::Mutable<'_>, Miss> {
        let site = Location::caller();
        self.mutable(target).ok_or_else(|| target.miss(site))
    }
}
