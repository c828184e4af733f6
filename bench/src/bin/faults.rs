//! What a fault in raw memory costs between two processes, and how often it takes the node lock of
//! either node. Node 0 reads minipages of a page each that node 1 wrote, and then writes them,
//! while node 1 waits at a barrier, or, with the argument `computing`, while it computes.
//!
//! `dhole run -n 2 -- target/release/faults` makes the nodes processes; alone they are threads.
//! Each node is a domain by itself. Nothing is pinned. The best and the middle of several rounds
//! are printed, in microseconds.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bench::{Outcome, table};
use dhole::memory::{self, MemorySettings, SharedRows};
use dhole::{Config, Domains, Worker};

const ROUNDS: usize = 7;
const FAULTS: usize = 1_000;
/// Numbers of a minipage that fills a page.
const NUMBERS: usize = 512;

/// How long the other node computes where it does.
const COMPUTING: Duration = Duration::from_millis(500);

/// What a node measured of faults of one kind.
struct Measured {
    /// Microseconds of a fault, round by round.
    micros: Vec<f64>,
    /// How often the node took its lock, and sent a message, in all rounds.
    locks: u64,
    messages: u64,
}

/// Node 1 has the only copy of each minipage. Node 0 faults at one after the other.
fn measure(
    w: &mut Worker<'_>,
    rows: SharedRows<u64>,
    writes: bool,
    computing: bool,
) -> dhole::Result<Measured> {
    let cells: Vec<_> = (0..FAULTS).map(|row| &rows.row(row).cells(w)[0]).collect();
    let is_first = w.node().index() == 0;
    let mut measured = Measured {
        micros: Vec::new(),
        locks: 0,
        messages: 0,
    };
    for round in 0..ROUNDS as u64 {
        if !is_first {
            cells.iter().for_each(|cell| cell.store(round, Relaxed));
        }
        w.barrier()?;
        let before = (w.node_locks(), w.counters().messages);
        let begun = w.now();
        if is_first {
            for cell in &cells {
                match writes {
                    true => cell.store(round + 1, Relaxed),
                    false => assert_eq!(cell.load(Relaxed), round),
                }
            }
            let took = w.now() - begun;
            measured
                .micros
                .push(took.as_secs_f64() * 1e6 / FAULTS as f64);
        } else if computing {
            while w.now() - begun < COMPUTING {
                std::hint::black_box(begun);
            }
        }
        w.barrier()?;
        measured.messages += w.counters().messages - before.1;
        measured.locks += w.node_locks() - before.0;
    }
    Ok(measured)
}

fn main() -> Outcome<()> {
    let computing = std::env::args().any(|argument| argument == "computing");
    let config = Config::nodes(2)
        .domains(Domains::Node)
        .memory(MemorySettings::default());
    let run = config.run(|w| {
        let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, FAULTS, NUMBERS)?))?;
        let all = [false, true].map(|writes| measure(w, rows, writes, computing));
        let [reads, writes] = all;
        Ok([("read", reads?), ("write", writes?)])
    })?;
    let node = run.report.node;
    let all = (ROUNDS * FAULTS) as f64;
    for (what, measured) in run.value {
        let Measured {
            micros,
            locks,
            messages,
        } = measured;
        if node.index() == 0 {
            let other = if computing { "computing" } else { "waiting" };
            table::row(
                &format!("a fault to {what}, the other node {other}"),
                "us",
                micros,
            );
        }
        let (locks, messages) = (locks as f64 / all, messages as f64 / all);
        println!("  {node}: {locks:.3} times its node lock, {messages:.3} messages");
    }
    Ok(())
}
