//! How elements of an array are reached: one load and one test for each of a few blocks. Where
//! there are more, one look at what may be touched of the array; everything else is out of line.

use std::ops::RangeBounds;
use std::panic::Location;
use std::ptr::NonNull;

use dhole_model::Elements;
use dhole_space::touch::Found;

use crate::access::MOST_FAULTS;
use crate::{Access, Array, ArrayError, ArrayMiss, ArrayRange, OutOfBounds, Share, Token};

/// The most blocks whose handles are looked at. To look at what may be touched of the array, which
/// takes as long however many blocks there are, is faster then.
const MOST_HANDLES: u64 = 16;

impl Token<'_> {
    /// Where elements are, if all of them may be read.
    #[inline(always)]
    pub(crate) fn readable_elements<T: Share>(&self, r: ArrayRange<T>) -> Option<NonNull<T>> {
        // SAFETY: `in_blocks` asks for blocks of the array, whose ids come from a reference, and is
        // given their handles.
        let in_blocks = unsafe { r.in_blocks(|block| self.readable(block)) };
        in_blocks.or_else(|| self.readable_parts(r))
    }

    /// Where elements are, if all of them may be written.
    #[inline(always)]
    pub(crate) fn writable_elements<T: Share>(&mut self, r: ArrayRange<T>) -> Option<NonNull<T>> {
        // SAFETY: as in `readable_elements`.
        let in_blocks = unsafe { r.in_blocks(|block| self.writable(block)) };
        in_blocks.or_else(|| self.writable_parts(r))
    }

    /// Those of the elements that may be read, range by range.
    pub(crate) fn readable_of<T>(&self, r: ArrayRange<T>) -> Vec<Elements> {
        // SAFETY: the token is borrowed, so nobody changes what may be read.
        unsafe { self.read_extents().parts(r.elements()) }
    }

    #[inline(never)]
    fn readable_parts<T>(&self, r: ArrayRange<T>) -> Option<NonNull<T>> {
        // SAFETY: the token is borrowed, so nobody changes what may be read.
        let base = unsafe { self.read_extents().find(r.elements()) };
        // SAFETY: an array with these elements begins there.
        base.map(|base| unsafe { r.within(base) })
    }

    #[inline(never)]
    fn writable_parts<T>(&mut self, r: ArrayRange<T>) -> Option<NonNull<T>> {
        // SAFETY: the token is borrowed mutably, so nobody changes what may be written.
        let base = unsafe { self.write_extents().find(r.elements()) };
        // SAFETY: an array with these elements begins there.
        base.map(|base| unsafe { r.within(base) })
    }
}

impl<T> ArrayRange<T> {
    /// Where the elements are, if they lie in few blocks and the handles of all of these are set:
    /// blocks of an array follow on each other.
    ///
    /// # Safety
    /// `handle` finds where a block of this array is.
    #[inline(always)]
    pub(crate) unsafe fn in_blocks(
        self,
        mut handle: impl FnMut(dhole_model::Oid) -> Option<Found>,
    ) -> Option<NonNull<T>> {
        if self.is_empty() {
            return Some(NonNull::dangling());
        }
        let first = self.array.block(self.start);
        let last = self.array.block(self.end - 1);
        if last.0 - first.0 >= MOST_HANDLES {
            return None;
        }
        let block = handle(first)?;
        for next in first.0 + 1..last.0 + 1 {
            handle(dhole_model::Oid(next))?;
        }
        let place = self.start % Array::<T>::PER_BLOCK;
        // SAFETY: the caller's promise: the block's elements are there, of which this is one.
        Some(unsafe { block.object().cast::<T>().add(place as usize) })
    }

    /// Where the elements are in an array that begins at `base`.
    ///
    /// # Safety
    /// It does, and has these elements.
    pub(crate) unsafe fn within(self, base: NonNull<u8>) -> NonNull<T> {
        // SAFETY: the caller's promise.
        unsafe { base.cast::<T>().add(self.start as usize) }
    }
}

#[cold]
#[inline(never)]
fn unanswered(miss: &ArrayMiss) -> ! {
    panic!(
        "the engine answered a miss of {} at {} and set no handle",
        miss.elements, miss.site
    )
}

/// What `w` brings, or unwinds with.
fn brought<'id, W: Access<'id>>(w: &W, brought: Result<(), W::Error>) {
    if let Err(error) = brought {
        w.fail(error)
    }
}

impl<T: Share> ArrayRange<T> {
    /// The elements, to read. Fetches those of which this node has no valid copy, all in one
    /// round. Where others of the same page of the array came before from the same node, the rest
    /// of the page is read ahead with them, and further pages where a program goes on; what
    /// somebody is writing is left out.
    ///
    /// An access that cannot be made unwinds to the node's boundary, with an error that names
    /// array and place; [`try_get`](ArrayRange::try_get) returns that error.
    #[inline(always)]
    #[track_caller]
    pub fn get<'w, 'id: 'w, W: Access<'id>>(self, w: &'w W) -> &'w [T] {
        match w.token().readable_elements(self) {
            // SAFETY: the elements were found: they are valid, follow on each other, and are not
            // written while the token is borrowed, through `w` for all of 'w (the contract of
            // `Token::new`).
            Some(at) => unsafe { NonNull::slice_from_raw_parts(at, self.len()).as_ref() },
            None => self.get_slowly(w, self.miss(Location::caller())),
        }
    }

    /// The elements, to write; they count as written in this interval. Fetches those of which
    /// this node has no valid copy; see [`Array::write_all`] for what is overwritten whole.
    ///
    /// An access that cannot be made unwinds to the node's boundary, with an error that names
    /// array and place; [`try_get_mut`](ArrayRange::try_get_mut) returns that error.
    #[inline(always)]
    #[track_caller]
    pub fn get_mut<'w, 'id: 'w, W: Access<'id>>(self, w: &'w mut W) -> &'w mut [T] {
        match w.token_mut().writable_elements(self) {
            // SAFETY: as in `get`; and the token is borrowed mutably for all of 'w, which excludes
            // other references, and all who read or write elements that are writable here.
            Some(at) => unsafe { NonNull::slice_from_raw_parts(at, self.len()).as_mut() },
            None => self.get_mut_slowly(w, self.miss(Location::caller())),
        }
    }

    /// Like [`get`](ArrayRange::get), but returns the error.
    ///
    /// # Errors
    /// Why the elements cannot be had.
    #[track_caller]
    pub fn try_get<'w, 'id: 'w, W: Access<'id>>(self, w: &'w W) -> Result<&'w [T], W::Error> {
        if w.token().readable_elements(self).is_none() {
            w.read_elements(&self.miss(Location::caller()))?;
        }
        Ok(self.get(w))
    }

    /// Like [`get_mut`](ArrayRange::get_mut), but returns the error.
    ///
    /// # Errors
    /// Why the elements cannot be had.
    #[track_caller]
    pub fn try_get_mut<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w mut W,
    ) -> Result<&'w mut [T], W::Error> {
        if w.token_mut().writable_elements(self).is_none() {
            w.write_elements(&self.miss(Location::caller()))?;
        }
        Ok(self.get_mut(w))
    }

    /// Writes `values`, as many as there are elements, over them.
    fn overwrite<'id, W: Access<'id>>(
        self,
        w: &mut W,
        values: &[T],
        site: &'static Location<'static>,
    ) -> Result<(), W::Error>
    where
        T: Copy,
    {
        assert_eq!(self.len(), values.len());
        match w.token_mut().writable_elements(self) {
            // SAFETY: as many elements are there, by the test above, and no other reference to them
            // lives (as in `get_mut`), so `values` are none of them.
            Some(at) => unsafe {
                at.copy_from_nonoverlapping(NonNull::from(values).cast(), self.len());
                Ok(())
            },
            None => w.overwrite_elements(&self.miss(site), values),
        }
    }

    #[cold]
    #[inline(never)]
    fn get_slowly<'w, 'id: 'w, W: Access<'id>>(self, w: &'w W, miss: ArrayMiss) -> &'w [T] {
        brought(w, w.read_elements(&miss));
        match w.token().readable_elements(self) {
            // SAFETY: as in `get`.
            Some(at) => unsafe { NonNull::slice_from_raw_parts(at, self.len()).as_ref() },
            None => unanswered(&miss),
        }
    }

    #[cold]
    #[inline(never)]
    fn get_mut_slowly<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w mut W,
        miss: ArrayMiss,
    ) -> &'w mut [T] {
        for _ in 0..MOST_FAULTS {
            let written = w.write_elements(&miss);
            brought(w, written);
            if w.token_mut().writable_elements(self).is_some() {
                break;
            }
        }
        match w.token_mut().writable_elements(self) {
            // SAFETY: as in `get_mut`.
            Some(at) => unsafe { NonNull::slice_from_raw_parts(at, self.len()).as_mut() },
            None => unanswered(&miss),
        }
    }
}

impl<T: Share> Array<T> {
    /// The elements `range`, to read. See [`ArrayRange::get`].
    ///
    /// # Panics
    /// When there are no such elements, like a slice.
    #[inline(always)]
    #[track_caller]
    pub fn slice<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w W,
        range: impl RangeBounds<usize>,
    ) -> &'w [T] {
        self.range(range).get(w)
    }

    /// The elements `range`, to write; they count as written. See [`ArrayRange::get_mut`].
    ///
    /// # Panics
    /// When there are no such elements, like a slice.
    #[inline(always)]
    #[track_caller]
    pub fn slice_mut<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w mut W,
        range: impl RangeBounds<usize>,
    ) -> &'w mut [T] {
        self.range(range).get_mut(w)
    }

    /// Like [`slice`](Array::slice), but returns the error.
    ///
    /// # Errors
    /// [`ArrayError`]: there are no such elements, or they cannot be had.
    #[track_caller]
    pub fn try_slice<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w W,
        range: impl RangeBounds<usize>,
    ) -> Result<&'w [T], ArrayError<W::Error>> {
        self.try_range(range)?
            .try_get(w)
            .map_err(ArrayError::Access)
    }

    /// Like [`slice_mut`](Array::slice_mut), but returns the error.
    ///
    /// # Errors
    /// [`ArrayError`]: there are no such elements, or they cannot be had.
    #[track_caller]
    pub fn try_slice_mut<'w, 'id: 'w, W: Access<'id>>(
        self,
        w: &'w mut W,
        range: impl RangeBounds<usize>,
    ) -> Result<&'w mut [T], ArrayError<W::Error>> {
        self.try_range(range)?
            .try_get_mut(w)
            .map_err(ArrayError::Access)
    }

    /// Element `i`, to read. Where this node has no valid copy, it fetches those elements of the
    /// block, a page, as well that were written together with it.
    ///
    /// # Panics
    /// When there is no such element, like a slice.
    #[inline(always)]
    #[track_caller]
    pub fn get<'w, 'id: 'w, W: Access<'id>>(self, w: &'w W, i: usize) -> &'w T {
        let one = self.one(i);
        match w.token().readable_elements(one) {
            // SAFETY: as in `ArrayRange::get`.
            Some(at) => unsafe { at.as_ref() },
            None => &one.get_slowly(w, one.miss_of_blocks(Location::caller()))[0],
        }
    }

    /// Element `i`, to write; it counts as written. Many are better written as a slice: each
    /// first write of an element is a call of the runtime.
    ///
    /// # Panics
    /// When there is no such element, like a slice.
    #[inline(always)]
    #[track_caller]
    pub fn get_mut<'w, 'id: 'w, W: Access<'id>>(self, w: &'w mut W, i: usize) -> &'w mut T {
        let one = self.one(i);
        match w.token_mut().writable_elements(one) {
            // SAFETY: as in `ArrayRange::get_mut`.
            Some(mut at) => unsafe { at.as_mut() },
            None => &mut one.get_mut_slowly(w, one.miss_of_blocks(Location::caller()))[0],
        }
    }

    /// Writes `values` over the elements from `start` on. What they were before is not fetched.
    ///
    /// An access that cannot be made unwinds to the node's boundary.
    ///
    /// # Panics
    /// When there are not as many elements, like a slice.
    #[track_caller]
    pub fn write_all<'id, W: Access<'id>>(self, w: &mut W, start: usize, values: &[T])
    where
        T: Copy,
    {
        let range = self.range(start..start.saturating_add(values.len()));
        let written = range.overwrite(w, values, Location::caller());
        brought(w, written);
    }

    /// Like [`write_all`](Array::write_all), but returns the error.
    ///
    /// # Errors
    /// [`ArrayError`]: there are not as many elements, or they cannot be written.
    #[track_caller]
    pub fn try_write_all<'id, W: Access<'id>>(
        self,
        w: &mut W,
        start: usize,
        values: &[T],
    ) -> Result<(), ArrayError<W::Error>>
    where
        T: Copy,
    {
        let range = self.try_range(start..start.saturating_add(values.len()))?;
        let written = range.overwrite(w, values, Location::caller());
        written.map_err(ArrayError::Access)
    }

    #[inline(always)]
    #[track_caller]
    fn one(self, i: usize) -> ArrayRange<T> {
        if i >= self.len() {
            no_element(i, self.len());
        }
        ArrayRange {
            array: self,
            start: i as u64,
            end: i as u64 + 1,
        }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn no_element(i: usize, len: usize) -> ! {
    let error = OutOfBounds {
        len: len as u64,
        start: i as u64,
        end: (i as u64).saturating_add(1),
        site: Location::caller().into(),
    };
    panic!("{error}")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use dhole_model::{NodeId, Oid};

    use super::*;
    use crate::{Cluster, Monitor};

    /// Elements in so many blocks.
    const LONG: u64 = 1000 * Array::<u64>::PER_BLOCK;

    #[test]
    fn a_slice_looks_at_few_handles_however_long_it_is() {
        // SAFETY: nobody looks up its ids.
        let (array, mut block) = (unsafe { Array::<u64>::new(Oid(64), LONG) }, 0_u64);
        let block = std::ptr::from_mut(&mut block).cast();
        for (blocks, looks) in [(1, 1), (2, 2), (16, 16), (17, 0), (1000, 0)] {
            let elements = array.range(..blocks * Array::<u64>::PER_BLOCK as usize);
            let looked = Cell::new(0);
            // SAFETY: nothing is read where the elements are found, and the handle is positive.
            let found = unsafe {
                elements.in_blocks(|_| {
                    looked.set(looked.get() + 1);
                    dhole_space::touch::to_read(block)
                })
            };
            assert_eq!((looked.get(), found.is_some()), (looks, looks > 0));
        }
    }

    #[test]
    fn a_long_slice_is_readable_and_writable_just_where_all_of_it_is() {
        let cluster = Cluster::new(1).expect("room for a node");
        let node = Monitor::new(&cluster, NodeId(0), ());
        let array = node.lock().split().0.alloc_array_with(LONG, |i| i);
        let array = array.expect("memory");
        let all = array.range(..);
        let may = |of: ArrayRange<u64>| {
            let asked = node.lend(|mut token| {
                let read = token.readable_elements(of).is_some();
                (read, token.writable_elements(of).is_some())
            });
            asked.expect("the one worker")
        };
        assert_eq!(may(all), (true, false));
        let written = node.lock().split().0.make_elements_writable(all.elements());
        written.expect("no worker computes");
        assert_eq!(may(all), (true, true));
        let one = Elements::new(array.oid(), LONG / 2..LONG / 2 + 1);
        let mut guard = node.lock();
        guard
            .split()
            .0
            .make_elements_clean(one)
            .expect("it is written");
        drop(guard);
        assert_eq!(may(all), (true, false));
        assert_eq!(may(array.range(..LONG as usize / 2)), (true, true));
        let gone = node.lock().split().0.invalidate_elements(one);
        gone.expect("no worker computes");
        assert_eq!(may(all), (false, false));
        assert_eq!(may(array.range(LONG as usize / 2 + 1..)), (true, true));
    }
}
