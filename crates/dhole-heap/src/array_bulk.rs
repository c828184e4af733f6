//! Elements of an array by their indices: in any order, repeated, on any nodes.

use std::ops::Range;
use std::panic::Location;
use std::ptr::NonNull;

use dhole_model::Elements;

use crate::bad_indices::BadIndices;
use crate::{
    Access, Array, ArrayError, ArrayMiss, ArrayRange, Bits, Combinable, Combines, Operator, Share,
};

/// Of a block with more missed elements than these, all from the first to the last are brought.
const MOST_SINGLE: usize = 32;

impl<T: Share + Copy> Array<T> {
    /// Copies of the elements `indices`, in the order of the indices. An index may be repeated.
    ///
    /// Fetches those elements of which this node has no valid copy: each node that has some is
    /// asked once, all at the same time, for up to 256 ranges; for more in further rounds. Of a
    /// page of the array of which more than 32 elements are missed, the node fetches all from the
    /// first of these to the last, and those around that were written together with them. What it
    /// fetches stays here, so a second `gather` costs no message until another node writes.
    ///
    /// It reads as [`ArrayRange::get`] does, under each protocol: an element that its owner is
    /// writing is waited for. Under TreadMarks the node brings the pages one after the other.
    ///
    /// An access that cannot be made unwinds to the node's boundary, with an error that names
    /// array and place; [`try_gather`](Array::try_gather) returns that error.
    ///
    /// # Panics
    /// When there is no such element, like a slice.
    #[track_caller]
    pub fn gather<'id, W: Access<'id>>(self, w: &W, indices: &[usize]) -> Vec<T> {
        let site = Location::caller();
        if let Err(bad) = self.check_indices(indices, site) {
            panic!("{bad}")
        }
        match self.gather_from(w, indices, site) {
            Ok(values) => values,
            Err(error) => w.fail(error),
        }
    }

    /// Like [`gather`](Array::gather), but returns the error.
    ///
    /// # Errors
    /// [`ArrayError`]: there is no such element, or elements cannot be had.
    #[track_caller]
    pub fn try_gather<'id, W: Access<'id>>(
        self,
        w: &W,
        indices: &[usize],
    ) -> Result<Vec<T>, ArrayError<W::Error>> {
        let site = Location::caller();
        self.check_indices(indices, site)?;
        let values = self.gather_from(w, indices, site);
        values.map_err(ArrayError::Access)
    }

    /// Copies of elements, which exist.
    fn gather_from<'id, W: Access<'id>>(
        self,
        w: &W,
        indices: &[usize],
        site: &'static Location<'static>,
    ) -> Result<Vec<T>, W::Error> {
        let mut all = self.whole().look(w);
        if all.is_none() {
            let absent = self.absent(w, indices);
            if !absent.is_empty() {
                w.read_all_elements(&self.misses(&absent, site))?;
            }
            all = self.whole().look(w);
        }
        if let Some(all) = all {
            return Ok(indices.iter().map(|i| all[*i]).collect());
        }
        // What came first may be gone again where a protocol of the program's took it away.
        let value = |i: &usize| match self.element(*i).look(w) {
            Some(element) => Ok(element[0]),
            None => {
                let element = self.element(*i);
                w.read_elements(&element.miss(site))?;
                Ok(element.get(w)[0])
            }
        };
        indices.iter().map(value).collect()
    }

    /// Writes `values` over the elements `indices`: the `i`-th value over the element that the
    /// `i`-th index names. Where an index is repeated the last of its values stays. What the
    /// elements were before is not fetched.
    ///
    /// It writes as [`Array::write_all`] does: the elements count as written in this interval.
    /// Under lazy, update and home a node sends nothing before it synchronises. A protocol that
    /// the program brings fetches blocks, and TreadMarks pages, for both write these as wholes.
    ///
    /// # Errors
    /// [`ArrayError`]: there is no such element, there are not as many values as indices, or
    /// elements cannot be written. If indices or lengths are wrong, nothing is written.
    #[track_caller]
    pub fn scatter<'id, W: Access<'id>>(
        self,
        w: &mut W,
        indices: &[usize],
        values: &[T],
    ) -> Result<(), ArrayError<W::Error>> {
        let site = Location::caller();
        self.check_lengths(indices, values, site)?;
        self.check_indices(indices, site)?;
        if let Some(all) = self.whole().look_mut(w) {
            let each = indices.iter().zip(values);
            each.for_each(|(i, value)| all[*i] = *value);
            return Ok(());
        }
        let mut absent = Vec::new();
        for (position, (i, value)) in indices.iter().zip(values).enumerate() {
            match self.element(*i).look_mut(w) {
                Some(element) => element[0] = *value,
                None => absent.push((*i as u64, position)),
            }
        }
        let absent = last_of_each(absent, self.len() as u64);
        let written: Vec<T> = absent
            .iter()
            .map(|(_, position)| values[*position])
            .collect();
        let absent: Vec<u64> = absent.into_iter().map(|(i, _)| i).collect();
        let misses: Vec<ArrayMiss> = runs(&absent).map(|run| self.miss_of(run, site)).collect();
        let overwritten = w.overwrite_all_elements(&misses, &written);
        overwritten.map_err(ArrayError::Access)
    }
}

impl<T: Combinable> Array<T> {
    /// Adds values to elements: the `i`-th value to the element that the `i`-th index names. An
    /// index may be repeated. Integers wrap.
    ///
    /// No value comes back, and no element is fetched. The node gathers the updates, and adds up
    /// those of one element; a sum of 0 goes nowhere. When it synchronises (at a barrier, a lock, a
    /// collective, an operation, the end of the run) it sends each *owner*, the last writer of
    /// elements, one message with all of them, at most 2^16 updates each. Before the
    /// synchronisation goes on the owner has added them, and told the node so. An owner does that
    /// at once while its worker waits to synchronise, and otherwise when its worker synchronises
    /// next. So a reader sees the sums once it has synchronised with the node that added, and the
    /// elements of before until then. Updates of several nodes do not race, whatever their order. A
    /// plain write of such an element by another node, without a synchronisation between, does.
    ///
    /// The order in which nodes' updates are added is not fixed: sums of floating point may differ
    /// in their last bits.
    ///
    /// | protocol | |
    /// |---|---|
    /// | lazy, update | as above; under update the owner pushes the sums as any other write |
    /// | home, a protocol of the program, TreadMarks; any run that survives losses | no owner |
    ///
    /// Without an owner the node combines the elements itself. When it synchronises it acquires a
    /// lock of the array, fetches the elements that it lacks, and writes them. In a run that has
    /// lost a node, the call that synchronises fails as a lock does.
    ///
    /// An owner combines at no other call than one that synchronises: what a node reads of an
    /// element stays the same until then.
    ///
    /// # Errors
    /// [`ArrayError`]: there is no such element, or there are not as many values as indices; or
    /// the caller is a process. Then nothing is added.
    #[track_caller]
    pub fn add_all<'id, W: Combines<'id>>(
        self,
        w: &mut W,
        indices: &[usize],
        values: &[T],
    ) -> Result<(), ArrayError<W::Error>> {
        self.combine_all(w, Operator::Add, (indices, values), Location::caller())
    }

    /// Lowers elements to values that are smaller; otherwise as [`add_all`](Array::add_all). A
    /// float that is no number counts as none.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn min_all<'id, W: Combines<'id>>(
        self,
        w: &mut W,
        indices: &[usize],
        values: &[T],
    ) -> Result<(), ArrayError<W::Error>> {
        self.combine_all(w, Operator::Min, (indices, values), Location::caller())
    }

    /// Raises elements to values that are larger; otherwise as [`min_all`](Array::min_all).
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn max_all<'id, W: Combines<'id>>(
        self,
        w: &mut W,
        indices: &[usize],
        values: &[T],
    ) -> Result<(), ArrayError<W::Error>> {
        self.combine_all(w, Operator::Max, (indices, values), Location::caller())
    }

    /// Sets the bits of values in elements; otherwise as [`add_all`](Array::add_all).
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn or_all<'id, W: Combines<'id>>(
        self,
        w: &mut W,
        indices: &[usize],
        values: &[T],
    ) -> Result<(), ArrayError<W::Error>>
    where
        T: Bits,
    {
        self.combine_all(w, Operator::Or, (indices, values), Location::caller())
    }

    fn combine_all<'id, W: Combines<'id>>(
        self,
        w: &mut W,
        operator: Operator,
        (indices, values): (&[usize], &[T]),
        site: &'static Location<'static>,
    ) -> Result<(), ArrayError<W::Error>> {
        self.check_lengths(indices, values, site)?;
        self.check_indices(indices, site)?;
        let all = self.whole().miss(site);
        let combined = w.combine_elements(&all, operator, (indices, values));
        combined.map_err(ArrayError::Access)
    }
}

impl<T: Share> Array<T> {
    fn check_indices(
        self,
        indices: &[usize],
        site: &'static Location<'static>,
    ) -> Result<(), BadIndices> {
        let beyond = indices.iter().position(|i| *i >= self.len());
        beyond.map_or(Ok(()), |position| {
            Err(BadIndices::NoElement {
                position: position as u64,
                indices: indices.len() as u64,
                index: indices[position] as u64,
                len: self.len() as u64,
                site: site.into(),
            })
        })
    }

    fn check_lengths(
        self,
        indices: &[usize],
        values: &[T],
        site: &'static Location<'static>,
    ) -> Result<(), BadIndices> {
        if indices.len() == values.len() {
            return Ok(());
        }
        Err(BadIndices::Lengths {
            indices: indices.len() as u64,
            values: values.len() as u64,
            site: site.into(),
        })
    }

    /// Those of the elements that may not be read here, in ascending order.
    fn absent<'id, W: Access<'id>>(self, w: &W, indices: &[usize]) -> Vec<u64> {
        let len = self.len() as u64;
        let mut places = ascending(indices.iter().map(|i| *i as u64).collect(), len);
        if !are_many(indices.len(), len, 1) {
            places.retain(|i| self.element(*i as usize).look(w).is_none());
            return places;
        }
        // To go through what may be read is faster than to look for each.
        let [Some(first), Some(last)] = [places.first(), places.last()] else {
            return places;
        };
        let parts = w.token().readable_of(self.places(*first..last + 1));
        let (mut parts, mut part) = (parts.into_iter(), 0..0);
        places.retain(|i| {
            while part.end <= *i {
                match parts.next() {
                    Some(next) => part = next.range(),
                    None => return true,
                }
            }
            !part.contains(i)
        });
        places
    }

    fn whole(self) -> ArrayRange<T> {
        self.places(0..self.len() as u64)
    }

    /// Element `i`, which exists.
    fn element(self, i: usize) -> ArrayRange<T> {
        self.places(i as u64..i as u64 + 1)
    }

    fn places(self, Range { start, end }: Range<u64>) -> ArrayRange<T> {
        let array = self;
        ArrayRange { array, start, end }
    }

    fn miss_of(self, places: Range<u64>, site: &'static Location<'static>) -> ArrayMiss {
        self.places(places).miss(site)
    }

    /// Accesses that bring these elements, which are in ascending order.
    fn misses(self, absent: &[u64], site: &'static Location<'static>) -> Vec<ArrayMiss> {
        let block = Self::PER_BLOCK;
        let mut misses = Vec::<ArrayMiss>::new();
        // Where the last block ended from which all were taken.
        let mut taken_to = None;
        for of_block in absent.chunk_by(|a, b| a / block == b / block) {
            if of_block.len() <= MOST_SINGLE {
                misses.extend(runs(of_block).map(|run| self.miss_of(run, site)));
                continue;
            }
            let (first, end) = (of_block[0], of_block[of_block.len() - 1] + 1);
            let (start, after) = (first / block * block, end.next_multiple_of(block));
            let after = after.min(self.len() as u64);
            match misses.last_mut() {
                Some(last) if taken_to == Some(start) => {
                    let (from, within) = (last.elements.first, last.within.first);
                    last.elements = Elements::new(self.oid(), from..end);
                    last.within = Elements::new(self.oid(), within..after);
                }
                _ => misses.push(self.places(first..end).miss_of_blocks(site)),
            }
            taken_to = Some(after);
        }
        misses
    }
}

impl<T: Share> ArrayRange<T> {
    /// The elements, if all of them may be read here.
    #[inline]
    fn look<'w, 'id: 'w, W: Access<'id>>(self, w: &'w W) -> Option<&'w [T]> {
        let at = w.token().readable_elements(self)?;
        // SAFETY: the elements were found: they are valid, follow on each other, and are not
        // written while the token is borrowed, through `w` for all of 'w (the contract of
        // `Token::new`).
        Some(unsafe { NonNull::slice_from_raw_parts(at, self.len()).as_ref() })
    }

    /// The elements, if all of them may be written here.
    #[inline]
    fn look_mut<'w, 'id: 'w, W: Access<'id>>(self, w: &'w mut W) -> Option<&'w mut [T]> {
        let at = w.token_mut().writable_elements(self)?;
        // SAFETY: as in `look`; and the token is borrowed mutably for all of 'w, which excludes
        // other references, and all who read or write elements that are writable here.
        Some(unsafe { NonNull::slice_from_raw_parts(at, self.len()).as_mut() })
    }
}

/// Whether so many indices of an array are sorted faster by a mark for each element.
fn are_many(indices: usize, len: u64, bytes_a_mark: usize) -> bool {
    indices as u64 >= len / 512 * bytes_a_mark as u64
}

/// The places in ascending order, each once.
fn ascending(mut places: Vec<u64>, len: u64) -> Vec<u64> {
    if !are_many(places.len(), len, 1) {
        places.sort_unstable();
        places.dedup();
        return places;
    }
    let mut marks = vec![false; len as usize];
    places.iter().for_each(|i| marks[*i as usize] = true);
    places.clear();
    let marked = (0..len).zip(marks).filter(|(_, mark)| *mark);
    places.extend(marked.map(|(i, _)| i));
    places
}

/// Of places and positions, the last position of each place; places in ascending order.
fn last_of_each(mut places: Vec<(u64, usize)>, len: u64) -> Vec<(u64, usize)> {
    if !are_many(places.len(), len, size_of::<usize>()) {
        places.sort_unstable();
        places.reverse();
        places.dedup_by_key(|(i, _)| *i);
        places.reverse();
        return places;
    }
    let mut last = vec![usize::MAX; len as usize];
    let each = places.iter();
    each.for_each(|(i, position)| last[*i as usize] = *position);
    let of_each = (0..len).zip(last);
    of_each
        .filter(|(_, position)| *position != usize::MAX)
        .collect()
}

/// What follows on each other, as ranges.
fn runs(ascending: &[u64]) -> impl Iterator<Item = Range<u64>> {
    let follow = |a: &u64, b: &u64| a + 1 == *b;
    ascending
        .chunk_by(follow)
        .map(|run| run[0]..run[run.len() - 1] + 1)
}

#[cfg(test)]
mod tests {
    use dhole_model::Oid;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn indices_are_sorted_alike_however_many_they_are(
            indices in prop::collection::vec(0_u64..60, 0..80),
        ) {
            let mut sorted = indices.clone();
            sorted.sort_unstable();
            sorted.dedup();
            // Beside a long array these are few.
            for len in [60, 1 << 40] {
                prop_assert_eq!(&ascending(indices.clone(), len), &sorted);
                let placed: Vec<_> = indices.iter().copied().zip(0..).collect();
                let last = last_of_each(placed, len);
                let expected = sorted.iter().map(|i| {
                    (*i, indices.iter().rposition(|other| other == i).expect("it is one"))
                });
                prop_assert_eq!(last, expected.collect::<Vec<_>>());
            }
        }

        #[test]
        fn the_accesses_of_a_gather_name_each_missed_element(
            indices in prop::collection::vec(0_u64..5_000, 0..700),
        ) {
            // SAFETY: its ids are looked up by no test.
            let array = unsafe { Array::<u64>::new(Oid(64), 5_000) };
            let absent = ascending(indices, 5_000);
            let misses = array.misses(&absent, Location::caller());
            let names = |miss: &ArrayMiss, i: u64| miss.elements.range().contains(&i);
            for i in &absent {
                prop_assert_eq!(misses.iter().filter(|miss| names(miss, *i)).count(), 1);
            }
            for miss in &misses {
                prop_assert!(miss.within.range().end <= 5_000);
                prop_assert!(miss.within.first <= miss.elements.first);
                prop_assert!(miss.elements.range().end <= miss.within.range().end);
            }
        }
    }
}
