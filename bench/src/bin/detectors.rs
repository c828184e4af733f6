//! What both detectors cost: a hit, and what they find, up to the slow path.
//!
//! The fastest of several runs counts, in nanoseconds.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;

use dhole_heap::{Cluster, Monitor, Ref, Token};
use dhole_model::{Detector, NodeId};

fn main() {
    for detector in Detector::ALL {
        for (what, count, rounds) in [("in L1", 512, 20_000), ("in sequence", 1 << 20, 10)] {
            let took = hits(detector, count, rounds);
            println!("{detector:<6} a hit, {what:<12} {took:8.2} ns");
        }
        let [read, write] = found(detector);
        println!("{detector:<6} a miss, to the slow path {read:8.1} ns");
        println!("{detector:<6} a first write, to the slow path {write:8.1} ns");
    }
}

fn node(detector: Detector) -> Monitor<()> {
    let cluster = Cluster::with_detector(1, detector).expect("address space");
    Monitor::new(&cluster, NodeId(0), ())
}

fn hits(detector: Detector, count: u64, rounds: u32) -> f64 {
    let node = node(detector);
    let all = node.lock().split().0.alloc_range(count, |i| [i, i]);
    let order: Vec<_> = all.expect("memory").iter().collect();
    let took = node.lend(|token| {
        best(u64::from(rounds) * count, || {
            (0..rounds).map(|_| sum(&token, black_box(&order))).sum()
        })
    });
    took.expect("the one worker")
}

#[inline(never)]
fn sum(token: &Token<'_>, order: &[Ref<[u64; 2]>]) -> u64 {
    let one = |r: &Ref<[u64; 2]>| token.get(*r).map_or(0, |object| object[1]);
    order.iter().map(one).sum()
}

/// A read of what is invalid, and a write of what is clean.
fn found(detector: Detector) -> [f64; 2] {
    const TIMES: u64 = 20_000;
    let node = node(detector);
    let objects = node.lock().split().0.alloc_range(2, |i| i);
    let objects = objects.expect("memory");
    let (invalid, clean) = (objects.at(0), objects.at(1));
    let gone = node.lock().split().0.invalidate(invalid.oid());
    gone.expect("no worker computes");
    let took = node.lend(|mut token| {
        let read = best(TIMES, || {
            let missed = |_| u64::from(token.get(black_box(invalid)).is_err());
            (0..TIMES).map(missed).sum()
        });
        let write = best(TIMES, || {
            let missed = |_| u64::from(token.get_mut(black_box(clean)).is_err());
            (0..TIMES).map(missed).sum()
        });
        [read, write]
    });
    took.expect("the one worker")
}

/// The best of some runs of `f`, a step.
fn best(steps: u64, mut f: impl FnMut() -> u64) -> f64 {
    let run = |_| {
        let start = Instant::now();
        black_box(f());
        start.elapsed().as_nanos() as f64 / steps as f64
    };
    (0..9).map(run).fold(f64::INFINITY, f64::min)
}
