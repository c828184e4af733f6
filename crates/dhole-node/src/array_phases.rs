//! Whole arrays: freed, or kept by another protocol from one phase to the next.

use dhole_heap::{ArrayMiss, MonitorCall};
use dhole_model::Coherence;
use dhole_protocol::{ArrayEvent, Event, UnreadElements};
use smallvec::smallvec;

use crate::array::bind;
use crate::blocks::blocks_of;
use crate::error::{AccessError, Result};
use crate::node::State;
use crate::worker::{Failure, Link, Worker};

impl Worker<'_> {
    /// Tests that all elements of an array are named.
    pub(crate) fn must_be_whole(
        &self,
        doing: &'static str,
        miss: &ArrayMiss,
    ) -> Result<(), AccessError> {
        if miss.elements.range() == (0..miss.len) {
            return Ok(());
        }
        Err(AccessError::PartOfArray {
            doing,
            elements: miss.elements,
            len: miss.len,
            type_name: miss.ty.info().name,
            node: self.node(),
            site: miss.call_site(),
        })
    }

    /// Frees an array, all of whose elements are named.
    pub(crate) fn free_array(&mut self, miss: &ArrayMiss) -> Result<(), AccessError> {
        let (creator, array) = (self.creator(miss.into())?, miss.elements.array);
        let site = miss.call_site();
        let called = self.exclusive(site, |link, call| {
            if let Err(clash) = bind(call, miss, creator) {
                return Ok(Err(clash));
            }
            let cluster = link.node.cluster.clone();
            // Another node may have freed it since the array was bound here.
            if let Some(ids) = cluster.ids_of_array(array) {
                let event = Event::Array(ArrayEvent::Free { ids, site });
                link.local(call, Some(event))?;
                cluster.free_array(array);
                cluster.note_freed(ids, link.node.id, site);
                let name = miss.ty.info().name;
                let state = call.split().1;
                state.counting.of_type(name).freed += 1;
                if state.protocol.has_freed_much() {
                    link.local(call, Some(Event::EndInterval))?;
                }
            }
            Ok(Ok(()))
        });
        self.accessed(miss, called)
    }

    /// Lets an array change protocol, at a barrier.
    pub(crate) fn switch_array(&mut self, miss: &ArrayMiss, to: Coherence) -> Result<()> {
        self.must_be_whole("switching", miss)?;
        self.may_keep_arrays(to, miss.call_site())?;
        let site = miss.call_site();
        let creator = self.creator(miss.into())?;
        let called = self.exclusive(site, |link, call| {
            let unread = match bind(call, miss, creator) {
                Ok(unread) => unread,
                Err(clash) => return Ok(Err(clash)),
            };
            if to.properties().keeps_blocks() && !link.keeps_blocks(call, &unread) {
                // A block has one copy at first, and its elements had several writers: each is
                // fetched from its last one.
                link.switch_array(call, miss, &unread, Coherence::default())?;
                if creator == link.node.id {
                    link.awaits(miss);
                    link.and_wait(call, Event::Array(ArrayEvent::Read(smallvec![unread])))?;
                    link.within_memory(call)?;
                }
            }
            link.switch_array(call, miss, &unread, to).map(Ok)
        });
        match called {
            Ok(Ok(())) => Ok(()),
            Ok(clash) => Ok(self.accessed(miss, Ok(clash))?),
            Err(failure) => Err(self.link.sync_error(*failure, site).into()),
        }
    }
}

impl Link<'_> {
    /// Meets all nodes, and lets an array change protocol.
    fn switch_array(
        &self,
        call: &mut MonitorCall<'_, State>,
        miss: &ArrayMiss,
        unread: &UnreadElements,
        to: Coherence,
    ) -> Result<(), Box<Failure>> {
        let (array, creator, allocated) = (miss.elements, unread.creator, unread.coherence);
        let event = Event::SwitchArray {
            array,
            creator,
            zero_ok: unread.zero_ok,
            to,
            site: miss.call_site(),
        };
        self.and_wait(call, event)?;
        call.split().1.counting.all.barriers += 1;
        let event = ArrayEvent::Switched {
            blocks: blocks_of(call, miss)?,
            creator,
            allocated,
            to,
        };
        self.local(call, Some(Event::Array(event)))
    }
}
