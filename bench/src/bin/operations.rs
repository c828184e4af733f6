//! What an operation on an object costs in groups of two, three and more, and how many messages it
//! takes: a call of a copy on another node, and an ordered write, by a member that is not the
//! sequencer and by the sequencer. The other nodes wait at a barrier.
//!
//! Alone the nodes are threads; `dhole run -n 3 -- target/release/operations` makes them processes.
//! Nothing is pinned. The best and the middle of several runs are printed, in microseconds.
#![forbid(unsafe_code)]

use bench::Outcome;
use bench::table;
use bench::took::Took;
use dhole::{Config, NodeId, Object, Result, Strategy, Worker, on, replicated};
use serde::{Deserialize, Serialize};

const ROUNDS: usize = 7;
const OPERATIONS: usize = 20_000;

#[derive(Serialize, Deserialize)]
struct Counter(u64);

#[dhole::object]
impl Counter {
    pub fn add(&mut self, n: u64) -> u64 {
        self.0 += n;
        self.0
    }
}

/// Messages that all nodes have sent so far.
fn messages(w: &mut Worker<'_>) -> Result<u64> {
    let sent = w.counters().messages;
    Ok(w.all_reduce(sent, |a, b| a + b)?)
}

/// What operations of `caller` take, as all nodes hear, and how many messages one takes.
fn measure(w: &mut Worker<'_>, caller: NodeId, kept: Strategy) -> Result<(Vec<f64>, f64)> {
    let counter: Object<Counter> = w.once(|w| Ok(w.new_object(kept, Counter(0))?))?;
    let took: Object<Took> = w.once(|w| Ok(w.new_object(on(caller), Took(Vec::new()))?))?;
    // All know where they are.
    took.told(w)?;
    let before = messages(w)?;
    w.barrier()?;
    if w.node() == caller {
        let mut micros = Vec::new();
        for _ in 0..ROUNDS {
            let begun = w.now();
            for _ in 0..OPERATIONS {
                counter.add(w, 1)?;
            }
            let all = (w.now() - begun).as_secs_f64();
            micros.push(all * 1e6 / OPERATIONS as f64);
        }
        took.say(w, micros)?;
    }
    w.barrier()?;
    let sent = messages(w)? - before;
    let micros = took.told(w)?;
    Ok((micros, sent as f64 / (ROUNDS * OPERATIONS) as f64))
}

fn main() -> Outcome<()> {
    let run = Config::nodes(2).run(|w| {
        let last = NodeId(w.nodes() as u16 - 1);
        let all = [
            ("a call", NodeId(0), on(last)),
            ("an ordered write at the sequencer", NodeId(0), replicated()),
            ("an ordered write elsewhere", last, replicated()),
        ];
        let measured = all.map(|(what, caller, kept)| {
            let measured = measure(w, caller, kept)?;
            Ok((what, measured))
        });
        let measured = measured.into_iter().collect::<Result<Vec<_>>>()?;
        Ok((measured, w.nodes()))
    })?;
    let (measured, nodes) = run.value;
    if run.report.node.index() == 0 {
        for (what, (micros, messages)) in measured {
            table::row(&format!("{what}, {nodes} nodes"), "us", micros);
            println!("messages of all nodes an operation: {messages:.3}");
        }
    }
    Ok(())
}
