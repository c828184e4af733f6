//! Histogram and gather of the *bale* collection over lamellar's batched array operations, with the
//! numbers and the output of `users histogram` and `users gather`: 10,000,000 random indices in a
//! table of 1,048,576 elements of 8 bytes, twice; two processes over shared memory, of one thread
//! each; sequential Rust beside them.
//!
//! `lamellar-peer [ROUNDS]`. It starts the processes itself; the fastest of each lap counts.
#![forbid(unsafe_code)]

use std::env;
use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use dhole_model::SplitMix64;
use lamellar::active_messaging::prelude::*;
use lamellar::array::prelude::*;

type Outcome<T> = Result<T, Box<dyn Error>>;

const TABLE: usize = 1 << 20;
const INDICES: usize = 10_000_000;
const PROCESSES: usize = 2;
/// What each process may share; a batch of all indices takes the most.
const HEAP_BYTES: usize = 1 << 30;
/// By this variable of lamellar's a process knows its number.
const NUMBER: &str = "LAMELLAR_PE_ID";

/// Seconds of two laps of a kernel, and a number that each way must find.
type Took = ([f64; 2], u64);

/// The indices of one of so many workers.
fn indices(worker: usize, workers: usize) -> Vec<usize> {
    let of = |i: usize| SplitMix64::after(i as u64) as usize % TABLE;
    let part = INDICES * worker / workers..INDICES * (worker + 1) / workers;
    part.map(of).collect()
}

fn value(i: usize) -> u64 {
    SplitMix64::after(!(i as u64))
}

/// A number that says what is in a part of a table.
fn digest(first: usize, counts: impl Iterator<Item = u64>) -> u64 {
    (first..).zip(counts).fold(0, |sum, (i, count)| {
        sum.wrapping_add(count.wrapping_mul(value(i)))
    })
}

fn sum(found: &[u64]) -> u64 {
    found.iter().fold(0, |sum, value| sum.wrapping_add(*value))
}

fn seconds(lap: impl FnOnce()) -> f64 {
    let began = Instant::now();
    lap();
    began.elapsed().as_secs_f64()
}

fn alone() -> [Took; 2] {
    let indices = indices(0, 1);
    let mut counts = vec![0_u64; TABLE];
    let mut count = || seconds(|| indices.iter().for_each(|i| counts[*i] += 1));
    let counted = [count(), count()];
    let table: Vec<u64> = (0..TABLE).map(value).collect();
    let mut found = 0;
    let mut look = || {
        let mut looked = Vec::new();
        let took = seconds(|| looked = indices.iter().map(|i| table[*i]).collect());
        found = sum(&looked).wrapping_add(found);
        took
    };
    let looked = [look(), look()];
    let counts = digest(0, counts.into_iter());
    [(counted, counts), (looked, found)]
}

/// One process of the peer.
fn peer() -> [Took; 2] {
    let world = LamellarWorldBuilder::new().build();
    let (me, workers) = (world.my_pe(), world.num_pes());
    let (indices, first) = (indices(me, workers), TABLE * me / workers);
    let counts = AtomicArray::<u64>::new(&world, TABLE, Distribution::Block).block();
    let count = || {
        world.barrier();
        seconds(|| {
            counts.batch_add(&indices, 1).block();
            world.wait_all();
            world.barrier();
        })
    };
    let counted = [count(), count()];
    let own = counts.local_data();
    let counts = digest(first, own.iter().map(|count| count.load()));
    let table = AtomicArray::<u64>::new(&world, TABLE, Distribution::Block).block();
    for (i, element) in table.local_data().iter().enumerate() {
        element.store(value(first + i));
    }
    let table = table.into_read_only().block();
    let mut found = 0;
    let mut look = || {
        let mut looked = Vec::new();
        world.barrier();
        let took = seconds(|| {
            looked = table.batch_load(&indices).block();
            world.barrier();
        });
        found = sum(&looked).wrapping_add(found);
        took
    };
    let looked = [look(), look()];
    [(counted, counts), (looked, found)]
}

fn spoken([(counted, counts), (looked, found)]: [Took; 2]) -> String {
    let [a, b] = counted;
    let [c, d] = looked;
    format!("laps {a} {b} {counts} {c} {d} {found}")
}

/// What a process says; lamellar says other things beside it.
fn heard(output: &str) -> Outcome<[Took; 2]> {
    let line = output.lines().find_map(|line| line.strip_prefix("laps "));
    let words: Vec<&str> = line.ok_or("a process says nothing")?.split(' ').collect();
    let [a, b, counts, c, d, found] = words[..] else {
        return Err(format!("a process says {words:?}").into());
    };
    Ok([
        ([a.parse()?, b.parse()?], counts.parse()?),
        ([c.parse()?, d.parse()?], found.parse()?),
    ])
}

/// Runs the processes. Their laps are the longer ones, their findings the sums.
fn processes(round: usize) -> Outcome<[Took; 2]> {
    let job = (std::process::id() as usize).wrapping_add(round);
    let start = |number: usize| -> Outcome<Child> {
        let mut command = Command::new(env::current_exe()?);
        command
            .env("LAMELLAR_BACKEND", "shmem")
            .env("LAMELLAR_NUM_PES", PROCESSES.to_string())
            .env(NUMBER, number.to_string())
            .env("LAMELLAR_JOB_ID", job.to_string())
            .env("LAMELLAR_THREADS", "1")
            .env("LAMELLAR_HEAP_SIZE", HEAP_BYTES.to_string())
            .stdout(Stdio::piped());
        Ok(command.spawn()?)
    };
    let children: Outcome<Vec<Child>> = (0..PROCESSES).map(start).collect();
    let mut all = [([0.0_f64; 2], 0_u64); 2];
    for child in children? {
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return Err(format!("a process ended with {}: {said}", output.status).into());
        }
        for ((laps, found), (its_laps, its_found)) in all.iter_mut().zip(heard(&said)?) {
            for (lap, its) in laps.iter_mut().zip(its_laps) {
                *lap = lap.max(its);
            }
            *found = found.wrapping_add(its_found);
        }
    }
    Ok(all)
}

fn main() -> Outcome<()> {
    if env::var(NUMBER).is_ok() {
        println!("{}", spoken(peer()));
        return Ok(());
    }
    let rounds: usize = env::args().nth(1).map_or(Ok(5), |rounds| rounds.parse())?;
    let mut fastest = [[[f64::INFINITY; 2]; 2]; 2];
    for round in 0..rounds {
        let (alone, peer) = (alone(), processes(round)?);
        for (i, ways) in fastest.iter_mut().enumerate() {
            if alone[i].1 != peer[i].1 {
                let (is, expected) = (peer[i].1, alone[i].1);
                return Err(format!("lamellar found {is}, expected {expected}").into());
            }
            for (way, took) in ways.iter_mut().zip([alone[i].0, peer[i].0]) {
                for (fastest, lap) in way.iter_mut().zip(took) {
                    *fastest = fastest.min(lap);
                }
            }
        }
    }
    for (name, [alone, peer]) in ["histogram", "gather"].iter().zip(fastest) {
        println!("{name}; ms, fastest of {rounds}, times as fast as sequential Rust");
        let rows = [
            ("sequential", alone),
            ("lamellar, two processes over shm", peer),
        ];
        for (way, laps) in rows {
            let cells = laps.iter().zip(alone).map(|(lap, alone)| {
                let speed = alone / lap;
                format!("{:>10.1} {:>9} {speed:>6.2}", lap * 1e3, "-")
            });
            println!("{way:<42}{}", cells.collect::<String>());
        }
    }
    Ok(())
}
