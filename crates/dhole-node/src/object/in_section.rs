//! What a section reads and writes: copies of objects and of rows.

use std::any::Any;

use dhole_heap::{HeapMut, Ref, Row, Scalar, Share, copy_of, pack, pack_scalars, unpack_scalars};
use dhole_model::Oid;

use crate::error::Result;
use crate::worker::Worker;

/// What a [`Section`](crate::Section) reads and writes: the object behind a [`Ref`], and the
/// numbers of a [`Row`]. An [`Own`](dhole_heap::Own) is a `Ref` behind a star: `s.get(*own)`.
pub trait InSection: sealed::Copying {}

impl<R: sealed::Copying> InSection for R {}

pub(super) mod sealed {
    use super::{Any, HeapMut, LendsWorker, Oid, Result};

    pub trait Copying: Copy + 'static {
        /// What is lent of a copy.
        type Object: ?Sized;
        /// A copy.
        type Value: Any;

        fn oid(self) -> Oid;
        /// The copy whose bytes these are, if they are.
        fn unpack(self, heap: &HeapMut<'_>, packed: &[u8]) -> Option<Self::Value>;
        /// Copies the object of a worker.
        fn read(self, worker: &mut dyn LendsWorker) -> Result<Self::Value>;
        /// Writes a copy to the object of a worker.
        fn write(self, value: &Self::Value, worker: &mut dyn LendsWorker) -> Result<()>;
        fn pack(value: &Self::Value, out: &mut Vec<u8>);
        fn object(value: &Self::Value) -> &Self::Object;
        fn object_mut(value: &mut Self::Value) -> &mut Self::Object;
    }
}

/// A worker, whatever its brand.
pub trait LendsWorker {
    fn lend(&mut self, f: &mut dyn FnMut(&mut Worker<'_>));
}

impl LendsWorker for Worker<'_> {
    fn lend(&mut self, f: &mut dyn FnMut(&mut Worker<'_>)) {
        f(self);
    }
}

/// What `f` returns of the worker that is lent.
fn with_worker<R>(
    worker: &mut dyn LendsWorker,
    mut f: impl FnMut(&mut Worker<'_>) -> Result<R>,
) -> Result<R> {
    let mut returned = None;
    worker.lend(&mut |w| returned = Some(f(w)));
    returned.expect("the worker is lent once")
}

impl<T: Share> sealed::Copying for Ref<T> {
    type Object = T;
    type Value = T;

    fn oid(self) -> Oid {
        Ref::oid(self)
    }

    fn unpack(self, heap: &HeapMut<'_>, packed: &[u8]) -> Option<T> {
        heap.unpack(packed).ok()
    }

    fn read(self, worker: &mut dyn LendsWorker) -> Result<T> {
        with_worker(worker, |w| Ok(copy_of(self.try_get(w)?)))
    }

    fn write(self, value: &T, worker: &mut dyn LendsWorker) -> Result<()> {
        with_worker(worker, |w| {
            *self.try_get_mut(w)? = copy_of(value);
            Ok(())
        })
    }

    fn pack(value: &T, out: &mut Vec<u8>) {
        pack(value, out);
    }

    fn object(value: &T) -> &T {
        value
    }

    fn object_mut(value: &mut T) -> &mut T {
        value
    }
}

impl<T: Scalar> sealed::Copying for Row<T> {
    type Object = [T];
    type Value = Vec<T>;

    fn oid(self) -> Oid {
        Row::oid(self)
    }

    fn unpack(self, _heap: &HeapMut<'_>, packed: &[u8]) -> Option<Vec<T>> {
        unpack_scalars(packed, self.len())
    }

    fn read(self, worker: &mut dyn LendsWorker) -> Result<Vec<T>> {
        with_worker(worker, |w| Ok(self.try_get(w)?.to_vec()))
    }

    fn write(self, value: &Vec<T>, worker: &mut dyn LendsWorker) -> Result<()> {
        with_worker(worker, |w| {
            self.try_get_mut(w)?.copy_from_slice(value);
            Ok(())
        })
    }

    fn pack(value: &Vec<T>, out: &mut Vec<u8>) {
        pack_scalars(value, out);
    }

    fn object(value: &Vec<T>) -> &[T] {
        value
    }

    fn object_mut(value: &mut Vec<T>) -> &mut [T] {
        value
    }
}
