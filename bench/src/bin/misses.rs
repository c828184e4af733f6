//! What a miss costs, of one object and of eight that are fetched at once, and how many messages it
//! takes. Node 0 misses objects of 64 bytes that the other nodes wrote, in turn, while they wait at
//! a barrier, or, with the argument `computing`, while they compute.
//!
//! Alone the nodes are threads; `dhole run -n 3 -- target/release/misses` makes them processes.
//! `DHOLE_ONE_SIDED=off` asks for every object by message. Nothing is pinned. The
//! best and the middle of several runs are printed, in microseconds.
#![forbid(unsafe_code)]

use std::time::Duration;

use bench::Outcome;
use bench::table;
use dhole::{Config, Optimisations};

const ROUNDS: usize = 7;
const MISSES: usize = 2_000;
const TOGETHER: usize = 8;

/// How long owners compute that do.
const COMPUTING: Duration = Duration::from_secs(2);

/// What node 0 measured of fetching so many objects at once: microseconds, round by round, and
/// messages.
struct Measured {
    micros: Vec<f64>,
    messages: u64,
}

/// Node 0 fetches objects of the other nodes in turn, so many at once.
fn measure(w: &mut dhole::Worker<'_>, together: usize, computing: bool) -> dhole::Result<Measured> {
    let nodes = w.nodes();
    let others = nodes - 1;
    let each = MISSES / others * ROUNDS * together;
    let all = w.once(|w| Ok(w.alloc_range(each * others, |_| [0_u64; 8])))?;
    let of = |node: usize| all.slice((node - 1) * each..node * each);
    if w.node().index() > 0 {
        let mine = of(w.node().index());
        w.prefetch(mine)?;
        for object in mine.iter() {
            object.get_mut(w)[0] = 1;
        }
    }
    w.barrier()?;
    let (mut micros, mut messages) = (Vec::new(), 0);
    if w.node().index() == 0 {
        for round in 0..ROUNDS {
            let before = w.counters().messages;
            let begun = w.now();
            for fetch in 0..MISSES / others * others {
                let place = round * (MISSES / others) + fetch / others;
                let from = of(1 + fetch % others);
                w.prefetch(from.slice(place * together..(place + 1) * together))?;
            }
            let took = w.now() - begun;
            micros.push(took.as_secs_f64() * 1e6 / (MISSES / others * others) as f64);
            messages += w.counters().messages - before;
        }
    } else if computing {
        let begun = w.now();
        while w.now() - begun < COMPUTING {
            std::hint::black_box(begun);
        }
    }
    w.barrier()?;
    Ok(Measured { micros, messages })
}

fn main() -> Outcome<()> {
    let computing = std::env::args().any(|argument| argument == "computing");
    // Otherwise what lies beside a missed object comes with it.
    let alone = Optimisations {
        read_aggregation: false,
        ..Optimisations::default()
    };
    let run = Config::nodes(2).optimisations(alone).run(|w| {
        let one = measure(w, 1, computing)?;
        let eight = measure(w, TOGETHER, computing)?;
        Ok((one, eight, w.nodes()))
    })?;
    let (one, eight, nodes) = run.value;
    if run.report.node.index() == 0 {
        for (what, measured) in [("one object", one), ("eight objects at once", eight)] {
            let owners = if computing { "computing" } else { "waiting" };
            let name = format!("a miss of {what}, {nodes} nodes, owners {owners}");
            let misses = measured.micros.len() * (MISSES / (nodes - 1) * (nodes - 1));
            table::row(&name, "us", measured.micros);
            let asked = measured.messages as f64 / misses as f64;
            println!("messages of node 0 a miss: {asked:.3}");
        }
    }
    Ok(())
}
