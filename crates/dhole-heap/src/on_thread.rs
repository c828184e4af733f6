//! What stays on the thread of a node's worker, with a message that says what to do instead.

use std::ops::{Deref, DerefMut};

mod sealed {
    pub trait Sealed {}
}

/// A part of a worker. It is neither `Send` nor `Sync`, whatever it holds, and the compiler's
/// message names what another thread can have instead:
///
/// ```compile_fail,E0277
/// fn send<T: Send>() {}
/// send::<dhole_heap::OnThread<u8>>();
/// ```
/// ```compile_fail,E0277
/// fn share<T: Sync>() {}
/// share::<dhole_heap::OnThread<u8>>();
/// ```
pub struct OnThread<T, W = ANodesWorker> {
    value: T,
    of: std::marker::PhantomData<W>,
}

/// In messages of the compiler: whose part it is.
pub enum ANodesWorker {}

/// What no type is: something of a worker that other threads may have.
#[diagnostic::on_unimplemented(
    message = "`w` stays on its node's thread, and other threads cannot use it",
    label = "`w` is used here, which other threads may run",
    note = "to read in several threads, fetch first what they need (`w.prefetch(..)`) and lend \
            what is present: `w.readers(|present| ..)`, in which any thread may call \
            `present.get(r)` and `present.slice(..)`",
    note = "other nodes run in other threads by themselves: start processes on them with \
            `w.spawn(..)`"
)]
pub trait OnAnyThread: sealed::Sealed {}

// SAFETY: nothing is made `Send` here, for no type is `OnAnyThread`: the trait is sealed, and this
// module implements it for none. The bound is there for its message.
unsafe impl<T, W: OnAnyThread> Send for OnThread<T, W> {}
// SAFETY: as for `Send`: no type is `OnAnyThread`.
unsafe impl<T, W: OnAnyThread> Sync for OnThread<T, W> {}

impl<T> OnThread<T> {
    /// The part, which stays on this thread.
    #[inline(always)]
    pub fn new(value: T) -> OnThread<T> {
        OnThread {
            value,
            of: std::marker::PhantomData,
        }
    }
}

impl<T, W> Deref for OnThread<T, W> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T, W> DerefMut for OnThread<T, W> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
