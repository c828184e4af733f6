//! Updates of elements on their way from the worker to the owners.

use dhole_heap::{ArrayMiss, Combinable, Combines, Combining, MonitorCall, Operator};
use dhole_protocol::{Event, UpdateBatch};

use crate::array::bind;
use crate::error::AccessError;
use crate::machine::Fiber;
use crate::node::State;
use crate::worker::{Failure, Link, Worker};

impl<'id> Combines<'id> for Worker<'id> {
    fn combine_elements<T: Combinable>(
        &mut self,
        all: &ArrayMiss,
        operator: Operator,
        updates: (&[usize], &[T]),
    ) -> Result<(), AccessError> {
        let (oid, node, site) = (all.elements.array, self.node(), all.call_site());
        let refused = |why| AccessError::NotCombined {
            oid,
            node,
            site,
            why,
        };
        if self.link.fiber != Fiber::PROGRAM {
            return Err(refused(
                "the program alone sends updates, and this is a process",
            ));
        }
        if self.link.survives() {
            return Err(refused(
                "a run that survives losses has no owners of elements",
            ));
        }
        if self.is_paged() {
            return Err(refused(NO_OWNERS));
        }
        let creator = self.creator(all.into())?;
        let combining = Combining::of::<T>(operator).number();
        let mut has_owners = true;
        let called = self.exclusive(all.site, |link, call| {
            let unread = match bind(call, all, creator) {
                Ok(unread) => unread,
                Err(clash) => return Ok(Err(clash)),
            };
            let coherence = unread.coherence;
            has_owners = call.split().1.protocol.has_owners(oid, coherence);
            if !has_owners || updates.0.is_empty() {
                return Ok(Ok(()));
            }
            if call.split().1.gathered.is_full(oid, combining) {
                link.combine_gathered(call)?;
            }
            let batch = UpdateBatch {
                array: oid,
                creator,
                coherence,
                combining,
                site,
                updates: Vec::new(),
            };
            let state = call.split().1;
            state.gathered.add((batch, all.len, operator), updates);
            Ok(Ok(()))
        });
        self.accessed(all, called)?;
        match has_owners {
            true => Ok(()),
            false => Err(refused(NO_OWNERS)),
        }
    }
}

const NO_OWNERS: &str = "elements have owners under lazy and update alone: write them under a \
                         lock, or allocate the array under one of these (w.under(Coherence::Lazy))";

impl Link<'_> {
    /// Lets the owners of elements combine them with what the worker has gathered, and takes the
    /// updates of other nodes that waited until it synchronises.
    pub(crate) fn combine_gathered(
        &self,
        call: &mut MonitorCall<'_, State>,
    ) -> Result<(), Box<Failure>> {
        if !call.split().1.gathered.is_empty() {
            let awaited = self.awaited.take();
            for part in call.split().1.gathered.take() {
                self.awaits(awaited);
                self.and_wait(call, Event::Combine(part))?;
            }
            self.awaits(awaited);
        }
        if call.split().1.protocol.has_updates() {
            self.local(call, Some(Event::TakeUpdates))?;
        }
        Ok(())
    }
}
