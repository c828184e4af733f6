//! Allocating objects whose value is made where it lies.

use std::panic::Location;

use dhole_heap::{Ref, Refs, Share};
use dhole_model::{Coherence, OidRange};
use dhole_protocol::Event;

use crate::worker::Worker;

impl Worker<'_> {
    /// Allocates an object on this node that begins as zeros, which `init` changes where they lie.
    /// For types that are larger than a stack, which [`alloc`](Worker::alloc) takes by value: a
    /// thread has 8 MiB, a simulated node 1 MiB (`stack_bytes` of its settings).
    ///
    /// ```
    /// # use dhole_node::{Result, Worker};
    /// # fn example(w: &mut Worker<'_>) -> Result<()> {
    /// let field = w.alloc_with(|field: &mut [[f64; 1024]; 2048]| {
    ///     field[0].fill(1.0); // the upper edge
    /// }); // 16 MiB
    /// assert_eq!(field.get(w)[0][1023] + field.get(w)[1][0], 1.0);
    /// # Ok(()) }
    /// ```
    ///
    /// It is read in place by [`get`](Ref::get) and written in place by [`get_mut`](Ref::get_mut),
    /// and travels whole; `read` and `write` take it by value. An array of numbers that several
    /// nodes write, or of which each reads a part, is better a
    /// [shared array](Worker::alloc_array), which has no such limits.
    ///
    /// `init` must not wait for other nodes: this one answers nobody meanwhile. Fails as
    /// [`alloc`](Worker::alloc), and with [`AllocError::NoZeros`](dhole_heap::AllocError) where
    /// zeros are no value of the type: with a `Ref` in it, a `NonZero`, or an enum without a 0.
    /// Such a value is made in a box, for [`alloc_boxed`](Worker::alloc_boxed).
    #[track_caller]
    pub fn alloc_with<T: Share>(&mut self, init: impl FnOnce(&mut T)) -> Ref<T> {
        self.alloc_with_under(self.link.coherence, init)
    }

    #[track_caller]
    pub(crate) fn alloc_with_under<T: Share>(
        &mut self,
        coherence: Coherence,
        init: impl FnOnce(&mut T),
    ) -> Ref<T> {
        let (site, machine, node) = (Location::caller(), self.link.machine, self.node());
        self.allocate::<T, _>([1, 1, 1], coherence, site, |heap, _| {
            machine.computes(node, true);
            let made = heap.alloc_with(init);
            machine.computes(node, false);
            made.map(|made| (made, Some(allocated(made, coherence))))
        })
    }

    /// Allocates `count` objects on this node, each of which begins as zeros that `init` changes
    /// where they lie, given its place. As [`alloc_range`](Worker::alloc_range), for types that are
    /// larger than a stack; see [`alloc_with`](Worker::alloc_with).
    #[track_caller]
    pub fn alloc_range_with<T: Share>(
        &mut self,
        count: usize,
        init: impl FnMut(usize, &mut T),
    ) -> Refs<T> {
        self.alloc_range_with_under(self.link.coherence, count, init)
    }

    #[track_caller]
    pub(crate) fn alloc_range_with_under<T: Share>(
        &mut self,
        coherence: Coherence,
        count: usize,
        mut init: impl FnMut(usize, &mut T),
    ) -> Refs<T> {
        let (site, machine, node) = (Location::caller(), self.link.machine, self.node());
        self.allocate::<T, _>([count, count, count], coherence, site, |heap, _| {
            machine.computes(node, true);
            let range = heap.alloc_range_with(count as u64, |i, value| init(i as usize, value));
            machine.computes(node, false);
            let range = range?;
            let event = |range| Event::Allocated { range, coherence };
            Ok((range, range.oids().map(event)))
        })
    }

    /// Allocates an object on this node of the value in a box, without its passing the stack. Fails
    /// as [`alloc`](Worker::alloc).
    ///
    /// ```
    /// # use dhole_node::{Result, Worker};
    /// # fn example(w: &mut Worker<'_>) -> Result<()> {
    /// let numbers: Vec<u64> = (0..2 << 20).collect();
    /// let numbers: Box<[u64; 2 << 20]> = numbers.into_boxed_slice().try_into().unwrap();
    /// let numbers = w.alloc_boxed(numbers); // 16 MiB
    /// assert_eq!(numbers.get(w)[1_000_000], 1_000_000);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn alloc_boxed<T: Share>(&mut self, value: Box<T>) -> Ref<T> {
        self.alloc_boxed_under(self.link.coherence, value)
    }

    #[track_caller]
    pub(crate) fn alloc_boxed_under<T: Share>(
        &mut self,
        coherence: Coherence,
        value: Box<T>,
    ) -> Ref<T> {
        self.allocate::<T, _>([1, 1, 1], coherence, Location::caller(), |heap, _| {
            let made = heap.alloc_boxed(value)?;
            Ok((made, Some(allocated(made, coherence))))
        })
    }
}

/// An object that is stored here.
fn allocated<T>(made: Ref<T>, coherence: Coherence) -> Event {
    let range = OidRange::one(made.oid());
    Event::Allocated { range, coherence }
}
