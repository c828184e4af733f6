//! [Read-ahead](crate::read_ahead) of objects: those around a missed one, in the order of their
//! ids, come with it where enough of them came from its last writer before.
//!
//! Ids in a row are objects that a node allocated one after the other. The heap knows which ids
//! name objects of one kind, so the engine says how far around may be read, and the protocol says
//! whether that is worth it and which objects are wanted. They are asked for as those that lie on
//! the page of the missed one are: a node that is writing one leaves it out of its reply. Where the
//! last writer's memory is seen, they are read there.

use dhole_model::{Oid, OidRange};

use super::Protocols;
use super::aggregation::MOST_BESIDE;
use crate::coherence::object_table::ObjectState;
use crate::command::Unread;
use crate::read_ahead::ReadAhead;
use crate::{Wanted, WantedList};

impl Protocols {
    /// The objects around a missed one that are worth reading ahead, if there are some.
    pub fn dense_around(&self, missed: &Unread, ahead: &ReadAhead) -> Option<OidRange> {
        let object = self.objects.get(missed.oid);
        if !may_be_ahead(&object, missed) || self.is_full() {
            return None;
        }
        let of = object.known(missed.creator).node;
        let id = missed.oid.0;
        let block = ahead.densest(id..id + 1, |ids| {
            let states = self.objects.states(ids);
            let came = states.filter(|(_, state)| state.is_held_by(of));
            Some(came.count() as u64)
        })?;
        let count = u32::try_from(block.end - block.start).ok()?;
        let first = Oid(block.start);
        Some(OidRange { first, count })
    }

    /// The objects of a range that this node lacks, and that have the last writer of the missed
    /// one. They are kept consistent as that one was allocated to be.
    pub fn wants_ahead(&mut self, missed: &Unread, range: OidRange) -> WantedList {
        let need = self.objects.get(missed.oid).known(missed.creator);
        let ids = range.first.0..range.first.0 + u64::from(range.count);
        let wanted = self.objects.states(ids).filter_map(|(oid, object)| {
            let wanted = Wanted {
                region: oid,
                need: object.known(missed.creator),
            };
            let is_zero = wanted.need.lamport == 0 && missed.zero_ok;
            let is_other = oid != missed.oid && wanted.need.node == need.node;
            let lacks = is_other && !object.is_valid() && !object.freed && !is_zero;
            let may = lacks && may_be_ahead(&object, missed) && !self.remembered.inbox.has(oid);
            may.then_some(wanted)
        });
        let wanted: WantedList = wanted.take(MOST_BESIDE).collect();
        for wanted in &wanted {
            let object = self.objects.get_mut(wanted.region);
            object.coherence.get_or_insert(missed.coherence);
        }
        wanted
    }

    /// The worker misses an object next, and these are read ahead.
    pub fn reads_ahead(&mut self, range: OidRange) {
        self.fetching.ahead = Some(range);
    }

    /// Adds what is read ahead to the round that fetches a missed object.
    pub(super) fn read_ahead(&mut self, misses: &[Unread]) {
        let ahead = self.fetching.ahead.take();
        let ([missed], Some(range)) = (misses, ahead) else {
            return;
        };
        if self.fetching.fetches.is_over() {
            return;
        }
        let room = MOST_BESIDE - self.fetching.beside.len();
        for wanted in self.wants_ahead(missed, range).into_iter().take(room) {
            self.fetching.fetches.want(0, true, wanted);
        }
    }
}

/// Whether notices tell when a copy of an object is old that came from its last writer unasked.
fn may_be_ahead(object: &ObjectState, missed: &Unread) -> bool {
    let coherence = object.coherence.unwrap_or(missed.coherence);
    coherence.properties().aggregates && !object.had_home
}
