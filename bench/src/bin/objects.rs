//! What operations on objects cost: reads of a replica and of an own copy, and writes, beside a
//! bare lock; ordered writes and calls of a copy elsewhere, on two nodes, beside a remote procedure
//! of 8 bytes over shared memory.
//!
//! Alone the nodes are threads; `dhole run -n 2 -- target/release/objects` makes them processes,
//! for which the ratios are asked. Nothing is pinned; who waits spins for 100 us. The best and the
//! middle of several runs are printed, in nanoseconds. An argument chooses those whose names begin
//! so.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;

use bench::Outcome;
use bench::floors::Called;
use bench::table::{self, Summary, ratio};
use bench::took::Took;
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

const ROUNDS: usize = 7;
const WRITES: u64 = 20_000;

fn main() -> Outcome<()> {
    if Called::serves(None)? {
        return Ok(());
    }
    // All of them, or those whose names begin so.
    let only = std::env::args().nth(1).unwrap_or_default();
    let row = |name: &str, measure: &dyn Fn() -> Vec<f64>| -> Option<Summary> {
        let rounds = name.starts_with(&only).then(measure)?;
        // It is node 0 that measures.
        (!rounds.is_empty()).then(|| table::row(name, "ns", rounds))
    };
    let compare = |name: &str, of: Option<Summary>, to: Option<Summary>, asked: &str| {
        if let (Some(of), Some(to)) = (of, to) {
            ratio(name, of, to, asked);
        }
    };
    let bare = Mutex::new(1_u64);
    let lock = || black_box(&bare).lock().map_or(0, |value| *value);
    let (alone, here) = (1, on(NodeId(0)));
    let locked = row("a bare lock", &|| rounds(1_000_000, lock));
    row("read, own copy", &|| read(alone, here));
    let replica = row("read, replica", &|| read(alone, replicated()));
    compare("to the lock", replica, locked, "25 ns, of one thread");
    row("write, own copy", &|| write(alone, here));
    row("write, ordered, of 1", &|| write(alone, replicated()));
    let called = row("write, a remote procedure beside it", &remote_procedure);
    let ordered = row("write, ordered, of 2", &|| write(2, replicated()));
    compare("to the remote procedure", ordered, called, "<= 2");
    let ordered = row("write, ordered, of 2, by the other", &|| {
        measured_on(NodeId(1), 2, replicated(), WRITES, add)
    });
    compare("to the remote procedure", ordered, called, "none");
    let elsewhere = row("write, copy elsewhere", &|| write(2, on(NodeId(1))));
    compare("to the remote procedure", elsewhere, called, "<= 1.5");
    Ok(())
}

fn add(w: &mut Worker<'_>, counter: &Object<Counter>) -> Result<u64> {
    counter.add(w, 1).map_err(Into::into)
}

fn read(nodes: usize, strategy: Strategy) -> Vec<f64> {
    measured_on(NodeId(0), nodes, strategy, 1_000_000, |w, counter| {
        counter.get(w).map_err(Into::into)
    })
}

fn write(nodes: usize, strategy: Strategy) -> Vec<f64> {
    measured_on(NodeId(0), nodes, strategy, WRITES, add)
}

/// What `f` takes on `node`, told by node 0.
fn measured_on(
    node: NodeId,
    nodes: usize,
    strategy: Strategy,
    times: u64,
    f: impl Fn(&mut Worker<'_>, &Object<Counter>) -> Result<u64> + Sync,
) -> Vec<f64> {
    let run = Config::nodes(nodes).run(|w| {
        let counter = w.once(|w| Ok(w.new_object(strategy, Counter(0))?))?;
        let took = w.once(|w| Ok(w.new_object(on(node), Took(Vec::new()))?))?;
        if w.node() == node {
            let all = rounds(times, || f(w, black_box(&counter)).expect("an operation"));
            took.say(w, all)?;
        }
        w.barrier()?;
        match w.node() {
            NodeId(0) => Ok(took.told(w)?),
            _ => Ok(Vec::new()),
        }
    });
    run.expect("a run").value
}

/// A remote procedure that node 0 calls, while the other one sleeps.
fn remote_procedure() -> Vec<f64> {
    let run = Config::nodes(2).run(|w| {
        let mut all = Vec::new();
        if w.node() == NodeId(0) {
            let measured = || -> Outcome<Vec<f64>> {
                let called = Called::over_shm()?;
                let call = |_| Ok(called.call(WRITES as u32)?.as_nanos() as f64);
                let all = (0..ROUNDS).map(call).collect::<Outcome<_>>();
                called.end()?;
                all
            };
            all = measured().expect("another process");
        }
        w.barrier()?;
        Ok(all)
    });
    run.expect("a run").value
}

/// Nanoseconds of one of `times` calls, in each of several runs.
fn rounds(times: u64, mut f: impl FnMut() -> u64) -> Vec<f64> {
    let mut run = |_| {
        let begun = Instant::now();
        let mut sum = 0_u64;
        for _ in 0..times {
            sum = sum.wrapping_add(f());
        }
        black_box(sum);
        begun.elapsed().as_nanos() as f64 / times as f64
    };
    (0..ROUNDS).map(&mut run).collect()
}
