//! Who reads a replica looks for what operations of others have written.

use std::sync::atomic::{AtomicU64, Ordering};

use conformance::{OverPorts, ports};
use dhole::replicated;
use dhole_net::{Layer, Port};

static LOOKS: AtomicU64 = AtomicU64::new(0);

/// Counts how often it is asked whether something has come that nobody is woken for.
struct Looked(Box<dyn Port>);

impl Layer for Looked {
    type Inner = Box<dyn Port>;

    fn inner(&self) -> &Box<dyn Port> {
        &self.0
    }

    fn has_come_at_leisure(&self) -> bool {
        LOOKS.fetch_add(1, Ordering::Relaxed);
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
}

/// Looks in a run that reads a replica so often.
fn looks(reads: u64) -> u64 {
    let before = LOOKS.load(Ordering::Relaxed);
    let on = OverPorts {
        name: "local",
        make: looked,
    };
    let run = conformance::run(&on, 1, 1, |w| {
        let sum = w.new_object(replicated(), Sum(7))?;
        for _ in 0..reads {
            assert_eq!(sum.get(w)?, 7);
        }
        Ok(())
    });
    run.unwrap();
    LOOKS.load(Ordering::Relaxed) - before
}

#[test]
fn every_read_looks() {
    let (few, many) = (looks(16), looks(96));
    assert_eq!(many - few, 80);
}
