//! Writing objects as wholes, without a fetch of what they were.

use dhole_heap::Miss;
use dhole_protocol::{Event, Unread};

use crate::access::bind;
use crate::error::AccessError;
use crate::step::not_stored;
use crate::worker::Worker;

impl Worker<'_> {
    /// Puts values in the place of those of the objects of which this node has no valid copy, and
    /// makes them writable, in one call. `values` are their bytes, one after the other. Objects
    /// that must be fetched to be written are left as they are.
    pub(crate) fn put(&mut self, misses: &[Miss], values: &[u8]) -> Result<(), AccessError> {
        let Some(mut named) = misses.first() else {
            return Ok(());
        };
        if self.is_paged() {
            return Ok(());
        }
        let unread = misses.iter().map(|miss| self.locate(miss));
        let unread = unread.collect::<Result<Vec<Unread>, _>>()?;
        let called = self.exclusive(named.site, |link, call| {
            call.split().1.faulted = false;
            // Requests that waited are answered first, from what is here now.
            link.local(call, None)?;
            let mut values = values;
            for (miss, unread) in misses.iter().zip(unread) {
                let oid = miss.oid;
                let unread = match bind(call, miss, unread) {
                    Ok(unread) => unread,
                    Err(clash) => {
                        named = miss;
                        return Ok(Err(clash));
                    }
                };
                let (value, rest) = values.split_at(miss.ty.info().packed_size);
                values = rest;
                let (mut heap, state) = call.split();
                if heap.is_present(oid) || !state.protocol.may_overwrite(&unread) {
                    continue;
                }
                state.protocol.check_not_freed(oid)?;
                let put = heap.install(oid, value);
                put.map_err(|refused| not_stored(oid, &refused))?;
                link.local(call, Some(Event::Overwrite(unread)))?;
                link.make_present_writable(call, miss)?;
            }
            link.within_memory(call).map(Ok)
        });
        self.accessed(named, called)
    }
}
