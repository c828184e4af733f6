//! Objects around a missed one, in the order of their ids: how many of them are here, and how far
//! this node knows that ids name objects of the same kind.

use std::ops::Range;

use dhole_model::unpoisoned::read;
use dhole_model::{CHUNK, Oid};

use crate::{Binding, HeapMut};

impl HeapMut<'_> {
    /// How many of these ids name objects of which a valid copy is here.
    pub fn present_in(&self, ids: Range<u64>) -> u64 {
        let chunks = ids.start / CHUNK..ids.end.div_ceil(CHUNK);
        let present = chunks.filter_map(|number| {
            let first = number * CHUNK;
            let at = self.heap.place(Oid(first))?;
            let within = ids.start.max(first) - first..ids.end.min(first + CHUNK) - first;
            Some(self.heap.chunks[at.chunk].count_present(within))
        });
        present.sum()
    }

    /// The ids around that of an object, within these, that name objects which were allocated as it
    /// was, as far as this node knows by itself: those that were allocated together with it, and
    /// those of chunks beside of which this node has a record. What another node of the process
    /// knows counts for nothing, so what is known does not depend on where nodes are. The node has
    /// a record of all of them afterwards.
    pub fn known_around(&mut self, oid: Oid, within: Range<u64>) -> Range<u64> {
        let run = read(&self.heap.cluster.directory).ids_around(oid);
        let Some((run, binding)) = run.zip(self.binding(oid)) else {
            return oid.0..oid.0 + 1;
        };
        let first = oid.0 / CHUNK * CHUNK;
        let mut known = first..first + CHUNK;
        while known.start > within.start && self.knows(known.start - CHUNK, &run, &binding) {
            known.start -= CHUNK;
        }
        while known.end < within.end && self.knows(known.end, &run, &binding) {
            known.end += CHUNK;
        }
        if run.end + CHUNK > known.end {
            // The rest of its last chunk names nothing.
            known.end = known.end.min(run.end);
        }
        known.start.max(within.start)..known.end.min(within.end)
    }

    /// Whether a chunk, by its first id, is one of these ids, all of which are known, or has a
    /// record here, and objects of this kind.
    fn knows(&mut self, first: u64, run: &Range<u64>, binding: &Binding) -> bool {
        let is_alike = |of: Binding| of == *binding && of.coherence == binding.coherence;
        match run.contains(&first) {
            true => self.heap.see(Oid(first)).is_ok(),
            false => self.binding(Oid(first)).is_some_and(is_alike),
        }
    }
}
