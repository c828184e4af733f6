//! What operations on objects cost, beside a bare lock: reads of a replica and of an own copy, one
//! thread; calls of a copy elsewhere and ordered writes, two threads.
//!
//! The fastest of several runs counts, in nanoseconds. An argument chooses those whose names
//! begin so.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;

use dhole::{Config, NodeId, Object, Result, Strategy, Worker, on, replicated};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Counter(u64);

#[dhole::object]
impl Counter {
    pub fn get(&self) -> u64 {
        self.0
    }

    pub fn add(&mut self, n: u64) -> u64 {
        self.0 += n;
        self.0
    }
}

fn main() {
    // All of them, or those whose names begin so.
    let only = std::env::args().nth(1).unwrap_or_default();
    let row = |name: &str, measure: &dyn Fn() -> f64| {
        if name.starts_with(&only) {
            println!("{name:<22} {:9.1} ns", measure());
        }
    };
    let bare = Mutex::new(1_u64);
    let lock = || black_box(&bare).lock().map_or(0, |value| *value);
    let (alone, here) = (1, on(NodeId(0)));
    row("a bare lock", &|| best(1_000_000, lock));
    row("read, own copy", &|| read(alone, here));
    row("read, replica", &|| read(alone, replicated()));
    row("write, own copy", &|| write(alone, here));
    row("write, ordered, of 1", &|| write(alone, replicated()));
    row("write, ordered, of 2", &|| write(2, replicated()));
    row("write, copy elsewhere", &|| write(2, on(NodeId(1))));
}

fn read(nodes: usize, strategy: Strategy) -> f64 {
    measure(nodes, strategy, 1_000_000, |w, counter| {
        counter.get(w).map_err(Into::into)
    })
}

fn write(nodes: usize, strategy: Strategy) -> f64 {
    measure(nodes, strategy, 20_000, |w, counter| {
        counter.add(w, 1).map_err(Into::into)
    })
}

fn measure(
    nodes: usize,
    strategy: Strategy,
    times: u64,
    f: impl Fn(&mut Worker<'_>, &Object<Counter>) -> Result<u64> + Sync,
) -> f64 {
    let run = Config::nodes(nodes).run(|w| {
        let counter = w.once(|w| Ok(w.new_object(strategy, Counter(0))?))?;
        let mut took = 0.0;
        if w.node() == NodeId(0) {
            took = best(times, || f(w, black_box(&counter)).expect("an operation"));
        }
        w.barrier()?;
        Ok(took)
    });
    run.expect("a run").value
}

/// Nanoseconds of one of `times` calls, in the fastest of several runs.
fn best(times: u64, mut f: impl FnMut() -> u64) -> f64 {
    let mut run = || {
        let begun = Instant::now();
        let mut sum = 0_u64;
        for _ in 0..times {
            sum = sum.wrapping_add(f());
        }
        black_box(sum);
        begun.elapsed().as_nanos() as f64 / times as f64
    };
    (0..7).map(|_| run()).fold(f64::INFINITY, f64::min)
}
