//! What objects own, and what is followed from them, travels with them.

use dhole_heap::{HeapMut, Miss};
use dhole_model::{NodeId, Oid};
use dhole_net::Payload;
use dhole_protocol::{Follow, MOST_ALONG, ProtocolError, Sent, SentList, WorkerIs};

use crate::graphs::Named;
use crate::node::State;
use crate::step::{Step, bad, gather, must, worker_is};

/// The most bytes of objects that go along with those of a reply.
const MOST_BYTES: usize = 64 << 10;

impl State {
    /// Adds to a reply what its objects own and what `follow` leads to, the nearest first, as far
    /// as the protocol lets it.
    pub fn add_along(
        &mut self,
        (to, follow): (NodeId, &Follow),
        sent: &mut SentList,
        payload: &mut Payload,
        step: &mut Step<'_, '_>,
    ) {
        if self.graphs.names_nothing() {
            return;
        }
        let worker = worker_is(step.heap.presence());
        let (asked, most_bytes) = (sent.len(), payload.len() + MOST_BYTES);
        let mut followed = usize::from(follow.most);
        self.graphs.sent.extend(sent.iter().map(|sent| sent.region));
        while sent.len() < asked + MOST_ALONG
            && let Some(Named { oid, is_free, .. }) = self.graphs.next()
        {
            let bytes = step.heap.bytes_of(oid);
            let fits = bytes.is_some_and(|bytes| payload.len() + bytes <= most_bytes);
            if !fits || !is_free && followed == 0 || self.graphs.sent.contains(&oid) {
                continue;
            }
            if worker == WorkerIs::Computing {
                self.withdraw(oid, step.heap);
            }
            let Some(along) = self.protocol.send_along(oid, to, worker) else {
                continue;
            };
            followed -= usize::from(!is_free);
            self.graphs.sent.insert(oid);
            if along.make_clean {
                self.leave_gate(oid, step.heap);
                must(step.heap.make_clean(oid), "the worker is in a call");
                self.publish(oid, step.heap);
            }
            let start = payload.len();
            gather(step.heap, oid, false, payload);
            self.graphs
                .names(oid, &payload[start..], Some(follow), step.heap);
            sent.push(Sent {
                region: oid,
                version: along.version,
            });
        }
        self.graphs.sent.clear();
        self.graphs.forget();
    }

    /// Notes which objects that came along or ahead the worker has read.
    pub(crate) fn note_reads(&mut self, heap: &mut HeapMut<'_>) {
        let [along, ahead] = self.graphs.read(heap.take_read());
        self.counting.all.along_read += along;
        self.counting.all.ahead_read += ahead;
    }

    /// The worker is about to miss an object: asks for what should come along with it, if anything.
    /// Whether there is something.
    pub(crate) fn follow_from(&mut self, miss: &Miss, heap: &mut HeapMut<'_>) -> bool {
        if !self.graphs.learns() {
            return false;
        }
        self.note_reads(heap);
        let follow = self.graphs.misses(miss);
        let any = !follow.is_none();
        self.protocol.follow(follow);
        any
    }

    /// A missed object was read in the memory of its last writer: it may be followed as one that
    /// came by message is.
    pub(crate) fn learn_there(&mut self, oid: Oid, heap: &HeapMut<'_>) {
        if self.graphs.learns() {
            self.object.clear();
            if heap.gather(oid, &mut self.object).is_ok() {
                self.graphs.names(oid, &self.object, None, heap);
                self.graphs.done();
            }
        }
    }

    /// By what an object before it one came along names it.
    pub fn along_by(&mut self, sent: Sent) -> Result<Named, ProtocolError> {
        let named = self.graphs.came_along(sent.region);
        named.ok_or_else(|| bad(sent, "an object that nothing in the reply leads to"))
    }
}
