//! A vector that all nodes extend together.

use std::marker::PhantomData;
use std::ops::Range;

use dhole_heap::{Access, Array, ArrayError, ArrayRange, Scalar};
use dhole_model::{CallSite, Counted, NodeId};
use dhole_node::Worker;
use serde::{Deserialize, Serialize};

use super::VecError;

type Vectored<T> = Result<T, VecError>;

/// The first chunk has so many elements, and each further one twice as many as the one before.
const FIRST: usize = 512;

/// A vector of numbers that grows by what all nodes add at once: as chunks of shared arrays, each
/// twice as long as the one before. Every node may read and write all elements, as those of an
/// [`Array`].
///
/// ```
/// use dhole::Config;
/// use dhole::collections::DistVec;
///
/// let run = Config::nodes(3).run(|w| {
///     let mut found = DistVec::<u32>::new();
///     for round in 0..4 {
///         let me = w.node().index() as u32;
///         // Each node adds what it has found: in this round `me` numbers.
///         let mine: Vec<u32> = (0..me).map(|it| 100 * round + 10 * me + it).collect();
///         let places = found.extend(w, &mine)?;
///         assert_eq!(found.copy(w, places)?, mine);
///     }
///     w.barrier()?; // what the others have added is visible
///     Ok(found.copy(w, 3..6)?)
/// })?;
/// assert_eq!(run.value, [110, 120, 121]);
/// # Ok::<(), dhole::RunError>(())
/// ```
///
/// - The elements that a call of [`extend`](DistVec::extend) adds are in the order of the nodes.
/// - Each node has the whole handle, which takes 16 bytes for each chunk; it is cloned, and travels
///   by value. A clone does not grow with the other.
/// - Up to half of the elements' storage is not used yet. Storage that was never touched takes no
///   memory.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct DistVec<T: Scalar> {
    len: usize,
    chunks: Vec<Array<T>>,
}

impl<T: Scalar> Clone for DistVec<T> {
    fn clone(&self) -> DistVec<T> {
        DistVec {
            len: self.len,
            chunks: self.chunks.clone(),
        }
    }
}

impl<T: Scalar> Default for DistVec<T> {
    fn default() -> DistVec<T> {
        DistVec::new()
    }
}

impl<T: Scalar> std::fmt::Debug for DistVec<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let elements = Counted(self.len as u64, "element", "elements");
        write!(f, "DistVec({elements})")
    }
}

impl<T: Scalar> DistVec<T> {
    /// An empty vector. Every node makes its own handle of it, without a message.
    pub fn new() -> DistVec<T> {
        DistVec {
            len: 0,
            chunks: Vec::new(),
        }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds elements at the end, those of node 0 first. Every node calls it, with what it has,
    /// perhaps nothing. Returns the places of the own elements.
    ///
    /// It takes an [`all_gather`](Worker::all_gather), which is a barrier; a call that needs
    /// another chunk takes a [`broadcast`](Worker::broadcast) too. It fetches nothing. The elements
    /// that other nodes add are visible after the next barrier, or the next call.
    ///
    /// # Errors
    /// [`VecError::Differ`], on all nodes, where they extend different vectors: one has missed a
    /// call; [`VecError::TooLong`]; as [`all_gather`](Worker::all_gather).
    #[track_caller]
    pub fn extend(&mut self, w: &mut Worker<'_>, mine: &[T]) -> Vectored<Range<usize>> {
        let (node, site) = (w.node(), CallSite::caller());
        let first = self.chunks.first().map(|chunk| chunk.oid().0);
        // Where the types differ it is another collective.
        let all = w.all_gather((self.len, first, mine.len(), PhantomData::<T>))?;
        for (from, (len, other, ..)) in all.iter().enumerate() {
            if (*len, *other) != (self.len, first) {
                return Err(VecError::Differ {
                    node,
                    site,
                    len: self.len,
                    other: NodeId::at(from),
                    its_len: *len,
                });
            }
        }
        let lens = all.iter().map(|(_, _, len, _)| *len);
        let added = lens.clone().try_fold(self.len, usize::checked_add);
        // So are all places of the last chunk.
        let len = added.filter(|len| *len <= usize::MAX / 4);
        let len = len.ok_or(VecError::TooLong { node, site })?;
        let chunks = chunks(len);
        if chunks > self.chunks.len() {
            let mut more = Vec::new();
            if node == NodeId(0) {
                let new = self.chunks.len()..chunks;
                more = new.map(|chunk| w.alloc_array(FIRST << chunk)).collect();
            }
            self.chunks.extend(w.broadcast::<Vec<Array<T>>>(more)?);
        }
        let begins = self.len + lens.take(node.index()).sum::<usize>();
        self.len = len;
        let places = begins..begins + mine.len();
        self.write(w, begins, mine)?;
        Ok(places)
    }

    /// An element. As [`Array::get`].
    ///
    /// # Panics
    /// When there is no such element, like a slice, with the line of the caller.
    #[inline]
    #[track_caller]
    pub fn get<'w, 'id: 'w, A: Access<'id>>(&self, w: &'w A, place: usize) -> &'w T {
        if place >= self.len {
            no_element(place, self.len);
        }
        let (chunk, place) = chunk_of(place);
        self.chunks[chunk].get(w, place)
    }

    /// An element, to write. As [`Array::get_mut`].
    ///
    /// # Panics
    /// When there is no such element, like a slice, with the line of the caller.
    #[inline]
    #[track_caller]
    pub fn get_mut<'w, 'id: 'w, A: Access<'id>>(&self, w: &'w mut A, place: usize) -> &'w mut T {
        if place >= self.len {
            no_element(place, self.len);
        }
        let (chunk, place) = chunk_of(place);
        self.chunks[chunk].get_mut(w, place)
    }

    /// These elements, to read: as slices that follow on each other, one for each chunk. They are
    /// fetched in one round.
    ///
    /// # Errors
    /// [`VecError::OutOfBounds`] if there are no such elements, [`VecError::Access`] if they cannot
    /// be had.
    #[track_caller]
    pub fn slices<'w>(&self, w: &'w Worker<'_>, places: Range<usize>) -> Vectored<Vec<&'w [T]>> {
        self.check(w, &places)?;
        let parts: Vec<_> = self.parts(places).collect();
        w.prefetch(&parts)?;
        let slices = parts.into_iter().map(|part| Ok(part.try_get(w)?));
        slices.collect()
    }

    /// A copy of these elements. As [`slices`](DistVec::slices).
    ///
    /// # Errors
    /// As [`slices`](DistVec::slices).
    #[track_caller]
    pub fn copy(&self, w: &Worker<'_>, places: Range<usize>) -> Vectored<Vec<T>> {
        Ok(self.slices(w, places)?.concat())
    }

    /// Writes `values` over the elements from this place on. What they were before is not fetched.
    ///
    /// # Errors
    /// [`VecError::OutOfBounds`] if there are not as many elements, [`VecError::Access`] if they
    /// cannot be written.
    #[track_caller]
    pub fn write(&self, w: &mut Worker<'_>, begins: usize, values: &[T]) -> Vectored<()> {
        let places = begins..begins.saturating_add(values.len());
        self.check(w, &places)?;
        let mut values = values;
        for part in self.parts(places) {
            let (here, behind) = values.split_at(part.len());
            let begins = part.places().start;
            part.array()
                .try_write_all(w, begins, here)
                .map_err(accessed)?;
            values = behind;
        }
        Ok(())
    }

    /// Frees the vector. One node calls it, when no node uses the vector any more.
    ///
    /// # Errors
    /// [`VecError::Access`] if it was freed before.
    #[track_caller]
    pub fn free(self, w: &mut Worker<'_>) -> Vectored<()> {
        Ok(w.free(self.chunks)?)
    }

    #[track_caller]
    fn check(&self, w: &Worker<'_>, places: &Range<usize>) -> Vectored<()> {
        if places.start <= places.end && places.end <= self.len {
            return Ok(());
        }
        Err(VecError::OutOfBounds {
            places: places.clone(),
            len: self.len,
            node: w.node(),
            site: CallSite::caller(),
        })
    }

    /// The parts of the chunks that these elements are.
    fn parts(&self, places: Range<usize>) -> impl Iterator<Item = ArrayRange<T>> {
        let chunks = self.chunks.iter().enumerate();
        chunks.filter_map(move |(number, chunk)| {
            let first = first_of(number);
            let begins = places.start.max(first) - first;
            let ends = places.end.clamp(first, first + chunk.len()) - first;
            (begins < ends).then(|| chunk.range(begins..ends))
        })
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn no_element(place: usize, len: usize) -> ! {
    let (site, all) = (
        CallSite::caller(),
        Counted(len as u64, "element", "elements"),
    );
    panic!("element {place} of a vector of {all} at {site}: there is no such element")
}

fn accessed(error: ArrayError<dhole_node::AccessError>) -> VecError {
    match error {
        ArrayError::Access(cause) => cause.into(),
        // The parts lie within their chunks.
        cause => panic!("{cause}"),
    }
}

/// The chunk that an element is in, and its place there.
#[inline]
fn chunk_of(place: usize) -> (usize, usize) {
    let chunk = (place / FIRST + 1).ilog2() as usize;
    (chunk, place - first_of(chunk))
}

/// The first element of a chunk.
#[inline]
fn first_of(chunk: usize) -> usize {
    FIRST * ((1 << chunk) - 1)
}

/// How many chunks so many elements take.
fn chunks(len: usize) -> usize {
    len.checked_sub(1).map_or(0, |last| chunk_of(last).0 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_chunks_follow_on_each_other() {
        let mut expected = (0, 0);
        for place in 0..20_000 {
            assert_eq!(chunk_of(place), expected, "{place}");
            assert_eq!(chunks(place + 1), expected.0 + 1);
            expected.1 += 1;
            if expected.1 == FIRST << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert_eq!(chunks(0), 0);
    }
}
