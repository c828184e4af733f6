//! A node that reads a replica, starts an operation or writes a replica polls its port.

use std::sync::atomic::{AtomicU64, Ordering};

use conformance::{OverPorts, ports};
use dhole::{NodeId, replicated};
use dhole_net::{Layer, Port};

static LOOKS: AtomicU64 = AtomicU64::new(0);

/// Counts how often node 0 polls for messages that wake no node.
struct Looked(Box<dyn Port>);

impl Layer for Looked {
    type Inner = Box<dyn Port>;

    fn inner(&self) -> &Box<dyn Port> {
        &self.0
    }

    fn peek(&self) -> bool {
        if self.0.me() == NodeId(0) {
            LOOKS.fetch_add(1, Ordering::Relaxed);
        }
        false
    }
}

fn looked(nodes: usize) -> Vec<Box<dyn Port>> {
    let looked = |port| Box::new(Looked(port)) as _;
    ports::local(nodes).into_iter().map(looked).collect()
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Sum(u64);

#[dhole::object]
impl Sum {
    pub fn get(&self) -> u64 {
        self.0
    }

    pub fn add(&mut self, more: u64) {
        self.0 += more;
    }
}

/// The polls of node 0, the sequencer, during so many reads of a replica, started operations and
/// writes. Node 1 does nothing.
fn looks(reads: u64, starts: u64, writes: u64) -> u64 {
    let on = OverPorts {
        name: "local",
        make: looked,
    };
    let run = conformance::run(&on, 2, 1, |w| {
        if w.node() != NodeId(0) {
            return Ok(0);
        }
        let sum = w.new_object(replicated(), Sum(7))?;
        let before = LOOKS.load(Ordering::Relaxed);
        for _ in 0..reads {
            assert_eq!(sum.get(w)?, 7);
        }
        for _ in 0..starts {
            sum.start_add(w, 1)?.wait(w)?;
        }
        for _ in 0..writes {
            sum.add(w, 1)?;
        }
        Ok(LOOKS.load(Ordering::Relaxed) - before)
    });
    run.unwrap().value
}

#[test]
fn every_read_every_start_and_every_write_of_a_replica_looks() {
    let few = looks(16, 0, 0);
    let more = [looks(96, 0, 0), looks(16, 30, 0), looks(16, 0, 50)];
    assert_eq!(more.map(|looks| looks - few), [80, 30, 50]);
}
