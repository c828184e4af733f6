//! What the parts of a node count, without the node lock.

use std::sync::atomic::{AtomicU64, Ordering};

use dhole_model::{Counters, MessageKind};

/// What the parts of a node count. Any thread of the node counts here, and a report adds it up with
/// what the engine counts.
#[derive(Debug)]
pub struct PartCounters {
    by_kind: [Sent; MessageKind::ALL.len()],
    /// Messages that were sent, also to the node itself, and that were taken.
    traffic: [PartCounter; 2],
    /// Accesses of the program that faulted to read.
    pub read_faults: PartCounter,
    /// Accesses that faulted to write.
    pub write_faults: PartCounter,
    /// Requests that wait for an operation that is under way.
    pub competing_requests: PartCounter,
    /// Requests ahead of their use that were dropped.
    pub dropped_prefetches: PartCounter,
    /// Flushes that the node asks for.
    pub flushes: PartCounter,
    /// Nanoseconds of faults to read.
    pub read_ns: PartCounter,
    /// Nanoseconds of faults to write.
    pub write_ns: PartCounter,
    /// Nanoseconds of calls.
    pub call_ns: PartCounter,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct PartCounter(AtomicU64);

impl PartCounter {
    /// Adds to it.
    pub fn add(&self, by: u64) {
        if by > 0 {
            self.0.fetch_add(by, Ordering::Relaxed);
        }
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The messages of one kind that were sent.
#[derive(Debug, Default)]
struct Sent {
    messages: PartCounter,
    bytes: PartCounter,
}

impl Default for PartCounters {
    fn default() -> PartCounters {
        PartCounters {
            by_kind: std::array::from_fn(|_| Sent::default()),
            traffic: Default::default(),
            read_faults: PartCounter::default(),
            write_faults: PartCounter::default(),
            competing_requests: PartCounter::default(),
            dropped_prefetches: PartCounter::default(),
            flushes: PartCounter::default(),
            read_ns: PartCounter::default(),
            write_ns: PartCounter::default(),
            call_ns: PartCounter::default(),
        }
    }
}

impl PartCounters {
    /// Counts a message of this kind, which goes as so many bytes.
    pub fn sent(&self, kind: MessageKind, bytes: u64) {
        let sent = &self.by_kind[kind as usize];
        sent.messages.add(1);
        sent.bytes.add(bytes);
    }

    /// A message goes out, to whichever node.
    pub fn goes(&self) {
        self.traffic[0].add(1);
    }

    /// What a message leads to was done.
    pub fn was_taken(&self) {
        self.traffic[1].add(1);
    }

    /// How many messages went out, and how many were taken.
    pub fn traffic(&self) -> (u64, u64) {
        let [sent, taken] = &self.traffic;
        (sent.get(), taken.get())
    }

    /// Adds what was counted so far.
    pub fn add_to(&self, counters: &mut Counters) {
        for (kind, sent) in MessageKind::ALL.into_iter().zip(&self.by_kind) {
            let (messages, bytes) = (sent.messages.get(), sent.bytes.get());
            if messages == 0 {
                continue;
            }
            let of_kind = counters.by_kind.entry(kind).or_default();
            of_kind.messages += messages;
            of_kind.bytes += bytes;
            if !kind.is_diagnostic() {
                counters.messages += messages;
                counters.data_bytes += bytes;
            }
        }
        counters.raw_read_faults += self.read_faults.get();
        counters.raw_write_faults += self.write_faults.get();
        counters.competing_requests += self.competing_requests.get();
        counters.dropped_prefetches += self.dropped_prefetches.get();
        counters.raw_flushes += self.flushes.get();
        counters.raw_read_ns += self.read_ns.get();
        counters.raw_write_ns += self.write_ns.get();
        counters.raw_call_ns += self.call_ns.get();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostic_messages_are_counted_by_kind_alone() {
        let (parts, mut counters) = (PartCounters::default(), Counters::default());
        parts.sent(MessageKind::MemoryData, 100);
        parts.sent(MessageKind::Probe, 10);
        parts.add_to(&mut counters);
        assert_eq!((counters.messages, counters.data_bytes), (1, 100));
        assert_eq!(counters.by_kind[&MessageKind::Probe].bytes, 10);
    }
}
