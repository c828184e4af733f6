//! Objects around a missed one are read ahead, as elements of an array are: with the missed one
//! come those beside it, in the order of their ids, where enough of them came from its last writer
//! before.
//!
//! Each object that comes ahead is marked until it is read, so each line of the program learns
//! whether that pays ([`Graphs`](crate::graphs::Graphs)): where it does not, only as much is read
//! ahead as costs little beside its misses; where nearly all is read, less has to have come before.

use dhole_heap::{HeapMut, Miss, MonitorCall, PublishedObject};
use dhole_model::{Oid, OidRange};
use dhole_protocol::{ProtocolError, ReadAhead, Unread, Wanted};
use smallvec::SmallVec;

use crate::count::Counting;
use crate::graphs::{Graphs, Pays, Way};
use crate::node::State;
use crate::step::Step;
use crate::waits::Awaited;
use crate::worker::{Failure, Link};

/// Objects of the smallest block that is read ahead.
const SMALLEST: u64 = 16;

/// Objects of the largest one: as many as one message asks for.
const LARGEST: u64 = 256;

/// At a line where nearly all that comes ahead is read, one object in so many is enough.
const SURE_SHARE: u64 = 16;

/// The most bytes of objects that come ahead of a miss. Where the smallest block has more, nothing
/// is read ahead.
const MOST_BYTES: u64 = 64 << 10;

impl Link<'_> {
    /// The objects around a missed one that are worth reading ahead, if there are some, and there
    /// is room for them: what is left of the node's memory may be needed for what is missed.
    pub(crate) fn dense_around(
        &self,
        call: &mut MonitorCall<'_, State>,
        miss: &Miss,
        missed: &Unread,
    ) -> Option<OidRange> {
        let (mut heap, state) = call.split();
        state.graphs.ends_ahead();
        let has_room = heap.store_bytes() < self.memory_bytes.min(heap.capacity_bytes()) / 2;
        if state.graphs.expects_reads() {
            state.note_reads(&mut heap);
        }
        let learns = has_room && state.graphs.learns() && state.nodes > 1;
        learns.then(|| state.dense_around(miss, missed, &mut heap))?
    }

    /// Reads these objects ahead, as far as they are wanted, where the missed one was read: in the
    /// memory of its last writer.
    pub(crate) fn read_ahead_there(
        &self,
        call: &mut MonitorCall<'_, State>,
        (miss, missed): (&Miss, &Unread),
        range: OidRange,
    ) -> Result<(), Box<Failure>> {
        let now = || self.machine.now(self.node.id);
        let began_ns = self.one_sided.times().then(now);
        let mut taken = SmallVec::<[usize; 16]>::new();
        self.acts(call, |state, step| {
            for wanted in state.protocol.wants_ahead(missed, range) {
                taken.extend(state.take_ahead(wanted, step)?);
            }
            Ok(())
        })?;
        let State {
            counting,
            last_call,
            graphs,
            ..
        } = call.split().1;
        graphs.ends_ahead();
        let each = |began| now().saturating_sub(began) / (taken.len().max(1) as u64);
        let each_ns = began_ns.map(each);
        for bytes in &taken {
            let (site, awaited) = (last_call.site(), Awaited::from(miss));
            let allocated_at = |oid| self.node.cluster.allocated_at(oid);
            let read = (1, *bytes, each_ns);
            counting.waits.read_there(awaited, site, read, allocated_at);
        }
        self.send(call);
        self.within_memory(call)
    }
}

impl State {
    fn dense_around(
        &mut self,
        miss: &Miss,
        missed: &Unread,
        heap: &mut HeapMut<'_>,
    ) -> Option<OidRange> {
        let bytes = heap.bytes_of(missed.oid)?.max(1) as u64;
        let most = (MOST_BYTES / bytes).min(LARGEST);
        // No more can have come from one node than is here: as a rule that is not enough.
        let present = |size| {
            let first = missed.oid.0 / size * size;
            (size, heap.present_in(first..first + size))
        };
        let sizes = std::iter::successors(Some(SMALLEST), |size| Some(2 * size));
        let sizes = sizes.take_while(|size| *size <= most);
        let present: SmallVec<[(u64, u64); 5]> = sizes.map(present).collect();
        let dense = |share| {
            let enough = |(size, present): &&(u64, u64)| *present >= size / share;
            present.iter().rfind(enough).map(|(size, _)| *size)
        };
        dense(SURE_SHARE)?;
        let share = match self.graphs.reads_ahead_at(miss)? {
            Pays::Well => SURE_SHARE,
            Pays::Enough => ReadAhead::QUARTER,
        };
        let most = dense(share)?;
        let mut ahead = ReadAhead {
            block: SMALLEST,
            most,
            least: SMALLEST / share,
            share,
            first: 0,
            end: u64::MAX,
        };
        let known = heap.known_around(missed.oid, ahead.around(missed.oid.0, most));
        (ahead.first, ahead.end) = (known.start, known.end);
        let range = self.protocol.dense_around(missed, &ahead)?;
        self.graphs.reads_ahead(miss, range);
        Some(range)
    }

    /// Reads an object ahead in the memory of its last writer: how many bytes came. `None` where it
    /// is not there, and may be missed.
    fn take_ahead(
        &mut self,
        wanted: Wanted,
        step: &mut Step<'_, '_>,
    ) -> Result<Option<usize>, ProtocolError> {
        let Wanted { region: oid, need } = wanted;
        let found = step.heap.look_there(need.node, oid);
        let found = found.filter(|it| self.protocol.is_wanted(wanted, it.version()));
        let is_whole = |it: &PublishedObject, heap: &mut HeapMut<'_>| {
            heap.copy_there(it) && heap.still_there(it)
        };
        let Some(object) = found.filter(|it| is_whole(it, step.heap)) else {
            return Ok(None);
        };
        let bytes = self.take_there(&object, false, step)?;
        if bytes.is_some() {
            let counting = &mut self.counting;
            came_ahead((oid, Way::Seen), &mut self.graphs, counting, step.heap);
        }
        Ok(bytes)
    }
}

/// An object has come and was installed: it is marked until it is read, if it came ahead.
pub(crate) fn came_ahead(
    (oid, way): (Oid, Way),
    graphs: &mut Graphs,
    counting: &mut Counting,
    heap: &mut HeapMut<'_>,
) {
    if graphs.came_ahead(oid, way) {
        counting.all.came_ahead += 1;
        heap.expect_read(oid);
    }
}
