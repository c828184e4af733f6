//! What a barrier costs at which no node has written anything, and how many messages it takes.
//!
//! Alone the nodes are threads; `dhole run -n 8 -- target/release/barriers` makes them processes,
//! and `dhole run --barrier central` makes all barriers central. Nothing is pinned. The best and
//! the middle of several runs are printed, in microseconds.
#![forbid(unsafe_code)]

use std::ops::Add;

use bench::Outcome;
use bench::table;
use dhole::Config;

const ROUNDS: usize = 7;
const BARRIERS: u32 = 2_000;

fn main() -> Outcome<()> {
    let run = Config::nodes(8).run(|w| {
        let mut took = Vec::new();
        w.barrier()?;
        let before = w.counters().messages;
        for _ in 0..ROUNDS {
            let begun = w.now();
            for _ in 0..BARRIERS {
                w.barrier()?;
            }
            let time = w.now() - begun;
            took.push(time.as_secs_f64() * 1e6 / f64::from(BARRIERS));
        }
        let sent = w.counters().messages - before;
        Ok((took, w.all_reduce(sent, u64::add)?, w.nodes()))
    })?;
    // Every process has the value of its own node.
    let (took, messages, nodes) = run.value;
    if run.report.node.index() == 0 {
        table::row(&format!("a barrier of {nodes}"), "us", took);
        let barriers = ROUNDS as f64 * f64::from(BARRIERS);
        println!("messages a barrier: {:.3}", messages as f64 / barriers);
    }
    Ok(())
}
