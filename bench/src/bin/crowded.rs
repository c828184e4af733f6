//! What a busy loop takes from a run beside it: Barnes-Hut and SOR, quiet and beside a thread that
//! computes all the time, in turn.
//!
//! `dhole run -n 2 -- target/release/crowded` makes the nodes processes; alone they are threads.
//! Nothing is pinned. On a machine with as many cores as nodes, a fair share of two cores among
//! three threads allows 1.5 times the quiet time. Node 0 has the loop, and prints the fastest and
//! the middle of several runs.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

use apps::{barnes, sor};
use bench::Outcome;
use dhole::{Config, Rows, Worker};

const REPETITIONS: usize = 5;
/// At most so many times the quiet time is asked for.
const ASKED: f64 = 2.0;

type Program<'a> = &'a (dyn Fn(&mut Worker<'_>) -> dhole::Result<f64> + Sync);

/// Runs a program, beside a busy loop or quiet; seconds, and whether this process has node 0.
fn run(program: Program<'_>, crowded: bool) -> Outcome<(f64, bool)> {
    let over = AtomicBool::new(false);
    let run = std::thread::scope(|scope| {
        // Where the nodes are processes, this one knows which it has.
        let first = dhole::process()?.is_none_or(|process| process.node.index() == 0);
        if crowded && first {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let run = Config::nodes(2).run(|w| program(w));
        over.store(true, Ordering::Relaxed);
        Outcome::Ok((run?, first))
    });
    let (run, first) = run?;
    Ok((run.value, first))
}

fn measure(name: &str, program: Program<'_>) -> Outcome<()> {
    let (mut quiet, mut crowded) = (Vec::new(), Vec::new());
    let mut first = false;
    for _ in 0..REPETITIONS {
        let (seconds, is_first) = run(program, false)?;
        quiet.push(seconds);
        first = is_first;
        crowded.push(run(program, true)?.0);
    }
    if !first {
        return Ok(());
    }
    for seconds in [&mut quiet, &mut crowded] {
        seconds.sort_by(f64::total_cmp);
    }
    for (what, at) in [("fastest", 0), ("middle", REPETITIONS / 2)] {
        let (quiet, crowded) = (quiet[at], crowded[at]);
        let ratio = crowded / quiet;
        println!("{name:12} {what:8} {quiet:9.4} s  {crowded:9.4} s  {ratio:5.2} ({ASKED} asked)");
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let bodies = barnes::Problem::new(131_072, 2, 1);
    let grid = sor::Problem {
        rows: 2048,
        columns: 2048,
        steps: 40,
        seed: 1,
        omega: 1.5,
        setup_measured: false,
        edges_first: false,
    };
    measure("Barnes-Hut", &|w| {
        let solved = barnes::shared::run(w, &bodies, None, |_| ())?;
        Ok(solved.steps.as_secs_f64())
    })?;
    measure("SOR", &|w| {
        let solved = sor::shared::run::<Rows<f64>>(w, &grid, None, |_| ())?;
        Ok(solved.sweeps.as_secs_f64())
    })
}
