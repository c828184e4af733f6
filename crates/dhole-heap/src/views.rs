//! Three views of a node's page store: one that may not be touched, one that may be read, and one
//! that may be written (DOSA, section 3.4). All are the same memory, a file without a name that is
//! mapped several times, so an object is protected for itself: its handle selects the view, and no
//! protection is changed after the start.
//!
//! The first view needs no file behind it: it is a reservation, as untouchable. So a node takes
//! two of the mappings that the system allows a process, 65,530 as a rule, and its neighbours are
//! kept apart by reservations.

use std::ops::Range;
use std::ptr::NonNull;

use dhole_model::Oid;

use crate::heap::{Heap, Place};
use crate::{space, touch};

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod map;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
#[path = "views/absent.rs"]
mod map;

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
pub(crate) use map::contain;
pub(crate) use map::{Views, view_of};

/// What the worker may do with what it sees through a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum View {
    /// Nothing.
    Nothing = 0,
    /// Read.
    Read = 1,
    /// Read and write.
    Write = 2,
}

impl Heap {
    /// Where a place of the store is as the worker sees it that may do this there.
    pub(crate) fn seen(&self, view: View, storage: u64) -> NonNull<u8> {
        let object = self.store.pointer(storage);
        match &self.views {
            None => object,
            Some(views) => views.of(object, view),
        }
    }

    /// The handle that leads there.
    pub(crate) fn handle(&self, view: View, storage: u64) -> *mut u8 {
        let object = self.seen(view, storage).as_ptr();
        match (&self.views, view) {
            (Some(_), _) => touch::negated(object),
            (None, View::Nothing) => std::ptr::null_mut(),
            (None, _) => object,
        }
    }

    /// Gives whole pages of the store back to the system; they read as zero again.
    ///
    /// # Safety
    /// Nothing lies there any more, and nothing refers to it.
    pub(crate) unsafe fn release_store(&self, pages: Range<u64>) {
        let (at, bytes) = (self.store.pointer(pages.start), pages.end - pages.start);
        // SAFETY: as the caller promises.
        unsafe {
            match &self.views {
                None => space::release(at, bytes),
                Some(views) => views.release(at, bytes),
            }
        }
    }

    /// The worker may not touch an object any more.
    ///
    /// # Safety
    /// It is an exclusive call.
    pub(crate) unsafe fn hide(&self, oid: Oid, at: Place) {
        let storage = self.chunks[at.chunk].storage(at.slot);
        // SAFETY: it is an exclusive call, as the caller promises. The view allows nothing.
        unsafe {
            match storage {
                Some(storage) if self.views.is_some() => {
                    self.read.set(oid, self.handle(View::Nothing, storage));
                }
                _ => self.tables().iter().for_each(|table| table.clear(oid)),
            }
        }
    }

    /// The worker may write an object no longer, which it may read.
    ///
    /// # Safety
    /// It is a call, and the object is one that could be written.
    pub(crate) unsafe fn close(&self, oid: Oid, at: Place) {
        let storage = self.chunks[at.chunk].storage(at.slot);
        // SAFETY: it is a call, as the caller promises. Where one handle says both, in a shared
        // call the worker may read through the old one or the new one, and the bytes are the same.
        unsafe {
            match storage {
                Some(storage) if self.views.is_some() => {
                    self.write.set(oid, self.handle(View::Read, storage));
                }
                _ => self.write.clear(oid),
            }
        }
    }
}
