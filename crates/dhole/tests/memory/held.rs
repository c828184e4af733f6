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
fn a_row_on_two_pages_is_held_on_both() {
    // 500 numbers take less than a page, so every row but the first lies on two.
    const LEN: usize = 500;
    for run in everywhere(3, 2, |w| {
        let rows = w.once(|w| Ok(memory::alloc_contiguous::<u64>(w, 8, LEN)?))?;
        for turn in 0..20 {
            // The rows of a page are in common: one is read, and one beside it written.
            let row = (turn + w.node().index()) % 7;
            let both = [row, row + 1].map(|row| rows.row(row));
            hold(w, [both[0]], [both[1]], |[_], [row]| {
                row.iter_mut().for_each(|it| *it += 1)
            })?;
            hold(w, [both[1]], [both[0]], |[_], [row]| {
                row.iter_mut().for_each(|it| *it += 1)
            })?;
            let alike = both[1].read(w, |row| row.iter().all(|number| *number == row[0]))?;
            assert!(alike, "row {row} in turn {turn}");
        }
        w.barrier()?;
        let mut sum = 0;
        for row in 0..8 {
            sum += rows.row(row).read(w, |row| row.iter().sum::<u64>())?;
        }
        w.barrier()?;
        Ok(sum)
    }) {
        assert_eq!(run.value, 3 * 20 * 2 * LEN as u64);
    }
}

#[test]
fn rows_of_one_chunk_are_held_to_be_read_and_to_be_written() {
    for run in everywhere(3, 3, |w| {
        let rows = w.once(|w| Ok(memory::alloc_chunks::<u64>(w, 8, 200, 4)?))?;
        for turn in 0..40 {
            let row = (turn + w.node().index()) % 7;
            let (read, written) = (rows.row(row), rows.row(row + 1));
            hold(w, [read], [written], |[_], [row]| row[199] += 1)?;
        }
        w.barrier()?;
        let mut sum = 0;
        for row in 0..8 {
            sum += rows.row(row).read(w, |row| row[199])?;
        }
        w.barrier()?;
        Ok(sum)
    }) {
        assert_eq!(run.value, 3 * 40);
    }
}

#[test]
fn a_range_of_rows_ends_where_the_rows_do() {
    let run = config(1).run(|w| {
        let rows = memory::alloc_rows::<u64>(w, 4, 8)?;
        let panics = |range: &dyn Fn() -> memory::SharedRange<u64>| {
            let range = std::panic::AssertUnwindSafe(range);
            let said = std::panic::catch_unwind(|| range().count()).expect_err("there are 4");
            said.downcast_ref::<String>().cloned().expect("words")
        };
        let all = [
            panics(&|| rows.range(0..=usize::MAX)),
            panics(&|| {
                rows.range((
                    std::ops::Bound::Excluded(usize::MAX),
                    std::ops::Bound::Unbounded,
                ))
            }),
            panics(&|| rows.range(2..5)),
        ];
        assert!(
            all.iter()
                .all(|it| it.starts_with("rows from ") && it.ends_with(" of 4")),
            "{all:?}"
        );
        Ok(rows.range(1..=3).count() + rows.range(..).count())
    });
    assert_eq!(run.expect("a run").value, 7);
}

#[test]
fn references_to_rows_that_no_allocation_lays_out_are_refused() {
    let run = config(1).run(|w| {
        let rows = memory::alloc_rows::<u64>(w, 40, 8)?;
        let (of_others, large) = (
            memory::alloc_rows::<u64>(w, 1, 8)?,
            memory::alloc_rows::<u64>(w, 2, 4096)?,
        );
        rows.row(0).write(w, |row| row.fill(3))?;
        // SAFETY: references are six numbers, of which all values are tested when they are used.
        let of = |rows: SharedRows<u64>| unsafe {
            std::mem::transmute::<SharedRows<u64>, [u64; 6]>(rows)
        };
        let [at, count, stride, on_page, len, chunk] = of(rows);
        let forged = [
            // Pages, and not all rows in one minipage.
            [at, count, stride, 0, len, chunk],
            [at, count, stride, 0, len, count + 1],
            [at, count, stride, on_page, len, 0],
            [at, count, stride, on_page, len, u64::MAX],
            [at, u64::MAX, stride, on_page, len, chunk],
            [at, count, stride, on_page, u64::MAX / 2, chunk],
            [at, count, u64::MAX, on_page, len, chunk],
            [at, count, 8, on_page, len, chunk],
        ];
        for forged in forged {
            // SAFETY: as above.
            let rows = unsafe { std::mem::transmute::<[u64; 6], SharedRows<u64>>(forged) };
            let is_foreign = |error: MemoryError| matches!(error, MemoryError::Foreign { .. });
            let range = || rows.range(0..2.min(rows.count()));
            assert!(range().read(w, |_| ()).is_err_and(is_foreign), "{forged:?}");
            assert!(range().prefetch(w).is_err_and(is_foreign), "{forged:?}");
            assert!(range().fetch(w).is_err_and(is_foreign), "{forged:?}");
            assert!(rows.free(w).is_err_and(is_foreign), "{forged:?}");
        }
        let whole = rows
            .range(..)
            .read(w, |rows| (0..40).map(|row| rows.row(row)[7]).sum::<u64>());
        of_others.free(w)?;
        large.free(w)?;
        Ok(whole?)
    });
    assert_eq!(run.expect("a run").value, 3);
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
