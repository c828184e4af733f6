//! The nursery: storage and ids that were set aside for new objects, so that the worker allocates
//! by itself, without a call of the runtime and without the node lock.
//!
//! A call sets some objects of a chunk aside as a *batch*, for one type, one protocol and one place
//! in the program. The worker gives the next of them its value and sets both handles, which nobody
//! else looks at while it computes. The heap hears of what was *born* when the worker's next call
//! begins: until then nobody else can have got to know of it, for nothing leaves a node but in a
//! call.

use std::any::TypeId;
use std::cell::UnsafeCell;
use std::panic::Location;
use std::ptr::NonNull;

use dhole_model::{CHUNK, Coherence, Oid};
use rustc_hash::FxHashMap;

use crate::share::Share;

/// For which new objects some were set aside.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    ty: TypeId,
    coherence: Coherence,
    /// Where in the program. The compiler may keep several copies of one place; that costs a chunk.
    site: usize,
}

impl Kind {
    #[inline]
    pub(crate) fn of<T: Share>(coherence: Coherence, site: &'static Location<'static>) -> Kind {
        Kind {
            ty: TypeId::of::<T>(),
            coherence,
            site: std::ptr::from_ref(site).addr(),
        }
    }
}

/// Objects of one chunk that were set aside.
pub(crate) struct Batch {
    pub kind: Kind,
    /// The record of the chunk, and its first id.
    pub chunk: usize,
    pub first: Oid,
    /// Of the slots below this one the heap has heard.
    pub heard: usize,
    /// Those below this one have values.
    pub next: usize,
    /// Those below this one have storage.
    pub end: usize,
    pub storage: [u64; CHUNK as usize],
}

/// What is set aside on a node.
#[derive(Default)]
pub(crate) struct Batches {
    pub all: Vec<Batch>,
    pub by_kind: FxHashMap<Kind, usize>,
    /// The batch of the last object.
    last: usize,
    /// The batches of which objects were born since the heap heard of some.
    pub born: Vec<usize>,
    /// Where the store begins, once something was set aside.
    pub base: Option<NonNull<u8>>,
}

/// The nursery of a node.
#[derive(Default)]
pub(crate) struct Nursery(UnsafeCell<Batches>);

// SAFETY: reached by functions alone whose contracts exclude that two threads do so at once. The
// address within is only reckoned with.
unsafe impl Sync for Nursery {}
// SAFETY: as above.
unsafe impl Send for Nursery {}

impl Nursery {
    /// The next object of a kind that was set aside, and where it is to have its value.
    ///
    /// # Safety
    /// The caller borrows the worker's token mutably, so the worker computes. See the
    /// [monitor](crate::monitor). It stores a value of the kind's type there before the worker's
    /// next call.
    #[inline]
    pub(crate) unsafe fn take(&self, kind: &Kind) -> Option<(Oid, NonNull<u8>)> {
        // SAFETY: no other thread reaches the batches while the worker computes, by the contract of
        // `in_call`. So a unique reference is sound; it ends with the call.
        let batches = unsafe { &mut *self.0.get() };
        let last = batches.last;
        let place = match batches.all.get(last) {
            Some(batch) if batch.kind == *kind => last,
            _ => *batches.by_kind.get(kind)?,
        };
        let batch = &mut batches.all[place];
        if batch.next == batch.end {
            return None;
        }
        let slot = batch.next;
        if batch.heard == slot {
            batches.born.push(place);
        }
        batches.last = place;
        batch.next += 1;
        let base = batches.base?;
        // SAFETY: the storage was given by the store that begins there, so it lies within.
        let at = unsafe { base.add(batch.storage[slot] as usize) };
        Some((Oid(batch.first.0 + slot as u64), at))
    }

    /// What is set aside.
    ///
    /// # Safety
    /// The caller has the node lock, the worker is in a call, and no other reference to this lives.
    #[expect(
        clippy::mut_from_ref,
        reason = "the contract says that there is one reference"
    )]
    pub(crate) unsafe fn in_call(&self) -> &mut Batches {
        // SAFETY: the worker takes nothing meanwhile, by the contract of `take`, and the lock
        // excludes all others.
        unsafe { &mut *self.0.get() }
    }
}
