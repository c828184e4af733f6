//! What is counted is what is sent: the bytes that a report counts are those of the frames of its
//! messages that were handed to the port.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use conformance::ports::{self, Make};
use conformance::run_processes;
use dhole::{Lock, NodeId, Result, Worker, on, replicated};
use dhole_live::Processes;
use dhole_model::{Counters, Notify};
use dhole_net::{Layer, Port, SendError};
use dhole_node::{Machine, Settings};
use serde::{Deserialize, Serialize};

const NODES: usize = 3;

/// A port that adds up the frames of messages that it is given.
struct Weighing {
    port: Box<dyn Port>,
    messages: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
}

impl Weighing {
    /// A frame is a header of 16 bytes: what it brings, and the bytes that announce types before
    /// the message, which are metadata and not counted.
    fn weigh(&self, parts: &[&[u8]]) {
        let frame = parts.concat();
        let number = |at: usize| {
            let bytes = frame[at..at + 4].try_into().expect("four of them");
            u64::from(u32::from_le_bytes(bytes))
        };
        let (announced, message) = (number(8), number(12));
        if frame[0] == 1 && message > 0 {
            self.messages.fetch_add(1, Ordering::SeqCst);
            let bytes = frame.len() as u64 - announced;
            self.bytes.fetch_add(bytes, Ordering::SeqCst);
        }
    }
}

impl Layer for Weighing {
    type Inner = dyn Port;

    fn inner(&self) -> &Self::Inner {
        &*self.port
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        self.inner().send_with(to, parts, notify)?;
        self.weigh(parts);
        Ok(())
    }

    fn send_each(&self, to: &mut Vec<NodeId>, parts: &[&[u8]]) -> Result<(), SendError> {
        let before = to.len();
        let sent = self.inner().send_each(to, parts);
        (to.len()..before).for_each(|_| self.weigh(parts));
        sent
    }
}

#[derive(Serialize, Deserialize)]
struct Sum(u64);

#[dhole::object]
impl Sum {
    pub fn add(&mut self, more: u64) -> u64 {
        self.0 += more;
        self.0
    }

    pub fn get(&self) -> u64 {
        self.0
    }
}

/// Objects that are shared, locks, barriers with and without news, collectives, and calls of
/// objects that are on one node and replicated.
fn program(w: &mut Worker<'_>) -> Result<()> {
    let me = w.node().index() as u64;
    let all = w.once(|w| Ok([w.alloc(1_u64), w.alloc(2), w.alloc(3)]))?;
    let large = w.once(|w| Ok(w.alloc([0_u64; 700])))?;
    for round in 0..20 {
        Lock::numbered(3).with(w, |w| {
            *all[0].get_mut(w) += me;
            large.get_mut(w)[round] += 1;
            Ok(())
        })?;
        w.barrier()?;
        assert!(all.iter().all(|one| *one.get(w) > 0));
        w.barrier()?;
        w.barrier()?;
    }
    assert_eq!(w.all_reduce(me, |one, other| one + other)?, 3);
    let made = w.once(|w| {
        let one = w.new_object(on(NodeId(1)), Sum(0))?;
        Ok([one, w.new_object(replicated(), Sum(0))?])
    })?;
    for object in made {
        for _ in 0..20 {
            object.add(w, 1)?;
            object.get(w)?;
        }
    }
    Ok(())
}

fn counted_is_sent(name: &str, make: Make) {
    let (messages, bytes) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let machine = |port| -> Box<dyn Machine + Send> {
        let port = Weighing {
            port,
            messages: Arc::clone(&messages),
            bytes: Arc::clone(&bytes),
        };
        Box::new(Processes::new(Box::new(port), 0).expect("the port offers all"))
    };
    let machines = make(NODES).into_iter().map(machine).collect();
    let mut ended = run_processes(machines, &Settings::nodes(NODES), program);
    let first = ended.swap_remove(0).expect("a sound program");
    let mut total = Counters::default();
    first.counters.iter().for_each(|node| total.add(node));
    let kinds = total.by_kind.values();
    let counted = kinds.fold((0, 0), |(messages, bytes), kind| {
        (messages + kind.messages, bytes + kind.bytes)
    });
    let sent = (
        messages.load(Ordering::SeqCst),
        bytes.load(Ordering::SeqCst),
    );
    assert_eq!(counted, sent, "{name}: {:?}", total.by_kind);
    assert!(total.by_kind.len() > 10, "{:?}", total.by_kind);
}

#[test]
fn the_bytes_that_are_counted_are_those_that_are_handed_to_the_port() {
    counted_is_sent("in process", ports::local);
    counted_is_sent("shm", ports::shm);
}
