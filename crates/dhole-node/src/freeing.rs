//! Freeing objects.

use std::panic::Location;

use dhole_heap::{Miss, Name, Names};
use dhole_model::{CallSite, OidRange};
use dhole_protocol::Event;

use crate::error::AccessError;
use crate::worker::Worker;

impl Worker<'_> {
    /// Frees objects: references, ranges, rows, whole arrays, or slices and tuples of these, each
    /// object once.
    /// Any node may free what it has references to. Their storage goes back here at once, and on
    /// every other node when it hears of it, as of a write: after the next barrier at the latest.
    /// Accessing a freed object is an error on every node that knows; what races with the freeing
    /// is a race. References to freed objects may stay where they are.
    ///
    /// ```
    /// # use dhole_node::{AccessError, Result, Worker};
    /// # fn example(w: &mut Worker<'_>) -> Result<()> {
    /// let list = w.once(|w| Ok(w.alloc_range(100, |i| i)))?;
    /// if w.node().index() == 0 {
    ///     w.free(list)?;
    /// }
    /// w.barrier()?;
    /// let error = list.at(7).try_get(w).unwrap_err();
    /// assert!(matches!(error, AccessError::Freed { .. }));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`AccessError::Freed`] when one of them is freed already, [`AccessError::Foreign`] and
    /// [`AccessError::Type`] as for an access; those named before it are freed then.
    /// [`AccessError::PartOfArray`] for some elements of an array; then nothing is freed.
    #[track_caller]
    pub fn free(&mut self, what: impl Names) -> Result<(), AccessError> {
        let site = Location::caller();
        let (mut ranges, mut first): (Vec<OidRange>, Vec<Miss>) = (Vec::new(), Vec::new());
        let mut arrays = Vec::new();
        what.each(site, &mut |name| match name {
            Name::Object(miss) => {
                match first.last() {
                    Some(first) if first.ty != miss.ty => ranges.push(OidRange::one(miss.oid)),
                    _ => OidRange::push(&mut ranges, miss.oid),
                }
                if ranges.len() > first.len() {
                    first.push(miss);
                }
            }
            Name::Elements(miss) => arrays.push(miss),
        });
        let mut all = arrays.iter();
        all.try_for_each(|miss| self.must_be_whole("freeing", miss))?;
        let mut all = ranges.into_iter().zip(&first);
        all.try_for_each(|(range, miss)| self.free_range(range, miss, site.into()))?;
        let mut all = arrays.iter();
        all.try_for_each(|miss| self.free_array(miss))
    }

    /// Frees objects of one type with consecutive ids, of which `miss` is an access to the first.
    fn free_range(
        &mut self,
        range: OidRange,
        miss: &Miss,
        site: CallSite,
    ) -> Result<(), AccessError> {
        self.locate(miss)?;
        let called = self.exclusive(site, |link, call| {
            let mut heap = call.split().0;
            if let Err(clash) = heap.bind(miss) {
                return Ok(Err(clash));
            }
            let all = heap.cluster().with_rest(range);
            link.local(call, Some(Event::Free { range: all, site }))?;
            let (heap, state) = call.split();
            heap.cluster().free(all);
            heap.cluster().note_freed(all, heap.node(), site);
            state.counting.of_type(miss.ty.info().name).freed += u64::from(range.count);
            if state.protocol.has_freed_much() {
                link.local(call, Some(Event::EndInterval))?;
            }
            Ok(Ok(()))
        });
        self.accessed(miss, called)
    }
}
