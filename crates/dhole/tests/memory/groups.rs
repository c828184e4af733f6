//! Rows whose neighbours come with them.

use std::sync::atomic::Ordering::Relaxed;

use dhole::MessageKind::MemoryRequest;
use dhole::memory;

use crate::everywhere;

const ROWS: usize = 256;

/// Node 1 reads, or writes, all rows from the first to the last: its faults, and the sum.
fn goes_through(writes: bool) -> [(u64, u64); 2] {
    let runs = everywhere(2, 0, |w| {
        let rows = w.once(|w| Ok(memory::alloc_groups::<u64>(w, ROWS, 16)?))?;
        if w.node().index() == 0 {
            (0..ROWS).for_each(|row| rows.row(row).cells(w)[1].store(row as u64, Relaxed));
        }
        w.barrier()?;
        if w.node().index() == 1 {
            for row in 0..ROWS {
                let cell = &rows.row(row).cells(w)[1];
                match writes {
                    true => _ = cell.fetch_add(1, Relaxed),
                    false => assert_eq!(cell.load(Relaxed), row as u64),
                }
            }
        }
        w.barrier()?;
        let sum = (0..ROWS).map(|row| rows.row(row).cells(w)[1].load(Relaxed));
        let sum = sum.sum();
        w.barrier()?;
        Ok(sum)
    });
    runs.map(|run| (run.value, run.report.total().sent(MemoryRequest)))
}

#[test]
fn a_node_that_goes_from_row_to_row_asks_for_few_of_them() {
    let sum = (0..ROWS as u64).sum::<u64>();
    for (writes, sum) in [(false, sum), (true, sum + ROWS as u64)] {
        let [threads, simulated] = goes_through(writes);
        assert_eq!((threads.0, simulated.0), (sum, sum));
        // On threads the node may ask for a row that is on its way.
        assert!(threads.1 <= ROWS as u64, "{}", threads.1);
        assert_eq!(simulated.1, 8, "groups of 32 rows");
    }
}

#[test]
fn each_row_of_a_group_is_one_node_s_to_write() {
    let runs = everywhere(4, 6, |w| {
        let rows = w.once(|w| Ok(memory::alloc_groups::<u64>(w, 24, 8)?))?;
        for turn in 0..200 {
            let row = (turn * 7 + w.node().index() * 5) % 24;
            rows.row(row).cells(w)[turn % 8].fetch_add(1, Relaxed);
        }
        w.barrier()?;
        let all = (0..24).flat_map(|row| rows.row(row).cells(w));
        let sum: u64 = all.map(|cell| cell.load(Relaxed)).sum();
        w.barrier()?;
        Ok(sum)
    });
    for run in runs {
        assert_eq!(run.value, 4 * 200);
    }
}
