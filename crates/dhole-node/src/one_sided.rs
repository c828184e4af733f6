//! One-sided reads: a miss whose last writer's memory can be seen is read there, without a
//! message, and without that node's taking part.
//!
//! The owner publishes an object whenever it becomes clean, and makes it unpublished before a byte
//! of it may change. The reader looks, copies and looks again; what it finds twice to be wanting
//! it asks for by message.

use dhole_heap::{HeapMut, Miss, MonitorCall, PublishedObject, RemoteObject, RemoteRead, SeenBy};
use dhole_model::{NodeId, Oid, OidRange, Track, Version};
use dhole_protocol::{Command, Commands, ProtocolError, Sent, Unread, Wanted};

use crate::node::State;
use crate::phases::SAMPLED;
use crate::step::Step;
use crate::timeline::Waited;
use crate::waits::Awaited;
use crate::worker::{Failure, Link};

/// How often an object is read that changes meanwhile, before it is asked for by message.
const ATTEMPTS: usize = 2;

impl Link<'_> {
    /// Reads a missed object in the memory of its last writer, if that can be; whether it is here.
    pub(crate) fn read_there(
        &self,
        call: &mut MonitorCall<'_, State>,
        miss: &Miss,
        missed: &Unread,
    ) -> Result<bool, Box<Failure>> {
        let (heap, state) = call.split();
        if !heap.publishes() {
            return Ok(false);
        }
        let Some(wanted) = state.protocol.wants_there(missed) else {
            return Ok(false);
        };
        let (of, oid) = (wanted.need.node, wanted.region);
        if !self.machine.sees(self.node.id, of) {
            return Ok(false);
        }
        let began_ns = self.read_begins();
        if let Some(object) = call.split().0.remote(of, oid) {
            return match self.read_remote(call, missed, wanted, object) {
                Some(object) => self.takes_there(call, miss, &object, began_ns),
                None => Ok(false),
            };
        }
        for _ in 0..ATTEMPTS {
            self.passes(call, of, oid);
            let (heap, state) = call.split();
            let Some(object) = heap.look_there(of, oid) else {
                return Ok(false);
            };
            if !state.protocol.is_wanted(wanted, object.version()) {
                return Ok(false);
            }
            self.passes(call, of, oid);
            if !call.split().0.copy_there(&object) {
                return Ok(false);
            }
            self.passes(call, of, oid);
            if call.split().0.still_there(&object) {
                return self.takes_there(call, miss, &object, began_ns);
            }
        }
        Ok(false)
    }

    /// A one-sided read begins: when, if it is timed.
    pub(crate) fn read_begins(&self) -> Option<u64> {
        let is_timed = self.one_sided.times();
        is_timed.then(|| self.machine.now(self.node.id))
    }

    /// Reads an object in its last writer's window, without the lock; what is to be taken.
    fn read_remote(
        &self,
        call: &mut MonitorCall<'_, State>,
        missed: &Unread,
        wanted: Wanted,
        mut object: RemoteObject,
    ) -> Option<PublishedObject> {
        let need = wanted.need;
        let may_do = |version: Version| version.node == need.node && version >= need;
        call.unlock();
        let (mut version, mut unreached) = (None, None);
        for _ in 0..ATTEMPTS {
            match object.read(may_do) {
                Ok(RemoteRead::Changed) => (),
                Ok(RemoteRead::Whole(whole)) => {
                    version = Some(whole);
                    break;
                }
                Ok(RemoteRead::Absent) => break,
                Err(error) => {
                    unreached = Some(error.why);
                    break;
                }
            }
        }
        let (mut heap, state) = call.split();
        if let Some(why) = unreached {
            // A message finds out more, if the node is lost.
            state.warn(format!(
                "objects of {} are asked for by message: {why}",
                need.node
            ));
        }
        // Messages may have come meanwhile.
        let still = state.protocol.wants_there(missed) == Some(wanted);
        let is_taken = |version: &Version| still && state.protocol.is_wanted(wanted, *version);
        heap.take_remote(object, version.filter(is_taken))
    }

    /// A step of a one-sided read takes its time, where it takes any.
    fn passes(&self, call: &mut MonitorCall<'_, State>, of: NodeId, oid: Oid) {
        if self.machine.charges_reads() {
            let bytes = call.split().0.bytes_of(oid).unwrap_or(0);
            call.unlock();
            self.machine.reads_there(self.node.id, of, bytes as u64);
        }
    }

    /// Makes what was copied the copy here; whether it can be.
    fn takes_there(
        &self,
        call: &mut MonitorCall<'_, State>,
        miss: &Miss,
        object: &PublishedObject,
        began_ns: Option<u64>,
    ) -> Result<bool, Box<Failure>> {
        let mut taken = None;
        let learns = self.machine.charges_reads();
        self.acts(call, |state, step| {
            taken = state.take_there(object, learns, step)?;
            Ok(())
        })?;
        self.send(call);
        let Some(bytes) = taken else {
            return Ok(false);
        };
        let took_ns = began_ns.map(|began| self.machine.now(self.node.id).saturating_sub(began));
        let State {
            counting,
            last_call,
            ..
        } = call.split().1;
        let allocated_at = |oid| self.node.cluster.allocated_at(oid);
        let awaited = Awaited::from(miss);
        if let (true, Some((began_ns, took_ns))) = (counting.records, began_ns.zip(took_ns)) {
            let waited = Waited {
                track: Track::Process(self.fiber.0),
                began_ns,
                took_ns,
                processor_ns: None,
                reads: Some(SAMPLED),
            };
            counting
                .part_waits
                .records((awaited, last_call.site()), waited);
        }
        counting
            .waits
            .read_there(awaited, last_call.site(), (1, bytes, took_ns), allocated_at);
        self.within_memory(call)?;
        Ok(true)
    }
}

impl State {
    /// Makes what was copied the copy here, and learns what is followed from it, if it is to be:
    /// how many bytes came. `None` where it is no value that this node may have; then nothing has
    /// happened.
    pub(crate) fn take_there(
        &mut self,
        object: &PublishedObject,
        learns: bool,
        step: &mut Step<'_, '_>,
    ) -> Result<Option<usize>, ProtocolError> {
        // The neighbour may be malicious, or name objects of which this node has yet to hear: then
        // what it answers to a message counts.
        let Ok(bytes) = step.heap.install_there(object) else {
            return Ok(None);
        };
        let sent = Sent {
            region: object.oid(),
            version: object.version(),
        };
        if let Some(info) = step.heap.type_of(sent.region) {
            self.counting.installed(info.name, bytes);
            self.counting.of_type(info.name).one_sided_reads += 1;
        }
        if learns {
            self.learn_there(sent.region, step.heap);
        }
        self.counting.all.one_sided_reads += 1;
        self.counting.all.one_sided_bytes += bytes as u64;
        self.protocol.read_there(sent, &mut self.commands);
        self.carry_out_all(Ok(()), step)?;
        Ok(Some(bytes))
    }

    /// Lets neighbours read an object, if its copy here is clean and this node wrote it last.
    #[inline]
    pub(crate) fn publish(&self, oid: Oid, heap: &mut HeapMut<'_>) {
        if heap.publishes()
            && let Some(version) = self.protocol.published(oid)
        {
            heap.publish(oid, version);
        }
    }

    /// Lets neighbours read those of the objects that are clean.
    pub(crate) fn publish_all(&self, range: OidRange, heap: &mut HeapMut<'_>) {
        if heap.publishes() {
            range.iter().for_each(|oid| self.publish(oid, heap));
        }
    }

    /// Neighbours cannot read an object any more; the protocol is told who may have. Whether the
    /// object is to stay clean, which was to become writable without a notice.
    pub(crate) fn unpublish(&mut self, oid: Oid, heap: &mut HeapMut<'_>) -> bool {
        let readers = heap.unpublish(oid);
        !readers.is_nobody() && self.was_read(oid, &readers)
    }

    /// As [`unpublish`](State::unpublish), of what the worker is expected to write.
    pub(crate) fn unpublish_expected(&mut self, commands: &Commands, heap: &mut HeapMut<'_>) {
        if !heap.publishes() {
            return;
        }
        let expected = |command: &Command| match command {
            Command::ExpectWrite { oid, .. } => Some(*oid),
            _ => None,
        };
        heap.unpublish_all(commands.iter().filter_map(expected), |oid, readers| {
            self.was_read(oid, &readers);
        });
    }

    /// The protocol is told who may have read an object. Whether it is to stay clean.
    fn was_read(&mut self, oid: Oid, readers: &SeenBy) -> bool {
        let (me, readers) = (self.id, readers.of(self.nodes));
        let others = readers.filter(|node| *node != me);
        self.protocol.was_read(oid, others)
    }
}
