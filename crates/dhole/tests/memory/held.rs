//! Rows as slices, which no node changes while a closure has them.

use std::sync::atomic::Ordering::Relaxed;

use dhole::memory::{self, MemoryError, SharedRows, hold, sync};
use dhole::{CallSite, Error, MessageKind, Result, Worker};

use crate::{config, everywhere};

const ROWS: usize = 6;
const TURNS: u64 = 30;

/// What all rows of [`moves`] have together.
pub const SUM: u64 = 1000 * 40 * ROWS as u64;

fn rows(w: &mut Worker<'_>) -> Result<SharedRows<u64>> {
    w.once(|w| Ok(memory::alloc_rows::<u64>(w, ROWS, 40)?))
}

/// Each node moves something from row to row, and all rows together stay as they are.
pub fn moves(w: &mut Worker<'_>) -> Result<u64> {
    let rows = rows(w)?;
    if w.node().index() == 0 {
        for row in 0..ROWS {
            rows.row(row).write(w, |row| row.fill(1000))?;
        }
    }
    w.barrier()?;
    for turn in 0..TURNS as usize {
        let (from, to) = (turn % ROWS, (turn + 1 + w.node().index()) % ROWS);
        if from != to {
            let [from, to] = [from, to].map(|row| rows.row(row));
            hold(w, [], [from, to], |[], [from, to]| {
                for (from, to) in from.iter_mut().zip(to) {
                    (*from, *to) = (*from - 1, *to + 1);
                }
            })?;
        }
        let [first, last] = [turn % ROWS, (turn + 3) % ROWS].map(|row| rows.row(row));
        let same = hold(w, [first, last], [], |rows, []| {
            let all_alike = |row: &&[u64]| row.iter().all(|number| *number == row[0]);
            rows.iter().all(all_alike)
        });
        // Nobody was in the middle of a row.
        assert!(same?);
    }
    w.barrier()?;
    let mut sum = 0;
    for row in 0..ROWS {
        sum += rows.row(row).read(w, |row| row.iter().sum::<u64>())?;
    }
    w.barrier()?;
    Ok(sum)
}

#[test]
fn rows_that_are_held_are_whole() {
    for nodes in [1, 2, 4] {
        for run in everywhere(nodes, 5, moves) {
            assert_eq!(run.value, SUM, "{nodes} nodes");
        }
    }
}

#[test]
fn a_row_that_is_held_takes_the_messages_of_one_access() {
    let runs = everywhere(2, 0, |w| {
        let rows = rows(w)?;
        if w.node().index() == 1 {
            rows.row(2).write(w, |row| row[39] = 7)?;
            rows.row(2).write(w, |row| row[39] += 1)?;
        }
        w.barrier()?;
        let read = rows.row(2).read(w, |row| row[39])?;
        w.barrier()?;
        Ok(read)
    });
    for run in runs {
        assert_eq!(run.value, 8);
        let sent = |kind: MessageKind| run.report.total().by_kind[&kind].messages;
        assert_eq!(sent(MessageKind::MemoryRequest), 1);
        assert_eq!(sent(MessageKind::MemoryData), 2);
        let total = run.report.total();
        assert_eq!((total.raw_read_faults, total.raw_write_faults), (1, 1));
    }
}

#[test]
fn what_cannot_be_held_is_an_error_in_words() {
    let run = config(1).run(|w| {
        let (rows, others) = (rows(w)?, memory::alloc_rows::<u64>(w, 2, 8)?);
        let [one, two] = [0, 1].map(|row| rows.row(row));
        let overlap = hold(w, [one], [one], |_, _| ());
        assert!(
            matches!(overlap, Err(MemoryError::Overlap { .. })),
            "{overlap:?}"
        );
        let overlap = hold(w, [], [two, one, two], |_, _| ());
        assert!(
            matches!(overlap, Err(MemoryError::Overlap { .. })),
            "{overlap:?}"
        );
        hold(w, [one, one], [two], |_, _| ())?;
        // As cells, or as slices.
        let cells = others.row(0).cells(w);
        let used = others.row(0).read(w, |_| ());
        assert!(matches!(used, Err(MemoryError::Used { .. })), "{used:?}");
        cells[0].store(1, Relaxed);
        assert!(matches!(one.try_cells(w), Err(MemoryError::Used { .. })));
        // A row that is freed, and a reference that is made up: it goes beyond its minipage.
        others.row(1).free(w)?;
        let gone = others.row(1).read(w, |_| ());
        assert!(matches!(gone, Err(MemoryError::Gone { .. })), "{gone:?}");
        // SAFETY: references are an address and a length, of which all values are tested when they
        // are used.
        let beyond: memory::SharedRow<u64> = unsafe {
            let (at, _): (u64, u64) = std::mem::transmute(two);
            std::mem::transmute((at, 41_u64))
        };
        let beyond = beyond.read(w, |_| ());
        assert!(
            matches!(beyond, Err(MemoryError::Foreign { .. })),
            "{beyond:?}"
        );
        // In a closure that holds memory no thread waits.
        let locks = one.read(w, |_| sync::lock(1, CallSite::caller()))?;
        assert!(
            locks
                .expect_err("it might wait")
                .to_string()
                .contains("holds memory")
        );
        Ok(sync::lock(1, CallSite::caller())?)
    });
    run.expect("a run");
}

#[test]
fn a_row_is_released_where_its_closure_panics() {
    let run = config(2).run(|w| {
        let rows = rows(w)?;
        if w.node().index() == 0 {
            let write = std::panic::AssertUnwindSafe(|| {
                rows.row(0)
                    .write(w, |_| std::panic::panic_any("of the closure's own words"))
            });
            assert!(std::panic::catch_unwind(write).is_err());
        }
        w.barrier()?;
        rows.row(0).write(w, |row| row[0] += 1)?;
        w.barrier()?;
        Ok::<u64, Error>(rows.row(0).read(w, |row| row[0])?)
    });
    assert_eq!(run.expect("a run").value, 2);
}
