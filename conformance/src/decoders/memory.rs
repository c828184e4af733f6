//! Messages about raw memory and its threads, to a node of three.

use dhole_model::{CallSite, NodeId};
use dhole_protocol::memory::sync::{ThreadEffect, ThreadId, ThreadSync};
use dhole_protocol::memory::{
    MemoryAct, MemoryEffect, MemoryFlush, MemoryMessage, MemoryOperation, Millipage,
};
use dhole_protocol::part::NodePart as _;
use dhole_protocol::{DeadlockProbe, Message, Waiter};

const NODES: usize = 3;
const OBJECT_BYTES: u64 = NODES as u64 * (64 << 10);
const VIEWS: u64 = 4;
/// The program of node 1.
const THREAD: ThreadId = ThreadId(1 << 48 | 1 << 32);
/// A number that means a lock, a barrier, a condition and a semaphore.
const KEY: u64 = 7;

struct Node {
    minipages: Millipage,
    flush: MemoryFlush,
    threads: ThreadSync,
    out: Vec<MemoryEffect>,
    thread_out: Vec<ThreadEffect>,
}

impl Node {
    /// The node, of which the byte says what kind it is: whether node 0, or it and node 1, manage
    /// all, whether it leads another node or is one that is led, and whether its minipages come in
    /// groups, or are written together.
    fn new(kind: u8) -> Node {
        let mut minipages = Millipage::new(NodeId(1), NODES, OBJECT_BYTES, VIEWS);
        minipages.allocate_released(kind & 16 == 16);
        if kind & 1 == 1 {
            let managers = match kind & 32 == 32 {
                true => &[NodeId(0), NodeId(1)][..],
                false => &[NodeId(0)],
            };
            minipages = minipages.with_managers(managers);
        } else {
            let allocated = match kind & 8 == 8 {
                true => minipages.allocate_in_groups(8, 128, 8),
                false => minipages.allocate(8, 128, 8),
            };
            allocated.expect("room for eight minipages");
            let large = minipages.allocate(1, 5000, 8);
            large.expect("room for one of two pages");
        }
        match kind >> 1 & 3 {
            1 => minipages.set_leaders(&[NodeId(0), NodeId(1), NodeId(1)]),
            2 => minipages.set_leaders(&[NodeId(0), NodeId(0), NodeId(2)]),
            _ => {}
        }
        Node {
            minipages,
            flush: MemoryFlush::default(),
            threads: ThreadSync::new(NodeId(1), NODES),
            out: Vec::new(),
            thread_out: Vec::new(),
        }
    }

    /// The program's thread does something at an address of a node.
    fn does(&mut self, what: u8, at: u8) {
        let window = OBJECT_BYTES / NODES as u64;
        let view = u64::from(at >> 6) << dhole_protocol::memory::VIEW_BITS;
        let address = view + u64::from(at & 3) * window + u64::from(at >> 2 & 15) * 512;
        let (site, out) = (CallSite::runtime("a fuzzer"), &mut self.thread_out);
        match what % 16 {
            0 => self.accesses(address, MemoryOperation::Read),
            1 => self.accesses(address, MemoryOperation::Write),
            2 => self.accesses(address, MemoryOperation::Free),
            3 => self.minipages.push(address, &mut self.out),
            4 => _ = self.minipages.prefetch(address, 128, &mut self.out),
            5 => self.minipages.goes_on(address, &mut self.out),
            6 => _ = self.threads.lock(THREAD, KEY, site, out),
            7 => _ = self.threads.unlock(THREAD, KEY, out),
            8 => _ = self.threads.arrive(THREAD, KEY, 2, site, out),
            9 => _ = self.threads.wait_on(THREAD, KEY, KEY, site, out),
            10 => self.threads.signal(KEY, at & 1 == 1, out),
            11 => _ = self.threads.acquire(THREAD, KEY, false, site, out),
            12 => _ = self.threads.edge_of(THREAD).map(|asker| self.probes(asker)),
            13 => _ = self.minipages.flush(&mut self.flush, &mut self.out),
            14 => self.flush = MemoryFlush::default(),
            _ => _ = self.threads.result(THREAD),
        }
    }

    /// The threads add their edges to a probe of one of them, which comes back and ends.
    fn probes(&mut self, asker: Waiter) {
        let mut probe = DeadlockProbe::begin(asker);
        for next in [NodeId(2), NodeId(1)] {
            probe.edges.visit(&self.threads);
            probe.edges.pass(NodeId(1), next, &[]);
        }
        if let Some(waits) = probe.found() {
            self.threads.told(&asker, waits, &mut self.thread_out);
        }
    }

    /// A thread accesses an address, unless it waits for one that is on the same page.
    fn accesses(&mut self, address: u64, operation: MemoryOperation) {
        self.minipages
            .access(address, operation, true, &mut self.out);
    }

    fn takes(&mut self, from: NodeId, message: Message, has_payload: bool) {
        let Message::Part(frame) = message else {
            return;
        };
        if let Some(message) = frame.message::<Millipage>() {
            let bytes = if has_payload {
                message.payload_bytes()
            } else {
                0
            };
            let (minipages, out) = (&mut self.minipages, &mut self.out);
            _ = minipages.deliver(from, message, bytes as usize, out);
        } else if let Some(message) = frame.message::<ThreadSync>() {
            let (threads, out) = (&mut self.threads, &mut self.thread_out);
            _ = threads.deliver(from, message, 0, out);
        }
    }

    /// Effects name nodes of the run, and minipages of the memory.
    fn check(&mut self) {
        for effect in self.thread_out.drain(..) {
            if let ThreadEffect::Send { to, .. } = effect {
                assert!(
                    to.index() < NODES,
                    "something about threads is sent to {to}"
                );
            }
        }
        for effect in self.out.drain(..) {
            match effect {
                MemoryEffect::Send { to, message } => {
                    assert!(to.index() < NODES, "something is sent to {to}");
                    let MemoryMessage { asker, .. } = message;
                    assert!(asker.index() < NODES, "something is sent for {asker}");
                }
                MemoryEffect::Act(
                    MemoryAct::Install(minipage)
                    | MemoryAct::Twin(minipage)
                    | MemoryAct::MergeDiff(minipage)
                    | MemoryAct::DropTwin(minipage)
                    | MemoryAct::Clear(minipage)
                    | MemoryAct::Permit { minipage, .. },
                ) => {
                    let is_within = minipage.is_within(OBJECT_BYTES, VIEWS);
                    assert!(is_within, "{minipage:?} is none of the memory's");
                }
                _ => {}
            }
        }
    }
}

/// Messages to a node of three, each with its sender and length before it, and between them what
/// the node's thread does. The node accepts or refuses each message, sends only to nodes of the
/// run, and changes only what is in the memory. The first byte decides which kind of node it is.
pub fn memory(bytes: &[u8]) {
    let Some((&kind, mut rest)) = bytes.split_first() else {
        return;
    };
    let mut node = Node::new(kind);
    while let Some((&[from, length], behind)) = rest.split_first_chunk() {
        rest = behind;
        if from & 0x40 == 0x40 {
            node.does(from & 0x3f, length);
        } else {
            let (message, behind) = behind.split_at(usize::from(length).min(behind.len()));
            rest = behind;
            if let Ok(message) = Message::decode(message) {
                // Ports know who sends.
                let sender = NodeId(u16::from(from & 2));
                node.takes(sender, message, from & 0x80 == 0);
            }
        }
        node.check();
    }
}
