//! What else can be fetched, or written, with an object that the worker touches.

use dhole_heap::HeapMut;
use dhole_model::{CallSite, Oid};
use dhole_protocol::Races;

use crate::node::State;
use crate::optimisations::WriteDetection;

impl State {
    /// The worker misses an object: it gets its place, in the order of first access, and the
    /// protocol is told what else could be fetched with it.
    pub fn look_beside(&mut self, missed: Oid, heap: &mut HeapMut<'_>) {
        // Where there is no room, storing the object will say so.
        let has_place = heap.make_room(missed).is_ok();
        if has_place && self.optimisations.read_aggregation && self.nodes > 1 {
            let absent = heap.beside(missed).filter(|(_, is_present)| !is_present);
            absent.for_each(|(oid, _)| self.protocol.lies_beside(oid));
        }
    }

    /// The worker writes a clean object: the protocol is told what could become writable with it.
    pub fn look_beside_written(&mut self, written: Oid, heap: &mut HeapMut<'_>) {
        if self.optimisations.write_detection == WriteDetection::Twins {
            let clean = heap
                .beside(written)
                .filter(|(oid, is_present)| *is_present && !heap.is_writable(*oid));
            clean.for_each(|(oid, _)| self.protocol.lies_beside(oid));
        }
    }

    /// What the worker could have written and did not, in ascending order.
    pub fn unwritten(&self, heap: &mut HeapMut<'_>) -> Vec<Oid> {
        let compares = self.protocol.compares();
        let is_unwritten = |oid: &Oid| {
            if !compares {
                return heap.is_untouched(*oid);
            }
            let compared = heap.is_unwritten(*oid);
            compared
                .unwrap_or_else(|error| panic!("what has a twin is compared in a call: {error}"))
        };
        let mut unwritten: Vec<Oid> = self.protocol.twins().filter(is_unwritten).collect();
        unwritten.sort_unstable();
        unwritten
    }

    /// Where the worker wrote what it was expected to write, if races are looked for.
    pub fn written_at(&mut self, heap: &mut HeapMut<'_>) -> Vec<(Oid, CallSite)> {
        let noted = heap.take_noted();
        let noted = noted.unwrap_or_else(|error| panic!("who synchronises is in a call: {error}"));
        let State {
            protocol,
            written_alone,
            ..
        } = self;
        let oids = noted.iter().map(|(oid, _)| *oid);
        written_alone.notes(oids, |oid| protocol.is_exclusive(oid));
        if self.on_race == Races::Ignore {
            return Vec::new();
        }
        let noted = noted.into_iter();
        noted.map(|(oid, site)| (oid, site.into())).collect()
    }
}
