//! Arrays: from a miss of elements down to the protocol.

use std::panic::Location;

use dhole_heap::{Array, Array2, ArrayMiss, BindError, HeapMut, MonitorCall, Scalar, Share};
use dhole_model::{Coherence, Elements, NodeId};
use dhole_protocol::{ArrayBlocks, ArrayEvent, Event, ReadAhead, UnreadElements, Wanted};
use smallvec::{SmallVec, smallvec};

use crate::error::AccessError;
use crate::node::State;
use crate::step::not_stored;
use crate::worker::Worker;

impl Worker<'_> {
    /// Allocates an array of `len` zeros. Its elements are stored where they are touched. Fails
    /// as [`alloc`](Worker::alloc).
    #[track_caller]
    pub fn alloc_array<T: Scalar>(&mut self, len: usize) -> Array<T> {
        const { Array::<T>::ELEMENTS_FIT };
        self.alloc_array_under(self.link.coherence, len)
    }

    #[track_caller]
    pub(crate) fn alloc_array_under<T: Scalar>(
        &mut self,
        coherence: Coherence,
        len: usize,
    ) -> Array<T> {
        self.must_keep_arrays(coherence, Location::caller().into());
        let blocks = Array::<T>::blocks(len as u64) as usize;
        self.allocate::<T, _>([1, 0, blocks], coherence, Location::caller(), |heap, _| {
            let array = heap.alloc_array(len as u64)?;
            let is_stored = coherence.properties().has_home && len > 0;
            if is_stored {
                heap.store_array(array)?;
            }
            Ok((array, is_stored.then(|| allocated(array, coherence))))
        })
    }

    /// Allocates an array of `rows` times `columns` zeros, as
    /// [`alloc_array`](Worker::alloc_array).
    #[track_caller]
    pub fn alloc_array2<T: Scalar>(&mut self, rows: usize, columns: usize) -> Array2<T> {
        self.alloc_array2_under(self.link.coherence, rows, columns)
    }

    #[track_caller]
    pub(crate) fn alloc_array2_under<T: Scalar>(
        &mut self,
        coherence: Coherence,
        rows: usize,
        columns: usize,
    ) -> Array2<T> {
        let array = self.alloc_array_under(coherence, rows.saturating_mul(columns));
        Array2::of_rows(array, rows, columns)
    }

    /// Allocates an array of `len` elements on this node, the `i`-th of which is `init(i)`; `init`
    /// must not wait for other nodes. Fails as [`alloc`](Worker::alloc).
    #[track_caller]
    pub fn alloc_array_with<T: Share>(
        &mut self,
        len: usize,
        init: impl FnMut(usize) -> T,
    ) -> Array<T> {
        const { Array::<T>::ELEMENTS_FIT };
        self.alloc_array_with_under(self.link.coherence, len, init)
    }

    #[track_caller]
    pub(crate) fn alloc_array_with_under<T: Share>(
        &mut self,
        coherence: Coherence,
        len: usize,
        mut init: impl FnMut(usize) -> T,
    ) -> Array<T> {
        let (site, machine, node) = (Location::caller(), self.link.machine, self.node());
        self.must_keep_arrays(coherence, site.into());
        let blocks = Array::<T>::blocks(len as u64) as usize;
        self.allocate::<T, _>([1, len, blocks], coherence, site, |heap, _| {
            machine.computes(node, true);
            let array = heap.alloc_array_with(len as u64, |i| init(i as usize));
            machine.computes(node, false);
            let array = array?;
            let stored = (len > 0).then(|| allocated(array, coherence));
            Ok((array, stored))
        })
    }

    /// Makes elements readable here, in one round: `ahead`, with those around that are worth it.
    pub(crate) fn bring_elements(
        &self,
        absent: &[ArrayMiss],
        ahead: bool,
    ) -> Result<(), AccessError> {
        let Some(mut named) = absent.first() else {
            return Ok(());
        };
        if self.is_paged() {
            return absent
                .iter()
                .try_for_each(|miss| self.read_elements_on_pages(miss));
        }
        let creators = absent.iter().map(|miss| self.creator(miss.into()));
        let creators = creators.collect::<Result<SmallVec<[NodeId; 1]>, _>>()?;
        let called = self.shared(named.site, |link, call| {
            let mut all = SmallVec::new();
            let mut of_blocks = SmallVec::<[_; 1]>::new();
            for (miss, creator) in absent.iter().zip(creators) {
                match bind(call, miss, creator) {
                    Ok(unread) if link.keeps_blocks(call, &unread) => {
                        of_blocks.push((miss, unread))
                    }
                    Ok(mut unread) => {
                        if !ahead {
                            unread.ahead = None;
                        }
                        if !link.brings_elements_there(call, miss, &unread)? {
                            all.push(unread);
                        }
                    }
                    Err(clash) => {
                        named = miss;
                        return Ok(Err(clash));
                    }
                }
            }
            if !all.is_empty() {
                link.awaits(named);
                link.and_wait(call, Event::Array(ArrayEvent::Read(all)))?;
            }
            for (miss, unread) in &of_blocks {
                link.bring_blocks(call, miss, unread, false)?;
            }
            link.within_memory(call).map(Ok)
        });
        self.accessed(named, called)
    }

    /// Makes elements writable here.
    pub(crate) fn bring_elements_to_write(&mut self, miss: &ArrayMiss) -> Result<(), AccessError> {
        if self.is_paged() {
            return self.write_elements_on_pages::<u8>(miss, None);
        }
        let creator = self.creator(miss.into())?;
        let called = self.exclusive(miss.site, |link, call| {
            call.split().1.faulted = false;
            let mut unread = match bind(call, miss, creator) {
                Ok(unread) => unread,
                Err(clash) => return Ok(Err(clash)),
            };
            if link.keeps_blocks(call, &unread) {
                return link.bring_blocks(call, miss, &unread, true).map(Ok);
            }
            // Whether what lies around is written too is not known; its owner may go on with it.
            unread.ahead = None;
            let is_here = call.split().0.has_elements(miss.elements);
            if !is_here && !link.brings_elements_there(call, miss, &unread)? {
                let event = Event::Array(ArrayEvent::Read(smallvec![unread]));
                link.awaits(miss);
                link.and_wait(call, event)?;
                link.within_memory(call)?;
            }
            let event = Event::Array(ArrayEvent::Write {
                elements: miss.elements,
                site: miss.call_site(),
            });
            link.local(call, Some(event)).map(Ok)
        });
        self.accessed(miss, called)
    }

    /// Writes `values` over the elements of one array that `misses` name one after the other.
    pub(crate) fn overwrite<T: Share + Copy>(
        &mut self,
        misses: &[ArrayMiss],
        values: &[T],
    ) -> Result<(), AccessError> {
        let Some(first) = misses.first() else {
            return Ok(());
        };
        let mut values = values;
        let mut each = misses.iter().map(|miss| {
            let (these, rest) = values.split_at(miss.elements.count as usize);
            values = rest;
            (miss, these)
        });
        if self.is_paged() {
            return each
                .try_for_each(|(miss, these)| self.write_elements_on_pages(miss, Some(these)));
        }
        let creator = self.creator(first.into())?;
        let called = self.exclusive(first.site, |link, call| {
            call.split().1.faulted = false;
            let unread = match bind(call, first, creator) {
                Ok(unread) => unread,
                Err(clash) => return Ok(Err(clash)),
            };
            let (coherence, by_blocks) = (unread.coherence, link.keeps_blocks(call, &unread));
            if !by_blocks {
                // Requests that waited are answered first, from what is here now.
                link.local(call, None)?;
            }
            for (miss, these) in each {
                let elements = miss.elements;
                if by_blocks {
                    // A block is written as a whole.
                    link.bring_blocks(call, miss, &unread, true)?;
                }
                let written = call.split().0.overwrite_elements(elements, these);
                written.map_err(|refused| not_stored(elements.array, &refused))?;
                if by_blocks {
                    continue;
                }
                let event = Event::Array(ArrayEvent::Overwrite {
                    elements,
                    creator,
                    coherence,
                    site: miss.call_site(),
                });
                link.local(call, Some(event))?;
            }
            link.within_memory(call).map(Ok)
        });
        self.accessed(first, called)
    }
}

/// A new array of which all elements are stored here, on the node that allocated it.
fn allocated<T>(array: Array<T>, coherence: Coherence) -> Event {
    let blocks = ArrayBlocks {
        array: array.oid(),
        len: array.len() as u64,
        per_block: Array::<T>::PER_BLOCK,
    };
    Event::Array(ArrayEvent::Allocated { blocks, coherence })
}

/// The most blocks of an array, of a page each, that come with a miss.
const MOST_BLOCKS_AHEAD: u64 = 64;

/// Tests that an array is what the access takes it for, and looks up what else there is to know.
pub(crate) fn bind(
    call: &mut MonitorCall<'_, State>,
    miss: &ArrayMiss,
    creator: NodeId,
) -> Result<UnreadElements, BindError> {
    let (mut heap, state) = call.split();
    let bound = heap.bind_array(miss)?;
    let block = bound.per_block();
    Ok(UnreadElements {
        elements: miss.elements,
        within: miss.within,
        creator,
        zero_ok: bound.zeros,
        coherence: bound.coherence,
        ahead: state.graphs.learns().then_some(ReadAhead {
            block,
            most: block * MOST_BLOCKS_AHEAD,
            least: 1,
            share: ReadAhead::QUARTER,
            first: 0,
            end: bound.len,
        }),
    })
}

impl State {
    /// Counts what is asked for.
    pub(crate) fn count_elements(&mut self, wanted: &[Wanted<Elements>], heap: &HeapMut<'_>) {
        self.counting.all.misses += wanted.len() as u64;
        let arrays = wanted.iter().map(|wanted| wanted.region.array);
        for info in arrays.filter_map(|array| heap.type_of_array(array)) {
            self.counting.of_type(info.name).misses += 1;
        }
    }
}
