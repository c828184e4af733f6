//! Writes of objects that were expected to be written, and reads of those that were expected to be
//! read: the worker notes them by itself, without a call of the runtime and without the node lock.

use std::cell::UnsafeCell;
use std::panic::Location;

use dhole_model::Oid;

/// An object that was written, and the place of its first write in the program.
pub type NotedWrite = (Oid, &'static Location<'static>);

/// What a node's worker has written of the objects that it was expected to write, since someone
/// took the notes.
#[derive(Default)]
pub(crate) struct NotedWrites(UnsafeCell<Vec<NotedWrite>>);

// SAFETY: the notes are reached by functions alone whose contracts exclude that two threads do so
// at once.
unsafe impl Sync for NotedWrites {}

impl NotedWrites {
    /// Notes a write.
    ///
    /// # Safety
    /// The caller borrows the worker's token mutably, so the worker computes. See the
    /// [monitor](crate::monitor).
    pub(crate) unsafe fn push(&self, written: NotedWrite) {
        // SAFETY: no other thread reaches the notes while the worker computes, by the contract of
        // `take`. So a unique reference is sound; it ends with the call.
        unsafe { (*self.0.get()).push(written) };
    }

    /// Takes the notes.
    ///
    /// # Safety
    /// The caller has the node lock, and the worker is in a call that borrows its token mutably.
    pub(crate) unsafe fn take(&self) -> Vec<NotedWrite> {
        // SAFETY: the worker notes nothing meanwhile, by the contract of `push`, and the lock
        // excludes all others.
        unsafe { std::mem::take(&mut *self.0.get()) }
    }
}

/// What a node's worker has read of the objects that it was expected to read, since someone took
/// the notes.
#[derive(Default)]
pub(crate) struct NotedReads(UnsafeCell<Vec<Oid>>);

// SAFETY: the notes are reached by functions alone whose contracts exclude that two threads do so
// at once.
unsafe impl Sync for NotedReads {}

impl NotedReads {
    /// Notes a read.
    ///
    /// # Safety
    /// The caller is the worker's own thread and borrows its token, so the worker computes. See the
    /// [monitor](crate::monitor).
    pub(crate) unsafe fn push(&self, read: Oid) {
        // SAFETY: no other thread reaches the notes while the worker computes, by the contract of
        // `take`. So a unique reference is sound; it ends with the call.
        unsafe { (*self.0.get()).push(read) };
    }

    /// Takes the notes.
    ///
    /// # Safety
    /// The caller has the node lock, and the worker is in a call.
    pub(crate) unsafe fn take(&self) -> Vec<Oid> {
        // SAFETY: the worker notes nothing meanwhile, by the contract of `push`, and the lock
        // excludes all others.
        unsafe { std::mem::take(&mut *self.0.get()) }
    }
}
