//! What it costs to make things and give them back, over and over: a round must cost as much at the
//! end as at the beginning, and leave nothing behind.
//!
//! Each line gives microseconds a round in the first tenth and in the last one, and the bytes of
//! memory that the process has grown by since the first tenth, for each round since.
#![forbid(unsafe_code)]

use std::time::Instant;

use dhole::{Config, Result, Worker};

/// A round of something.
type Round = fn(&mut Worker<'_>) -> Result<()>;

fn main() -> Result<(), dhole::RunError> {
    let rounds: [(&str, usize, Round); 3] = [
        ("1,000 objects, then 600 numbers", 20_000, in_turn),
        ("an object", 2_000_000, one),
        ("a lock of each kind", 200_000, locks),
    ];
    for (name, count, round) in rounds {
        Config::nodes(1).run(|w| measure(w, name, count, round))?;
    }
    Ok(())
}

fn measure(w: &mut Worker<'_>, name: &str, count: usize, round: Round) -> Result<()> {
    let (mut took, mut bytes) = (Vec::new(), 0);
    for tenth in 0..10 {
        let start = Instant::now();
        for _ in 0..count / 10 {
            round(w)?;
        }
        took.push(start.elapsed().as_secs_f64() * 1e7 / count as f64);
        if tenth == 0 {
            bytes = resident_bytes();
        }
    }
    let grown = resident_bytes().saturating_sub(bytes) as f64 / (count as f64 * 0.9);
    let (first, last) = (took[0], took[9]);
    println!("{name:<34} {first:9.3} {last:9.3} us a round, {grown:7.2} bytes kept");
    Ok(())
}

fn in_turn(w: &mut Worker<'_>) -> Result<()> {
    let objects = w.alloc_range(1000, |i| i as u64);
    w.free(objects)?;
    let array = w.alloc_array::<f64>(600);
    array.slice_mut(w, ..).fill(1.0);
    Ok(w.free(array)?)
}

fn one(w: &mut Worker<'_>) -> Result<()> {
    let one = w.alloc(1_u64);
    Ok(w.free(one)?)
}

fn locks(w: &mut Worker<'_>) -> Result<()> {
    w.new_lock().acquire(w)?.release(w)?;
    w.new_rw_lock().write(w)?.release(w)?;
    let semaphore = w.new_semaphore(1);
    semaphore.acquire(w)?;
    Ok(semaphore.release(w)?)
}

/// Bytes of memory that the process has.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident = pages.split_whitespace().nth(1);
    resident
        .and_then(|pages| pages.parse::<u64>().ok())
        .unwrap_or(0)
        * 4096
}
