//! Many rows read in the order of the memory object.

use std::sync::atomic::Ordering::Relaxed;

use dhole::MessageKind::{MemoryAck, MemoryData, MemoryForward, MemoryRequest};
use dhole::Worker;
use dhole::memory::{self, MemoryError, SharedRows};

use crate::{everywhere, messages};

/// Rows of which each node writes every other one.
fn written(w: &mut Worker<'_>, count: usize, len: usize) -> dhole::Result<SharedRows<u32>> {
    let rows = w.once(|w| Ok(memory::alloc_rows::<u32>(w, count, len)?))?;
    for row in (w.node().index()..count).step_by(w.nodes()) {
        let fills = |numbers: &mut [u32]| {
            let all = numbers.iter_mut().zip(0..);
            all.for_each(|(number, place)| *number = 1000 * row as u32 + place);
        };
        rows.row(row).write(w, fills)?;
    }
    w.barrier()?;
    Ok(rows)
}

#[test]
fn rows_are_read_as_one_slice_by_the_messages_of_one_round() {
    let runs = everywhere(2, 3, |w| {
        // 32 rows of 256 bytes, on two pages in 16 views.
        let rows = written(w, 32, 64)?;
        let mut sum = 0;
        if w.node().index() == 1 {
            let before = w.counters().raw_read_faults;
            sum = rows.range(4..24).read(w, |rows| {
                let all = rows.contiguous().expect("rows of 256 bytes");
                assert_eq!((rows.count(), all.len()), (20, 20 * 64));
                for row in 0..20 {
                    assert_eq!(rows.row(row), &all[64 * row..64 * (row + 1)]);
                    assert_eq!(rows.row(row)[63], 1000 * (row as u32 + 4) + 63);
                }
                all.iter().step_by(64).map(|first| u64::from(*first)).sum()
            })?;
            assert_eq!(w.counters().raw_read_faults - before, 1);
            // A row that came so is read by itself, too, and one is written.
            assert_eq!(rows.row(4).read(w, |row| row[1])?, 4001);
            rows.row(4).write(w, |row| row[1] = 7)?;
        }
        w.barrier()?;
        let found = rows.row(4).read(w, |row| row[1])?;
        w.barrier()?;
        Ok((found, w.reduce(sum, |one, other| one + other)?))
    });
    for run in runs {
        assert_eq!(run.value, (7, Some((4..24).sum::<u64>() * 1000)));
        // Node 1 has written 16 rows, and reads ten that node 0 has; it writes one of those, which
        // node 0 reads then.
        let sent = messages(&run);
        let of = |kind| {
            sent.iter()
                .find(|(it, _)| *it == kind)
                .map_or(0, |(_, sent)| *sent)
        };
        assert_eq!(of(MemoryRequest), 16 + 10 + 1);
        assert_eq!(of(MemoryForward), 1);
        assert_eq!(of(MemoryData), 16 + 10 + 1);
        assert_eq!(of(MemoryAck), 16 + 10 + 1);
    }
}

#[test]
fn rows_with_gaps_between_pages_are_rows_and_no_slice() {
    let runs = everywhere(2, 0, |w| {
        // 672 bytes: six on a page, and 64 bytes behind them.
        let rows = written(w, 20, 168)?;
        let found = rows.range(3..17).read(w, |rows| {
            let firsts: Vec<u32> = (0..rows.count()).map(|row| rows.row(row)[0]).collect();
            (rows.contiguous().is_none(), firsts)
        })?;
        let none = rows
            .range(2..2)
            .read(w, |rows| rows.contiguous().map(<[u32]>::len))?;
        w.barrier()?;
        Ok((found, none))
    });
    for run in runs {
        let firsts: Vec<u32> = (3..17).map(|row| row * 1000).collect();
        assert_eq!(run.value, ((true, firsts), Some(0)));
    }
}

#[test]
fn cells_are_copied_as_they_are_at_one_moment() {
    const ROWS: usize = 12;
    let runs = everywhere(3, 9, |w| {
        let rows = w.once(|w| Ok(memory::alloc_chunks::<u64>(w, ROWS, 24, 2)?))?;
        let mut numbers = vec![0; ROWS * 24];
        for round in 0..40_u64 {
            // Each node adds one to all numbers of a row, of which no copy shows a part.
            let row = (round as usize * 5 + w.node().index()) % ROWS;
            rows.row(row).try_with(w, |cells| {
                cells.iter().for_each(|cell| _ = cell.fetch_add(1, Relaxed));
            })?;
            rows.range(..).copy_to(w, &mut numbers)?;
            for row in numbers.chunks(24) {
                assert!(row.iter().all(|number| *number == row[0]), "{row:?}");
            }
        }
        w.barrier()?;
        rows.range(..).copy_to(w, &mut numbers)?;
        let slices = rows.range(..).read(w, |_| ());
        assert!(matches!(slices, Err(MemoryError::Used { .. })));
        w.barrier()?;
        Ok(numbers.iter().step_by(24).sum::<u64>())
    });
    for run in runs {
        assert_eq!(run.value, 3 * 40);
    }
}
