//! Updates of elements on their way from the worker to the elements.

use dhole_heap::{ArrayMiss, Combinable, Combines, Combining, MonitorCall, Operator};
use dhole_model::Elements;
use dhole_protocol::{ArrayEvent, Event, LockId, UnreadElements, UpdateBatch};

use crate::array::bind;
use crate::blocks::blocks_of;
use crate::error::AccessError;
use crate::gathered::{Part, UpdatedArray};
use crate::machine::Fiber;
use crate::node::State;
use crate::paged::asked_for;
use crate::step::not_stored;
use crate::waits::Awaited;
use crate::worker::{Failure, Link, Worker};

impl<'id> Combines<'id> for Worker<'id> {
    fn combine_elements<T: Combinable>(
        &mut self,
        all: &ArrayMiss,
        operator: Operator,
        updates: (&[usize], &[T]),
    ) -> Result<(), AccessError> {
        let (oid, node, site) = (all.elements.array, self.node(), all.call_site());
        if self.link.fiber != Fiber::PROGRAM {
            return Err(AccessError::NotCombined {
                oid,
                node,
                site,
                why: "the program alone sends updates, and this is a process",
            });
        }
        // Pages have no owners, and those of a run that survives losses may be lost.
        let may_have_owners = !self.is_paged() && !self.link.survives();
        let creator = self.creator(all.into())?;
        let combining = Combining::of::<T>(operator).number();
        let called = self.exclusive(all.site, |link, call| {
            let unread = match bind(call, all, creator) {
                Ok(unread) => unread,
                Err(clash) => return Ok(Err(clash)),
            };
            if updates.0.is_empty() {
                return Ok(Ok(()));
            }
            if call.split().1.gathered.is_full(oid, combining) {
                link.combine_gathered(call)?;
            }
            let per_block = blocks_of(call, all)?.per_block;
            let state = call.split().1;
            let coherence = unread.coherence;
            let of = UpdatedArray {
                all: all.clone(),
                per_block,
                has_owners: may_have_owners && state.protocol.has_owners(oid, coherence),
                unread,
            };
            let batch = UpdateBatch {
                array: oid,
                creator,
                coherence,
                combining,
                site,
                updates: Vec::new(),
            };
            state.gathered.add(of, (batch, operator), updates);
            Ok(Ok(()))
        });
        self.accessed(all, called)
    }
}

/// Of a block with more updated elements than these, all from the first to the last are brought.
const MOST_SINGLE: usize = 32;

impl Link<'_> {
    /// Combines elements with what the worker has gathered, and takes the updates of other nodes
    /// that waited until it synchronises.
    pub(crate) fn combine_gathered(
        &self,
        call: &mut MonitorCall<'_, State>,
    ) -> Result<(), Box<Failure>> {
        // A process may synchronise while the program waits under the lock of an array.
        if self.fiber == Fiber::PROGRAM && !call.split().1.gathered.is_empty() {
            let awaited = self.awaited.take();
            for part in call.split().1.gathered.take() {
                match part {
                    Part::Owners(of, batches) => {
                        let event = Event::Combine(batches);
                        self.flush_before(call, Some(&event))?;
                        self.awaits(Awaited::updates(&of.all));
                        self.begin(call, event)?;
                    }
                    Part::Locked(of, batch) => self.combine_locked(call, &of, &batch)?,
                }
            }
            self.awaits(awaited);
        }
        if call.split().1.protocol.has_updates() {
            self.local(call, Some(Event::TakeUpdates))?;
        }
        Ok(())
    }

    /// Combines elements without owners, as this node's own writes under the lock of the array.
    fn combine_locked(
        &self,
        call: &mut MonitorCall<'_, State>,
        of: &UpdatedArray,
        batch: &UpdateBatch,
    ) -> Result<(), Box<Failure>> {
        let (lock, site) = (LockId::of_updates(batch.array), batch.site);
        let acquire = Event::Acquire { lock, site };
        self.flush_before(call, Some(&acquire))?;
        self.awaits(Awaited::updates(&of.all));
        self.begin(call, acquire)?;
        let written = self.write_updates(call, of, batch);
        // An error leaves the lock to the others.
        let released = self.local(call, Some(Event::Release { lock }));
        written.and(released)
    }

    /// Brings elements here, and writes what they are with the updates.
    fn write_updates(
        &self,
        call: &mut MonitorCall<'_, State>,
        of: &UpdatedArray,
        batch: &UpdateBatch,
    ) -> Result<(), Box<Failure>> {
        let array = batch.array;
        let on_pages = self.coherence.properties().keeps_pages();
        let by_blocks = !on_pages && self.keeps_blocks(call, &of.unread);
        if !on_pages && !by_blocks {
            self.read_updated(call, of, &batch.updates)?;
        }
        call.split().1.faulted = false;
        let follow = |one: &(u64, u64), next: &(u64, u64)| one.0 + 1 == next.0;
        for run in batch.updates.chunk_by(follow) {
            let (miss, unread) = of.part(run);
            if on_pages {
                let asked = asked_for(unread.zero_ok, unread.creator);
                self.bring_elements_on_pages(call, &miss, asked)?;
            } else if by_blocks {
                self.bring_blocks(call, &miss, &unread, true)?;
            } else {
                while !call.split().0.has_elements(miss.elements) {
                    self.awaits(&miss);
                    let read = [unread].into_iter().collect();
                    self.and_wait(call, Event::Array(ArrayEvent::Read(read)))?;
                }
                let write = ArrayEvent::Write {
                    elements: miss.elements,
                    site: batch.site,
                };
                self.local(call, Some(Event::Array(write)))?;
            }
            let mut heap = call.split().0;
            let combined = heap.combine_elements(array, batch.combining, run);
            combined.map_err(|refused| not_stored(array, &refused))?;
        }
        self.within_memory(call)
    }

    /// Makes elements readable that are to be combined with updates, in one round.
    fn read_updated(
        &self,
        call: &mut MonitorCall<'_, State>,
        of: &UpdatedArray,
        updates: &[(u64, u64)],
    ) -> Result<(), Box<Failure>> {
        let per_block = of.per_block;
        let mut absent = Vec::new();
        for of_block in updates.chunk_by(|one, next| one.0 / per_block == next.0 / per_block) {
            let heap = call.split().0;
            let mut parts = Vec::new();
            let follow = |one: &(u64, u64), next: &(u64, u64)| one.0 + 1 == next.0;
            let runs = of_block.chunk_by(follow).map(|run| of.part(run).1);
            parts.extend(runs.filter(|part| !heap.has_elements(part.elements)));
            match parts.len() > MOST_SINGLE {
                true => absent.push(of.part(of_block).1),
                false => absent.append(&mut parts),
            }
        }
        if absent.is_empty() {
            return Ok(());
        }
        self.awaits(&of.all);
        let read = absent.into_iter().collect();
        self.and_wait(call, Event::Array(ArrayEvent::Read(read)))?;
        Ok(())
    }
}

impl UpdatedArray {
    /// The elements from the first update to the last.
    fn part(&self, updates: &[(u64, u64)]) -> (ArrayMiss, UnreadElements) {
        let first = updates.first().map_or(0, |(place, _)| *place);
        let end = updates.last().map_or(0, |(place, _)| *place + 1);
        let elements = Elements::new(self.all.elements.array, first..end);
        let miss = ArrayMiss {
            elements,
            within: elements,
            ..self.all.clone()
        };
        let unread = UnreadElements {
            elements,
            within: elements,
            ahead: None,
            ..self.unread
        };
        (miss, unread)
    }
}
