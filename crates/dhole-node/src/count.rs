use std::sync::Arc;

use dhole_model::{
    Counters, KindCounters, MAX_MEMBERS, MemberId, MessageKind, PhaseTimes, Timeline, TypeCounters,
};
use dhole_part::PartCounters;
use dhole_protocol::Message;
use rustc_hash::FxHashMap;

use crate::measured::Measured;
use crate::part_waits::PartWaits;
use crate::phases::PhaseClock;
use crate::waits::Waits;

/// How many bytes a message is counted with.
#[derive(Clone, Copy, Debug)]
pub struct MessageSizes {
    /// Of its frame, without a payload.
    pub frame: fn(&Message) -> u64,
    /// Of the write notices in it.
    pub notices: fn(&Message) -> u64,
}

impl MessageSizes {
    /// The bytes that are sent.
    pub const SENT: MessageSizes = MessageSizes {
        frame: Message::frame_bytes,
        notices: Message::notice_bytes,
    };
}

/// A node's counters as they are kept while it runs: counting allocates nothing once every type
/// has been seen.
pub(crate) struct Counting {
    /// Everything that is neither by kind nor by type.
    pub all: Counters,
    by_kind: [KindCounters; MessageKind::ALL.len()],
    /// Of the protocols that the program brings, by their numbers.
    by_member: [KindCounters; MAX_MEMBERS],
    /// By the address of the type's name, which takes less to hash than the name.
    by_type: FxHashMap<usize, (&'static str, TypeCounters)>,
    /// Where the program waited.
    pub waits: Waits,
    /// What the worker spends its time on.
    pub phases: PhaseClock,
    /// The part of the program that is measured.
    pub measured: Measured,
    /// How many bytes messages have.
    pub sizes: MessageSizes,
    /// What the parts count that take their messages without the node lock.
    pub parts: Arc<PartCounters>,
    /// And where their threads waited.
    pub part_waits: Arc<PartWaits>,
    /// Whether all waits are recorded there.
    pub records: bool,
}

impl Default for Counting {
    fn default() -> Counting {
        Counting {
            all: Counters::default(),
            by_kind: [KindCounters::default(); MessageKind::ALL.len()],
            by_member: [KindCounters::default(); MAX_MEMBERS],
            by_type: FxHashMap::default(),
            waits: Waits::default(),
            phases: PhaseClock::default(),
            measured: Measured::default(),
            sizes: MessageSizes::SENT,
            parts: Arc::default(),
            part_waits: Arc::default(),
            records: false,
        }
    }
}

impl Counting {
    /// All waits are recorded from here on.
    pub fn record(&mut self) {
        self.part_waits.record();
        self.records = true;
    }

    /// Counts a message that goes to another node.
    pub fn sent(&mut self, message: &Message, payload_bytes: usize) {
        let kind = message.kind();
        if !kind.is_diagnostic() {
            self.all.write_notice_bytes += (self.sizes.notices)(message);
        }
        let bytes = (self.sizes.frame)(message) + payload_bytes as u64;
        if let Message::Coherence(of) = message {
            let of_member = &mut self.by_member[usize::from(u8::from(of.member))];
            of_member.messages += 1;
            of_member.bytes += bytes;
        }
        self.sent_of(kind, bytes);
    }

    /// Counts a message of this kind, which tells of no writes and goes as so many bytes.
    pub fn sent_as(&mut self, kind: MessageKind, bytes: usize) {
        self.sent_of(kind, Message::HEADER_BYTES + bytes as u64);
    }

    /// Counts a message of this kind, which tells of no writes.
    fn sent_of(&mut self, kind: MessageKind, bytes: u64) {
        let of_kind = &mut self.by_kind[kind as usize];
        of_kind.messages += 1;
        of_kind.bytes += bytes;
        if !kind.is_diagnostic() {
            self.all.messages += 1;
            self.all.data_bytes += bytes;
        }
        if self.measured.begins_behind(kind) {
            self.measured = Measured::Behind(Some(Box::new(self.counters(0))));
        }
    }

    /// The counters of a type of object.
    pub fn of_type(&mut self, name: &'static str) -> &mut TypeCounters {
        &mut self
            .by_type
            .entry(name.as_ptr().addr())
            .or_insert((name, TypeCounters::default()))
            .1
    }

    /// Counts an object, or elements, of this type that have come.
    pub fn installed(&mut self, name: &'static str, bytes: usize) {
        self.waits.came(bytes);
        let of_type = self.of_type(name);
        of_type.installed += 1;
        of_type.installed_bytes += bytes as u64;
    }

    /// A part of the program begins that is told apart: what was estimated so far stays as it is.
    pub fn settle(&mut self) {
        self.phases.settle();
        self.waits.settle();
    }

    /// The processor's clock stands so, for the process of this number.
    pub fn looks(&mut self, by: u32, now_ns: u64, processor_ns: u64) {
        let parts = self.part_waits.times();
        self.phases.looks(by, now_ns, processor_ns, &parts);
    }

    /// The worker has come to where all nodes come: how long it took since it left the last such
    /// place, and was held up of that.
    pub fn arrives(&mut self, now_ns: u64) -> [u64; 2] {
        let held_up_ns = self.held_up_ns();
        self.phases.arrives(now_ns, held_up_ns)
    }

    /// The worker leaves where all nodes come.
    pub fn departs(&mut self, now_ns: u64) {
        let held_up_ns = self.held_up_ns();
        self.phases.departs(now_ns, held_up_ns);
    }

    /// How long the worker waited so far, but at barriers, or read one-sided.
    fn held_up_ns(&self) -> u64 {
        let parts_ns = self.part_waits.times().waited_ns();
        self.phases.held_up_ns() + parts_ns + self.waits.one_sided_ns()
    }

    /// When the node waited, if that was recorded.
    pub fn timeline(&self) -> Option<Timeline> {
        let whole = self.phases.times(0, &PhaseTimes::default());
        let (took_ns, processor_ns) = (whole.whole_ns, whole.worker_processor_ns);
        self.part_waits.timeline(took_ns, processor_ns)
    }

    /// The counters for a report.
    pub fn counters(&self, shared_bytes: u64) -> Counters {
        let mut counters = self.all.clone();
        counters.shared_bytes = shared_bytes;
        let one_sided_ns = self.waits.one_sided_ns();
        counters.phases = self.phases.times(one_sided_ns, &self.part_waits.times());
        for (kind, of_kind) in MessageKind::ALL.into_iter().zip(self.by_kind) {
            if of_kind.messages > 0 {
                counters.by_kind.insert(kind, of_kind);
            }
        }
        self.parts.add_to(&mut counters);
        for (member, of_member) in MemberId::all().zip(self.by_member) {
            if of_member.messages > 0 {
                let name = member.name().to_owned();
                counters.by_protocol.insert(name, of_member);
            }
        }
        for (name, of_type) in self.by_type.values() {
            counters
                .by_type
                .entry((*name).to_owned())
                .or_default()
                .add(of_type);
        }
        counters
    }
}

#[cfg(test)]
mod tests {
    use dhole_protocol::{AbortReason, LockId};

    use super::*;

    #[test]
    fn diagnostic_messages_are_counted_apart() {
        let (node, time) = (dhole_model::NodeId(0), dhole_model::VectorTime::zero(2));
        let request = Message::LockRequest {
            lock: LockId(1),
            time,
        };
        let abort = Message::Abort {
            node,
            reason: AbortReason::Failed("so".into()),
        };
        let mut counting = Counting::default();
        counting.sent(&request, 5);
        counting.sent(&abort, 0);
        let counters = counting.counters(0);
        assert_eq!(
            (counters.messages, counters.data_bytes),
            (1, request.frame_bytes() + 5)
        );
        assert_eq!(counters.by_kind[&MessageKind::Abort].messages, 1);
    }
}
