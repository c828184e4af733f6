//! What a barrier, an all-reduce and a miss cost between two processes, on every port, beside the
//! port's own round trip: an object of 64 bytes is fetched from a node whose worker waits, and so
//! polls, and from one whose worker computes, so that its service thread has to wake up.
//!
//! Nothing is pinned: the service thread needs a core. Workers spin for 100 us while they wait.
#![forbid(unsafe_code)]

use std::hint::{black_box, spin_loop};
use std::process::Child;
use std::time::{Duration, Instant};

use bench::table::{Summary, head, ratio, row};
use bench::{Outcome, floors};
use dhole_live::Processes;
use dhole_model::NodeId;
use dhole_net::Port;
use dhole_node::{Settings, Worker, run_on};

/// By these arguments this program is the other process.
const SERVE_SHM: &str = "serve-shm";
const SERVE_TCP: &str = "serve-tcp";
const ROUNDS: usize = 7;
const TRIPS: u32 = 20_000;
const BARRIERS: u32 = 20_000;
const MISSES: usize = 20_000;
/// Misses at a node that computes, each of which may take a wake-up.
const SLOW_MISSES: usize = 2_000;
/// Frames of this length end the echoing.
const ENOUGH: usize = 1;

fn take(port: &dyn Port) -> usize {
    let mut taken = None;
    while taken.is_none() {
        port.poll(&mut |_, frame| taken = Some(frame.len()));
        spin_loop();
    }
    taken.unwrap_or_default()
}

/// Sends back what comes until it is enough.
fn echo(port: &dyn Port) -> Outcome<()> {
    loop {
        let bytes = take(port);
        port.send(NodeId(0), &[&[0; 64][..bytes]])?;
        if bytes == ENOUGH {
            return Ok(());
        }
    }
}

fn round_trips(port: &dyn Port, trips: u32) -> Outcome<Duration> {
    let began = Instant::now();
    for _ in 0..trips {
        port.send(NodeId(1), &[&[0; 8]])?;
        take(port);
    }
    Ok(began.elapsed() / trips)
}

/// What one node measured: a barrier, a miss at a node that waits, one at a node that computes, and
/// an all-reduce of a number.
fn run(machine: &Processes) -> Outcome<[Duration; 4]> {
    let mut settings = Settings::nodes(2);
    // Otherwise what lies beside a missed object comes with it.
    settings.optimisations.read_aggregation = false;
    let ran = run_on(machine, &settings, |w: &mut Worker<'_>| {
        let objects = w.once(|w| Ok(w.alloc_range(MISSES + SLOW_MISSES, |_| [0_u64; 8])))?;
        if w.node().index() == 1 {
            for object in objects.iter() {
                object.get_mut(w)[0] = 1;
            }
        }
        w.barrier()?;
        let mut times = [Duration::ZERO; 4];
        let began = Instant::now();
        for _ in 0..BARRIERS {
            w.barrier()?;
        }
        times[0] = began.elapsed() / BARRIERS;
        let began = Instant::now();
        for number in 0..BARRIERS {
            black_box(w.all_reduce(number, u32::max)?);
        }
        times[3] = began.elapsed() / BARRIERS;
        let mut all = objects.iter();
        if w.node().index() == 0 {
            let began = Instant::now();
            for object in all.by_ref().take(MISSES) {
                black_box(object.get(w)[0]);
            }
            times[1] = began.elapsed() / MISSES as u32;
        }
        w.barrier()?;
        let long = Duration::from_millis(200);
        let began = Instant::now();
        if w.node().index() == 0 {
            for object in all {
                black_box(object.get(w)[0]);
            }
            times[2] = began.elapsed() / SLOW_MISSES as u32;
        } else {
            while began.elapsed() < long {
                spin_loop();
            }
        }
        w.barrier()?;
        Ok(times)
    });
    Ok(ran?.value)
}

fn measure(port: impl Port + 'static, mut child: Child, floor: &dyn Fn() -> f64) -> Outcome<()> {
    let name = port.name();
    let trips: Outcome<Vec<Duration>> = (0..ROUNDS).map(|_| round_trips(&port, TRIPS)).collect();
    let micros = |time: &Duration| time.as_secs_f64() * 1e6;
    port.send(NodeId(1), &[&[0; ENOUGH]])?;
    take(&port);
    let trips = trips?.iter().map(micros).collect();
    let machine = Processes::new(Box::new(port), 0)?;
    let (mut words, mut measured) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // While the other process sleeps, for a run has not begun.
        words.push(floor());
        measured.push(run(&machine)?);
    }
    let word = row("a word to and fro in shared memory", "us", words);
    row(&format!("{name}: 8 bytes there and back"), "us", trips);
    let say = |which: usize, what: &str| -> Summary {
        let times = measured.iter().map(|times| micros(&times[which]));
        row(&format!("{name}: {what}"), "us", times.collect())
    };
    say(0, "a barrier of two");
    say(3, "an all-reduce of a number, of two");
    let miss = say(1, "a miss of 64 bytes, the owner waits");
    if name == "shm" {
        ratio("to the word", miss, word, "<= 4");
    }
    say(2, "a miss of 64 bytes, the owner computes");
    drop(machine);
    child.wait()?;
    Ok(())
}

fn serve(port: impl Port + 'static) -> Outcome<()> {
    echo(&port)?;
    let machine = Processes::new(Box::new(port), 0)?;
    for _ in 0..ROUNDS {
        run(&machine)?;
    }
    Ok(())
}

fn main() -> Outcome<()> {
    match std::env::args().nth(1).as_deref() {
        Some(SERVE_SHM) => serve(floors::shm_end()?),
        Some(SERVE_TCP) => serve(floors::tcp_end()?),
        _ => {
            println!("not pinned; waiting workers spin; {ROUNDS} rounds");
            head();
            let word = || floors::word(50_000, None).as_secs_f64() * 1e6;
            let (port, child) = floors::shm(SERVE_SHM)?;
            measure(port, child, &word)?;
            let (port, child) = floors::tcp(SERVE_TCP)?;
            measure(port, child, &word)
        }
    }
}
