//! A shared array: `cargo run --example array`.
//!
//! Three nodes take the running sums of one array together. Each writes the elements of its own
//! part, wherever the parts begin; what is written between two barriers is what the others fetch.

use dhole::{Config, RunError};

const LEN: usize = 10_000;

fn main() -> Result<(), RunError> {
    let run = Config::nodes(3).run(|w| {
        // Two arrays; nothing is stored anywhere until it is touched.
        let (values, ends) =
            w.once(|w| Ok((w.alloc_array::<u64>(LEN), w.alloc_array::<u64>(3))))?;
        let (me, nodes) = (w.node().index(), w.nodes());
        let mine = LEN * me / nodes..LEN * (me + 1) / nodes;

        // A plain `&mut [u64]`. Every element of it counts as written, and no other.
        let part = values.slice_mut(w, mine.clone());
        let mut sum = 0;
        for (place, value) in mine.clone().zip(part) {
            sum += place as u64;
            *value = sum;
        }
        *ends.get_mut(w, me) = sum;
        w.barrier()?;

        // All sums before ours, in one round of messages; then they are added to our part.
        let before: u64 = ends.slice(w, ..me).iter().sum();
        values
            .slice_mut(w, mine)
            .iter_mut()
            .for_each(|value| *value += before);
        w.barrier()?;

        let last = *values.get(w, LEN - 1);
        let beyond = values.try_slice(w, LEN - 1..LEN + 1).unwrap_err();
        println!("{}: the sum is {last}; {beyond}", w.node());
        Ok(last)
    })?;
    assert_eq!(run.value, (LEN * (LEN - 1) / 2) as u64);
    Ok(())
}
