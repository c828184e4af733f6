//! Objects that stay published while this node alone writes them: they are behind the gates of
//! their chunks.
//!
//! The heap knows of each object whether it is behind the gate. While the gate is shut such an
//! object is clean, and its write handle is [gated](touch::gated): the worker's first write of one
//! is a call, which opens the gate. Then all of them are writable, until the gate is shut.

use dhole_model::{CHUNK, Oid, Version};
use dhole_space::gate::Gate;
use dhole_space::{IDS_OF_GATES, OwnPublications, touch};

use crate::heap::{Heap, Place};
use crate::neighbour::word_of;
use crate::published::Published;
use crate::{HeapMut, ObjectRefusal, ObjectRefused, Presence};

impl Heap {
    /// Where neighbours see the objects themselves, and not copies.
    fn mapped(&self) -> Option<&OwnPublications> {
        self.published.as_ref().and_then(Published::mapped)
    }

    fn gate(&self, oid: Oid) -> Option<&Gate> {
        self.mapped()?.records.gate(self.cluster.record_of(oid))
    }

    /// A chunk is forgotten: gives the memory of its gate back, if nothing is left of all chunks
    /// that have theirs in the same page.
    pub(crate) fn release_gates(&mut self, oid: Oid) {
        let page = self.cluster.record_of(oid) / IDS_OF_GATES;
        if !self.gate_pages.contains(&page) {
            return;
        }
        let first = self.cluster.first_id() + page * IDS_OF_GATES;
        let mut chunks = (0..IDS_OF_GATES).step_by(CHUNK as usize);
        if chunks.any(|id| self.place(Oid(first + id)).is_some()) {
            return;
        }
        self.gate_pages.remove(&page);
        if let Some(own) = self.mapped() {
            own.records.release_gates(page);
        }
    }
}

impl HeapMut<'_> {
    /// Keeps an object that the worker may write behind the gate of its chunk from now on, and
    /// shuts the gate: neighbours read the object there in this version, until the gate
    /// is [opened](HeapMut::open_gate). Whether it can be: neighbours must see the object itself.
    ///
    /// # Errors
    /// [`ObjectRefusal::Presence`] while the worker computes.
    pub fn put_behind_gate(&mut self, oid: Oid, version: Version) -> Result<bool, ObjectRefused> {
        self.in_call("putting behind a gate", oid)?;
        self.heap.pre_images.forget(oid);
        let heap = &mut *self.heap;
        let (Some(at), Some(own)) = (heap.place(oid), heap.mapped()) else {
            return Ok(false);
        };
        let record = own.records.record(heap.cluster.record_of(oid));
        let record = record.filter(|it| !it.is_published());
        let Some((record, gate)) = record.zip(heap.gate(oid)) else {
            return Ok(false);
        };
        let chunk = &heap.chunks[at.chunk];
        let is_written = heap.views.is_none() && chunk.is_writable(at.slot);
        let storage = chunk.storage(at.slot).filter(|_| is_written);
        let Some((storage, place)) = storage.and_then(|storage| {
            let place = own.seen(storage, chunk.binding.bytes())?;
            Some((storage, place))
        }) else {
            return Ok(false);
        };
        let object = heap.store.pointer(storage).as_ptr();
        // SAFETY: the worker may write the object, and does so no longer: it is in a call. What
        // `gated` makes of an address leads there once the gate is open.
        unsafe { heap.write.set(oid, touch::gated(object)) };
        record.publish_gated(place, word_of(version));
        gate.shut();
        heap.chunks[at.chunk].put_behind_gate(at.slot);
        let page = heap.cluster.record_of(oid) / IDS_OF_GATES;
        heap.gate_pages.insert(page);
        Ok(true)
    }

    /// Whether an object is behind the gate of its chunk, be it open or shut.
    #[inline]
    pub fn is_behind_gate(&self, oid: Oid) -> bool {
        let at = self.heap.place(oid);
        at.is_some_and(|at| self.heap.chunks[at.chunk].is_gated(at.slot))
    }

    /// Opens the gate of an object's chunk: the worker may write what is behind it, but for what
    /// neighbours may have read there since the last time. `read` is called with each of these,
    /// which stay as they are.
    ///
    /// # Errors
    /// [`ObjectRefusal::Presence`] outside of an exclusive call.
    pub fn open_gate(&mut self, oid: Oid, mut read: impl FnMut(Oid)) -> Result<(), ObjectRefused> {
        self.exclusive("opening a gate", oid)?;
        let heap = &mut *self.heap;
        let Some((at, gate)) = heap.place(oid).zip(heap.gate(oid)) else {
            return Ok(());
        };
        let marks = gate.open();
        let first = Oid(oid.0 - at.slot as u64);
        let of = |slot: usize| Oid(first.0 + slot as u64);
        let [opened, marked] = heap.chunks[at.chunk].open_gate(marks);
        for slot in slots(opened) {
            let oid = of(slot);
            if let Some(handle) = heap.write.load(oid) {
                // SAFETY: the worker may write what the gated handle of an object that is behind
                // an open gate leads to; it is a call.
                unsafe { heap.write.set(oid, touch::ungated(handle.as_ptr())) };
            }
        }
        slots(marked).map(of).for_each(&mut read);
        Ok(())
    }

    /// Shuts the gate of the chunk of which this is an object: what is behind it is clean.
    ///
    /// # Errors
    /// [`ObjectRefusal::Presence`] while the worker computes.
    pub fn shut_gate(&mut self, oid: Oid) -> Result<(), ObjectRefused> {
        self.in_call("shutting a gate", oid)?;
        let heap = &mut *self.heap;
        let Some(Place { chunk, slot }) = heap.place(oid) else {
            return Ok(());
        };
        let shut = heap.chunks[chunk].shut_gate();
        for slot_of in slots(shut) {
            let oid = Oid(oid.0 - slot as u64 + slot_of as u64);
            if let Some(handle) = heap.write.load(oid) {
                // SAFETY: it is a call, so the worker does not write the object. The handle leads
                // to the object again once its gate is open.
                unsafe { heap.write.set(oid, touch::gated(handle.as_ptr())) };
            }
        }
        if let Some(gate) = heap.gate(oid) {
            gate.shut();
        }
        Ok(())
    }

    fn in_call(&self, operation: &'static str, oid: Oid) -> Result<(), ObjectRefused> {
        match self.presence() {
            Presence::Computing => {
                let refusal = ObjectRefusal::Presence(Presence::Computing);
                Err(self.refuse(operation, oid, refusal))
            }
            _ => Ok(()),
        }
    }
}

/// The slots of which these are the bits.
fn slots(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let slot = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (slot < CHUNK as usize).then_some(slot)
    })
}

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests {
    use std::panic::Location;
    use std::sync::Arc;

    use dhole_model::OidRange;

    use super::*;
    use crate::neighbour::tests::{OWNER, nodes, version};
    use crate::{Cluster, Miss, Monitor, Ref};

    fn with<R>(node: &Monitor<()>, f: impl FnOnce(&mut HeapMut<'_>) -> R) -> R {
        f(&mut node.lock().split().0)
    }

    /// Objects of one chunk that are behind its gate, of which the reader knows.
    fn gated<const N: usize>([owner, reader]: &[Monitor<()>; 2]) -> [Ref<u64>; N] {
        let refs: [Ref<u64>; N] = with(owner, |heap| {
            let all = heap.alloc_range(N as u64, |i| i).unwrap();
            let refs = std::array::from_fn(|i| all.at(i));
            for object in refs {
                let oid = object.oid();
                heap.make_writable(oid, false).unwrap();
                assert!(heap.put_behind_gate(oid, version(3)).unwrap());
                assert!(heap.is_behind_gate(oid) && !heap.is_writable(oid));
            }
            refs
        });
        with(reader, |heap| {
            for object in refs {
                heap.make_room(object.oid()).unwrap();
            }
        });
        refs
    }

    /// A one-sided read of an object with this value; whether it was whole.
    fn reads(reader: &Monitor<()>, object: Ref<u64>, value: u64) -> bool {
        with(reader, |heap| {
            let Some(found) = heap.look_there(OWNER, object.oid()) else {
                return false;
            };
            let is_whole = heap.copy_there(&found) && heap.still_there(&found);
            assert_eq!(found.version(), version(3));
            assert_eq!(heap.heap.there, value.to_ne_bytes());
            is_whole
        })
    }

    /// The objects that an opening finds read.
    fn opened(owner: &Monitor<()>, object: Ref<u64>) -> Vec<Oid> {
        let mut read = Vec::new();
        with(owner, |heap| {
            heap.open_gate(object.oid(), |oid| read.push(oid))
        })
        .unwrap();
        read
    }

    #[test]
    fn what_is_read_behind_a_gate_is_found_and_the_others_become_writable() {
        let nodes = nodes();
        let [owner, reader] = &nodes;
        let refs: [Ref<u64>; 3] = gated(&nodes);
        assert!(reads(reader, refs[1], 1));
        assert_eq!(opened(owner, refs[0]), [refs[1].oid()]);
        let state = |object: Ref<u64>| {
            with(owner, |heap| {
                let oid = object.oid();
                [heap.is_writable(oid), heap.is_behind_gate(oid)]
            })
        };
        let states = refs.map(state);
        assert_eq!(states, [[true, true], [false, true], [true, true]]);
        let lent = owner.lend(|mut token| {
            *token.get_mut(refs[0]).unwrap() = 10;
            *token.get_mut(refs[2]).unwrap() = 12;
            assert!(token.get_mut(refs[1]).is_err());
            let miss = Miss::of(refs[1], Location::caller());
            assert!(!token.note_write(&miss), "a call opens the gate");
            assert!(!refs.iter().any(|object| reads(reader, *object, 0)));
            with(owner, |heap| {
                assert!(heap.shut_gate(refs[0].oid()).is_err());
                assert!(heap.open_gate(refs[0].oid(), |_| ()).is_err());
            });
            owner.exclusive_call(&mut token, |call| {
                let mut heap = call.split().0;
                heap.unpublish(refs[1].oid());
                heap.make_clean(refs[1].oid()).unwrap();
                heap.publish(refs[1].oid(), version(3));
                heap.shut_gate(refs[0].oid()).unwrap();
            });
            assert!(refs.iter().all(|object| token.get_mut(*object).is_err()));
            assert_eq!(*token.get(refs[2]).unwrap(), 12);
        });
        lent.unwrap();
        assert_eq!(refs.map(state), [[false, true], [false; 2], [false, true]]);
        assert!(reads(reader, refs[0], 10) && reads(reader, refs[2], 12));
        // The one that left is read by its own record, and no mark is there for it.
        assert!(reads(reader, refs[1], 1));
        assert_eq!(opened(owner, refs[0]), [refs[0].oid(), refs[2].oid()]);
    }

    #[test]
    fn behind_a_shut_gate_an_object_is_withdrawn_while_the_worker_computes() {
        let nodes = nodes();
        let [owner, _] = &nodes;
        let refs: [Ref<u64>; 2] = gated(&nodes);
        let lent = owner.lend(|mut token| {
            let oid = refs[0].oid();
            let mut bytes = Vec::new();
            assert_eq!(with(owner, |heap| heap.gather(oid, &mut bytes)), Ok(8));
            assert!(with(owner, |heap| heap.withdraw(oid)));
            assert!(!with(owner, |heap| heap.is_behind_gate(oid)));
            assert!(token.get_mut(refs[0]).is_err());
            owner.exclusive_call(&mut token, |call| {
                call.split().0.open_gate(refs[1].oid(), |_| ()).unwrap();
            });
            assert!(token.get_mut(refs[0]).is_err());
            *token.get_mut(refs[1]).unwrap() = 7;
            assert!(!with(owner, |heap| heap.withdraw(refs[1].oid())));
        });
        lent.unwrap();
    }

    #[test]
    fn a_read_is_not_whole_if_anything_behind_the_gate_may_have_changed_meanwhile() {
        type Change = (&'static str, fn(&mut HeapMut<'_>, Oid));
        let changes: [Change; 4] = [
            ("opening", |heap, oid| {
                heap.open_gate(oid, |_| ()).unwrap();
                heap.shut_gate(oid).unwrap();
            }),
            ("writing", |heap, oid| {
                heap.make_writable(oid, false).unwrap()
            }),
            ("invalidation", |heap, oid| heap.invalidate(oid).unwrap()),
            ("freeing", |heap, oid| {
                heap.free(OidRange::one(oid)).unwrap()
            }),
        ];
        for (what, change) in changes {
            let nodes = nodes();
            let [owner, reader] = &nodes;
            let [object] = gated(&nodes);
            let oid = object.oid();
            let found = with(reader, |heap| heap.look_there(OWNER, oid));
            let found = found.expect("its gate is shut");
            with(owner, |heap| change(heap, oid));
            assert!(!with(reader, |heap| heap.still_there(&found)), "{what}");
        }
    }

    #[test]
    fn what_neighbours_do_not_see_has_no_gate() {
        let cluster = Cluster::new(2).expect("room for two nodes");
        let node = Monitor::new(&cluster, OWNER, ());
        with(&node, |heap| {
            let oid = heap.alloc(5_u64).unwrap().oid();
            heap.make_writable(oid, false).unwrap();
            assert!(!heap.put_behind_gate(oid, version(1)).unwrap());
            assert!(heap.is_writable(oid) && !heap.is_behind_gate(oid));
        });
    }

    /// A process can write anything into the gates of its neighbours: then more is announced.
    #[test]
    fn whatever_a_neighbour_writes_into_a_gate_its_owner_goes_on() {
        let nodes = nodes();
        let [owner, _] = &nodes;
        let refs: [Ref<u64>; 2] = gated(&nodes);
        let gate_of = |heap: &mut HeapMut<'_>| {
            let cluster: Arc<Cluster> = Arc::clone(&heap.heap.cluster);
            let id = cluster.record_of(refs[0].oid());
            let seen = cluster.seen(OWNER).expect("it is seen").records.clone();
            (seen, id)
        };
        let (records, id) = with(&nodes[1], gate_of);
        for round in 0..4 {
            let gate = records.gate(id).expect("within the table");
            match round {
                0 => drop(gate.open()),
                1 => gate.shut(),
                2 => (0..64).for_each(|slot| gate.mark(slot)),
                _ => (0..3).for_each(|_| {
                    gate.open();
                    gate.shut();
                }),
            }
            let read = opened(owner, refs[0]);
            assert_eq!(read.len(), if round == 2 { 2 } else { 0 });
            with(owner, |heap| heap.shut_gate(refs[0].oid())).unwrap();
        }
    }

    #[test]
    fn the_memory_of_gates_is_given_back() {
        let nodes = nodes();
        let [owner, _] = &nodes;
        let (mut shut, mut freed) = (Vec::new(), Vec::new());
        with(owner, |heap| {
            // Some 49,000 ids, with 16,384 among them whose gates fill a page.
            for _ in 0..12 {
                let range = heap.alloc_range(4096, |i| i).unwrap().oids().unwrap();
                heap.make_writable(range.first, false).unwrap();
                assert!(heap.put_behind_gate(range.first, version(1)).unwrap());
                shut.push(heap.heap.cluster.record_of(range.first));
                freed.push(range);
            }
            let is_shut = |heap: &HeapMut<'_>, id: u64| {
                let records = &heap.heap.mapped().unwrap().records;
                records.gate(id).unwrap().is_shut()
            };
            assert!(shut.iter().all(|id| is_shut(heap, *id)));
            for range in freed {
                heap.free(range).unwrap();
            }
            let left = shut.iter().filter(|id| is_shut(heap, **id)).count();
            assert!(left < 12 - 4, "{left} are left");
        });
    }
}
