//! Objects that the worker is expected to write: it notes its first write of each by itself, and
//! until then they can be withdrawn from it.

use std::ptr::NonNull;

use dhole_model::Oid;
use dhole_space::touch;

use crate::ObjectRefused;
use crate::heap::HeapMut;
use crate::noted::NotedWrite;

impl HeapMut<'_> {
    /// As [`make_writable`](HeapMut::make_writable), and notes whether the worker
    /// does write it: until then the object [is untouched](HeapMut::is_untouched). Where the
    /// detector is `vm` it counts as written at once.
    ///
    /// # Errors
    /// As [`make_writable`](HeapMut::make_writable).
    pub fn expect_write(&mut self, oid: Oid, pre_image: bool) -> Result<(), ObjectRefused> {
        self.open(oid, pre_image, true)
    }

    /// Whether the worker may write the object, as was [expected](HeapMut::expect_write), and has
    /// not; or may once it has opened a [gate](HeapMut::open_gate). While it computes it may be
    /// about to.
    #[inline]
    pub fn is_untouched(&self, oid: Oid) -> bool {
        let handle = self.heap.write.load(oid).map(NonNull::as_ptr);
        handle.is_some_and(touch::is_expected)
    }

    /// The worker is expected to write an object again that it may write: the object
    /// [is untouched](HeapMut::is_untouched) until it does. Nothing happens where the object is
    /// clean, or the detector is `vm`.
    ///
    /// # Errors
    /// [`ObjectRefusal::Presence`](crate::ObjectRefusal::Presence) outside of an exclusive call.
    pub fn expect_again(&mut self, oid: Oid) -> Result<(), ObjectRefused> {
        self.exclusive("expecting a write", oid)?;
        let handle = self.heap.write.load(oid).map(NonNull::as_ptr);
        let is_address = |handle: &*mut u8| handle.addr().cast_signed() > 0;
        if let Some(handle) = handle.filter(is_address).filter(|_| self.is_writable(oid)) {
            // SAFETY: it is an exclusive call, as was just tested, so no reference lives; the
            // handle leads to what may be written, and does so again once that is noted.
            unsafe { self.heap.write.set(oid, touch::expected(handle)) };
        }
        Ok(())
    }

    /// Makes an object clean that the worker may write and has not written since that was
    /// expected, or that is behind a shut gate, also while the worker computes; whether it is clean
    /// now. If it is not, the worker has written it, or is about to.
    pub fn withdraw(&mut self, oid: Oid) -> bool {
        let Some(at) = self
            .is_untouched(oid)
            .then(|| self.heap.place(oid))
            .flatten()
        else {
            return false;
        };
        // SAFETY: the node lock is held.
        if !unsafe { self.heap.write.withdraw(oid) } {
            return false;
        }
        self.heap.chunks[at.chunk].set_clean(at.slot);
        self.heap.pre_images.forget(oid);
        true
    }

    /// The objects that were expected to be written and have been since the last time, each with
    /// the place in the program where that was, in the order of their first writes.
    ///
    /// # Errors
    /// [`ObjectRefusal::Presence`](crate::ObjectRefusal::Presence) outside of an exclusive call.
    pub fn take_noted(&mut self) -> Result<Vec<NotedWrite>, ObjectRefused> {
        self.exclusive("taking notes of writes", Oid(0))?;
        // SAFETY: it is an exclusive call, as was just tested, and the node lock is held.
        Ok(unsafe { self.heap.extents.noted.take() })
    }
}
