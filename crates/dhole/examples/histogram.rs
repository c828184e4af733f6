//! Counts and their look-up by index: `cargo run --example histogram`.
//!
//! Three nodes throw dice. Each adds its throws to one shared array of counts, most of which belong
//! to other nodes, without a lock and without fetching a count. Then each reads some of the counts.

use dhole::{Config, RunError};

const SUMS: usize = 61;
const THROWS: usize = 30_000;

fn main() -> Result<(), RunError> {
    let run = Config::nodes(3).seed(1).run(|w| {
        let counts = w.once(|w| Ok(w.alloc_array::<u64>(SUMS)))?;

        // The sum of ten dice with seven sides, 0 to 6.
        let throw = || {
            let random = w.random();
            (0..10).map(|die| (random >> (6 * die)) % 7).sum::<u64>() as usize
        };
        let throws: Vec<usize> = (0..THROWS).map(|_| throw()).collect();

        // Many indices, many of them repeated. The owners get one message at the barrier.
        counts.add_all(w, &throws, &vec![1; THROWS])?;
        w.barrier()?;

        // Copies in the order of the indices, in one round of messages.
        let middle: Vec<usize> = (25..36).collect();
        let around = counts.gather(w, &middle);
        println!("{}: sums 25 to 35 came {around:?} times", w.node());

        let refused = counts.try_gather(w, &[30, SUMS]).unwrap_err();
        println!("{}: {refused}", w.node());
        w.barrier()?;
        Ok(counts.slice(w, ..).iter().sum::<u64>())
    })?;
    assert_eq!(run.value, 3 * THROWS as u64);
    Ok(())
}
