use std::collections::BTreeMap;

use dhole_macros::{Counts, Variants};
use serde::{Deserialize, Serialize};

use crate::PhaseTimes;

/// The kinds of messages that nodes exchange. An array of one place a kind has them in this order.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, Variants,
)]
#[serde(rename_all = "snake_case")]
#[variants(name = "snake_case")]
#[repr(u8)]
pub enum MessageKind {
    /// Asks the last writer of objects for their bytes.
    Fetch,
    /// Carries the bytes of objects.
    FetchReply,
    /// The reply to a fetch of an object that was freed.
    Gone,
    /// Pushes new versions of objects to a node that read the last ones.
    Update,
    /// Ends the pushes to a node that does not read them.
    DropOut,
    /// Carries what a node has changed in objects to their home.
    Flush,
    /// Acknowledges a flush: the home has merged it.
    FlushAck,
    /// Announces that copies which a node keeps over acquires are outdated.
    Outdated,
    /// Acknowledges `Outdated`.
    OutdatedAck,
    /// Asks node 0 for object ids.
    IdsRequest,
    /// Carries the ids that a node may use.
    IdsReply,
    /// Asks for a page.
    PageRequest,
    /// Carries a page.
    PageReply,
    /// Asks for diffs of a page.
    DiffRequest,
    /// Carries diffs.
    DiffReply,
    /// A message of a protocol that the program brings.
    Coherence,
    /// Asks the manager of a minipage for a copy of it, or for the only one.
    MemoryRequest,
    /// Asks a holder of a minipage to send its copy to a node.
    MemoryForward,
    /// Takes a copy of a minipage away.
    MemoryInvalidate,
    /// Answers `MemoryInvalidate`.
    MemoryInvalidated,
    /// Carries the bytes of a minipage.
    MemoryData,
    /// Lets a node write the copy of a minipage that it has, or go on.
    MemoryGrant,
    /// Ends an operation on a minipage: the node that asked goes on.
    MemoryAck,
    /// The reply to a request where nothing is allocated.
    MemoryGone,
    /// The reply to a push of a minipage of which the node has no copy any more.
    MemoryDropped,
    /// Carries what a node wrote together with others into a minipage.
    MemoryDiff,
    /// Says that a diff of a minipage is merged.
    MemoryMerged,
    /// About a lock of threads: a request, or the lock.
    ThreadLock,
    /// About a barrier of threads: arrivals, or that they go on.
    ThreadBarrier,
    /// About a condition of threads.
    ThreadCondition,
    /// About a semaphore of threads.
    ThreadSemaphore,
    /// Begins a thread of a node, or is about its end.
    ThreadStart,
    /// Asks a lock's manager for the lock.
    LockRequest,
    /// Carries a request from the manager to the last holder.
    LockForward,
    /// Carries the lock, with the write notices that its new holder lacks.
    LockGrant,
    /// Announces that a node has reached a barrier, with its write notices.
    BarrierArrive,
    /// Announces that all have reached the barrier, with the write notices that the receiver lacks.
    BarrierDepart,
    /// Announces in a round of a dissemination barrier that a node has reached it.
    BarrierRound,
    /// Asks the manager of a read-write lock or semaphore to let a node pass.
    SyncRequest,
    /// The manager asks a node for the write notices of a release that the requester has not seen.
    SyncForward,
    /// Lets a node pass, with the write notices that it lacks.
    SyncGrant,
    /// Releases a read-write lock or a permit.
    SyncRelease,
    /// Wakes a node that waits on a condition.
    Notify,
    /// Carries a value of a collective, with the write notices that its receiver lacks.
    Collective,
    /// Asks the node that has an object's only copy to execute an operation.
    OperationRequest,
    /// Carries the result of an operation, or names the node where the object is.
    OperationReply,
    /// Carries the state of an object with operations.
    ObjectState,
    /// Part of a multicast: an operation on a replicated object, or a message that orders it.
    Ordered,
    /// Carries the digests of a replica, to be compared.
    Digests,
    /// Brings the edges of the wait-for graph together, in search of a deadlock.
    Probe,
    /// Asks a node for the line where it wrote an object that another node wrote too.
    WhereWritten,
    /// Answers `WhereWritten`.
    WrittenAt,
    /// Ends the wait of a node that lies on a cycle of the wait-for graph.
    Deadlock,
    /// Ends the run: a node has failed.
    Abort,
}

impl MessageKind {
    /// Whether the kind diagnoses a run instead of carrying it. The systems of the papers send
    /// no such messages, so these are counted by kind but are no part of
    /// [`Counters::messages`] and [`Counters::data_bytes`].
    pub const fn is_diagnostic(self) -> bool {
        matches!(
            self,
            MessageKind::Digests
                | MessageKind::Probe
                | MessageKind::WhereWritten
                | MessageKind::WrittenAt
                | MessageKind::Deadlock
                | MessageKind::Abort
        )
    }
}

/// The messages of one kind that were sent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, Counts)]
pub struct KindCounters {
    /// Messages sent.
    pub messages: u64,
    /// Bytes of these messages, header, control data and payload.
    pub bytes: u64,
}

/// How often a node used an object with operations (Orca, section 2.3.2). It shows where the object
/// is best kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, Counts)]
pub struct ObjectCounters {
    /// Operations that only read.
    pub reads: u64,
    /// Operations that may write.
    pub writes: u64,
}

/// Events of the objects of one type.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, Counts)]
pub struct TypeCounters {
    /// Objects allocated.
    pub allocated: u64,
    /// Objects freed.
    pub freed: u64,
    /// Accesses that found no valid copy on the node and asked another one.
    pub misses: u64,
    /// Objects, and blocks of arrays, read in the memory of their last writer.
    pub one_sided_reads: u64,
    /// Copies that went from read-only to writable.
    pub write_faults: u64,
    /// Copies received.
    pub installed: u64,
    /// Bytes of data received.
    pub installed_bytes: u64,
    /// Copies that a write notice made invalid.
    pub invalidated: u64,
}

/// The counters of one node, or their sum over all nodes. The definitions are those of DOSA's
/// tables, so that the numbers can stand beside the paper's.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, Counts)]
pub struct Counters {
    /// Messages sent, synchronisation included. A reply is one message, however large. Diagnostic
    /// kinds ([`MessageKind::is_diagnostic`]) do not count.
    pub messages: u64,
    /// Bytes of these messages: headers, write notices and objects.
    pub data_bytes: u64,
    /// Fetch rounds: misses that asked other nodes. A call counts once, however many messages it
    /// sent in parallel ("overlapped data requests").
    pub fetch_rounds: u64,
    /// Objects asked for in those rounds; under a protocol that the program brings, blocks of
    /// arrays and the right to write too.
    pub misses: u64,
    /// Objects asked for in those rounds only because they lie on the page of a missed one, or are
    /// read ahead.
    pub asked_beside: u64,
    /// Objects received unasked, along with those that own them or from which a program follows
    /// references.
    pub came_along: u64,
    /// Of those, the ones that were read or prefetched afterwards, where nodes learn what programs
    /// do; the others came in vain.
    pub along_read: u64,
    /// Objects received, or read in the memory of the node that wrote them last, ahead of a miss:
    /// they lie around a missed one.
    pub came_ahead: u64,
    /// Of those, the ones that were read or prefetched afterwards.
    pub ahead_read: u64,
    /// Objects, and blocks of arrays, read in the memory of the node that wrote them last, without
    /// a message. They are no part of `misses`.
    pub one_sided_reads: u64,
    /// Bytes of data that were read so.
    pub one_sided_bytes: u64,
    /// Accesses to raw memory that faulted because the node had no copy to read.
    pub raw_read_faults: u64,
    /// Accesses that faulted because the node could not write the minipage.
    pub raw_write_faults: u64,
    /// Requests for a minipage that waited at its manager, because another operation on it was
    /// under way (MultiView, section 4.4).
    pub competing_requests: u64,
    /// Requests for raw memory ahead of its use that were dropped, because too many were under way.
    pub dropped_prefetches: u64,
    /// Flushes of minipages that this node asked for, because a thread of its domain was about to
    /// release something.
    pub raw_flushes: u64,
    /// Nanoseconds of accesses to raw memory that faulted to read, until they could be made.
    pub raw_read_ns: u64,
    /// Nanoseconds of those that faulted to write.
    pub raw_write_ns: u64,
    /// Nanoseconds of prefetches, pushes and frees of raw memory.
    pub raw_call_ns: u64,
    /// Objects that the node filled with zeros because no node had written them yet.
    pub zero_fills: u64,
    /// Faults that made read-only copies writable.
    pub write_faults: u64,
    /// Gates of chunks that were opened by a write. What is behind a gate is written without a
    /// fault of its own, until the interval ends.
    pub gates_opened: u64,
    /// Sections that ran here, at the home of their lock's object.
    pub sections: u64,
    /// Tries of sections here that found the worker computing, which may use their objects.
    pub sections_in_use: u64,
    /// Sections that this node's worker had to run itself, because the home could not.
    pub sections_elsewhere: u64,
    /// Copies made writable with one that was written: because they lie on its page, or because the
    /// node was expected to write them next.
    pub writable_beside: u64,
    /// Copies of these that the node did not write before it synchronised.
    pub unwritten: u64,
    /// Pre-images taken at a first write.
    pub pre_images: u64,
    /// Requests answered from a pre-image.
    pub pre_image_replies: u64,
    /// Requests that waited until the owner's next call of the runtime.
    pub deferred_requests: u64,
    /// Objects, elements and blocks pushed to nodes that have not asked for them.
    pub pushes: u64,
    /// Accesses that found a pushed copy and sent no message.
    pub pushes_read: u64,
    /// Objects whose diffs were sent home.
    pub diffs: u64,
    /// Bytes of these diffs.
    pub diff_bytes: u64,
    /// Intervals with at least one write.
    pub intervals: u64,
    /// Bytes of write notices sent; part of `data_bytes`.
    pub write_notice_bytes: u64,
    /// Copies that a write notice made invalid.
    pub invalidations: u64,
    /// Races found: pairs of an announced interval and a write of this node, of one object.
    pub races: u64,
    /// Locks acquired with messages.
    pub lock_acquires_remote: u64,
    /// Locks acquired again by the node that held them last, without a message.
    pub lock_acquires_local: u64,
    /// Barriers passed.
    pub barriers: u64,
    /// Multicasts in the order that all nodes agree on: operations that write replicated objects,
    /// and changes of strategy.
    pub broadcasts: u64,
    /// Nanoseconds for which the worker waited for other nodes.
    pub waited_ns: u64,
    /// Of those, the nanoseconds for which it waited for locks.
    pub lock_waited_ns: u64,
    /// Of those, the nanoseconds for which it waited at barriers.
    pub barrier_waited_ns: u64,
    /// Waits that ended by chance: 0 unless dhole, or a protocol of the program's, has a mistake.
    /// Each is one of these:
    ///
    /// - what the worker, or a thread of raw memory, waited for had come, and it found that only
    ///   because the time of its wait was over: it was not woken;
    /// - the step that the worker takes when that time is over ended its wait, or answered a
    ///   request of another node that could have been answered before;
    /// - the arrival of a probe ended its wait.
    ///
    /// Waits that end by a timer as they should do not count: those that a deadlock, the end of the
    /// run or the loss of a node ends, and timed waits of threads.
    pub waits_ended_by_time: u64,
    /// Nanoseconds for which the program computed; known in a simulation only.
    pub computed_ns: u64,
    /// The most interval records that a node kept at a time for nodes that had not seen them. The
    /// sum over nodes is their maximum.
    #[counts(most)]
    pub interval_records_most: u64,
    /// Bytes of page store that hold shared objects on this node.
    #[counts(kept)]
    pub shared_bytes: u64,
    /// Bytes of the global space given to objects that this node allocated.
    #[counts(kept)]
    pub allotted_bytes: u64,
    /// How long the node spent on what.
    pub phases: PhaseTimes,
    /// Sent messages by kind.
    pub by_kind: BTreeMap<MessageKind, KindCounters>,
    /// Sent messages of the protocols that the program brings, by the protocol's name. Together
    /// they are those of the kind [`MessageKind::Coherence`].
    pub by_protocol: BTreeMap<String, KindCounters>,
    /// Events by the type of the object.
    pub by_type: BTreeMap<String, TypeCounters>,
    /// Operations that the node called, by object, with its type.
    pub by_object: BTreeMap<String, ObjectCounters>,
}

impl Counters {
    /// Messages sent of one kind.
    pub fn sent(&self, kind: MessageKind) -> u64 {
        self.by_kind.get(&kind).map_or(0, |sent| sent.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_since_and_what_before_add_up_to_all() {
        let sent = |messages| KindCounters {
            messages,
            bytes: 10 * messages,
        };
        let mut before = Counters {
            messages: 2,
            waited_ns: 5,
            shared_bytes: 100,
            ..Counters::default()
        };
        before.by_kind.insert(MessageKind::Fetch, sent(1));
        before.by_type.entry("Body".into()).or_default().misses = 2;
        let mut after = Counters {
            messages: 5,
            waited_ns: 6,
            shared_bytes: 300,
            interval_records_most: 4,
            ..before.clone()
        };
        after.by_kind.insert(MessageKind::Fetch, sent(3));
        after.by_kind.insert(MessageKind::Flush, sent(1));
        after.by_type.entry("Body".into()).or_default().misses = 7;
        let since = after.since(&before);
        assert_eq!((since.messages, since.waited_ns), (3, 1));
        assert_eq!((since.shared_bytes, since.interval_records_most), (300, 4));
        assert_eq!(since.by_kind[&MessageKind::Fetch], sent(2));
        assert_eq!(since.by_type["Body"].misses, 5);
        let mut all = before.clone();
        all.add(&since);
        all.shared_bytes = after.shared_bytes;
        assert_eq!(all, after);
    }

    #[test]
    fn counters_of_two_nodes_add_up_by_kind_and_type() {
        let sent = KindCounters {
            messages: 1,
            bytes: 10,
        };
        let mut a = Counters {
            messages: 2,
            data_bytes: 20,
            interval_records_most: 7,
            ..Counters::default()
        };
        a.by_kind.insert(MessageKind::Fetch, sent);
        a.by_kind.insert(MessageKind::FetchReply, sent);
        a.by_type.entry("Body".into()).or_default().misses = 2;
        let mut sum = a.clone();
        sum.add(&a);
        assert_eq!((sum.messages, sum.data_bytes), (4, 40));
        assert_eq!(sum.interval_records_most, 7);
        assert_eq!(sum.by_type["Body"].misses, 4);
        assert_eq!(
            sum.by_kind[&MessageKind::Fetch],
            KindCounters {
                messages: 2,
                bytes: 20
            }
        );
    }
}
