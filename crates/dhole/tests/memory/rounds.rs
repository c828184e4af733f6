//! Many minipages in one round.

use std::sync::atomic::Ordering::Relaxed;

use dhole::MessageKind::{MemoryAck, MemoryData, MemoryForward, MemoryRequest};
use dhole::Worker;
use dhole::memory::{self, MemoryError, SharedRows};

use crate::{config, everywhere, messages};

const ROWS: usize = 40;

fn rows(w: &mut Worker<'_>, chunk: usize) -> dhole::Result<SharedRows<u64>> {
    w.once(|w| Ok(memory::alloc_chunks::<u64>(w, ROWS, 32, chunk)?))
}

/// Node 1 writes the first ten rows, and each node the first number of a row that it has read;
/// node 2 fetches most. The sum of what it reads then, and how often it faults.
fn fetches(w: &mut Worker<'_>) -> dhole::Result<(u64, u64)> {
    let rows = rows(w, 1)?;
    let node = w.node().index();
    if node == 1 {
        (0..10).for_each(|row| rows.row(row).cells(w)[1].store(row as u64, Relaxed));
    }
    w.barrier()?;
    let (mut sum, mut faults) = (0, 0);
    if node == 2 {
        rows.range(..=35).fetch(w)?;
        let before = w.counters().raw_read_faults;
        sum = (0..36)
            .map(|row| rows.row(row).cells(w)[1].load(Relaxed))
            .sum();
        faults = w.counters().raw_read_faults - before;
        // Of what is there nothing is asked for.
        rows.range(1..30).fetch(w)?;
        rows.range(3..3).fetch(w)?;
    }
    w.barrier()?;
    let both = w.reduce((sum, faults), |one, other| {
        (one.0 + other.0, one.1 + other.1)
    })?;
    Ok(both.unwrap_or_default())
}

#[test]
fn rows_are_fetched_in_one_round_and_read_without_a_fault() {
    for run in everywhere(3, 4, fetches) {
        assert_eq!(run.value, (45, 0), "{}", run.report.transport);
        let expected = [
            // Node 1 writes ten, and node 2 reads 36, of which it has none.
            (MemoryRequest, 10 + 36),
            (MemoryForward, 10),
            (MemoryData, 10 + 36),
            (MemoryAck, 10 + 36),
        ];
        assert_eq!(messages(&run), expected);
        assert_eq!(run.report.total().raw_read_faults, 1);
    }
}

#[test]
fn a_round_of_chunks_and_one_of_pages_ask_once_for_each() {
    let runs = everywhere(2, 0, |w| {
        let (chunks, pages) = (
            rows(w, 8)?,
            w.once(|w| Ok(memory::alloc_contiguous::<u64>(w, ROWS, 100)?))?,
        );
        if w.node().index() == 1 {
            // Of chunks 0 to 4 the last three.
            chunks.range(17..).fetch(w)?;
            // Rows of 800 bytes, from 8,000 to 16,800: four pages.
            pages.range(10..21).fetch(w)?;
        }
        w.barrier()?;
        Ok(())
    });
    for run in runs {
        let of = |kind| run.report.total().by_kind[&kind].messages;
        assert_eq!(of(MemoryRequest), 3 + 4);
        assert_eq!(of(MemoryData), 3 + 4);
    }
}

#[test]
fn a_round_of_more_rows_than_may_be_under_way_fetches_them_all() {
    let runs = everywhere(2, 0, |w| {
        let rows = w.once(|w| Ok(memory::alloc_rows::<u32>(w, 3000, 2)?))?;
        if w.node().index() == 0 {
            (0..3000).for_each(|row| rows.row(row).cells(w)[1].store(1, Relaxed));
        }
        w.barrier()?;
        let mut sum = 0;
        if w.node().index() == 1 {
            // Some are under way already, of which nobody hears.
            rows.range(..1500).prefetch(w)?;
            rows.range(..).fetch(w)?;
            sum = (0..3000)
                .map(|row| rows.row(row).cells(w)[1].load(Relaxed))
                .sum();
        }
        w.barrier()?;
        Ok(w.reduce(sum, |one, other| one + other)?)
    });
    for run in runs {
        assert_eq!(run.value, Some(3000));
        let total = run.report.total();
        assert!(total.dropped_prefetches >= 1500 - 1024);
        assert_eq!(total.by_kind[&MemoryData].messages, 3000);
    }
}

#[test]
fn freed_rows_are_passed_over_and_foreign_ones_refused() {
    let runs = everywhere(2, 0, |w| {
        let rows = rows(w, 1)?;
        w.barrier()?;
        if w.node().index() == 0 {
            rows.row(7).free(w)?;
        }
        w.barrier()?;
        if w.node().index() == 1 {
            rows.range(..).fetch(w)?;
            assert!(matches!(rows.row(7).free(w), Err(MemoryError::Gone { .. })));
        }
        w.barrier()?;
        Ok(rows)
    });
    for run in runs {
        let total = run.report.total();
        assert_eq!(total.by_kind[&MemoryData].messages, ROWS as u64 - 1);
        let small = memory::MemorySettings {
            views: 1,
            bytes: 4096,
        };
        let rows = run.value;
        let refused = config(1)
            .memory(small)
            .run(move |w| Ok(rows.range(..).fetch(w)));
        let refused = refused.expect("a run").value;
        assert!(
            matches!(refused, Err(MemoryError::Foreign { .. })),
            "{refused:?}"
        );
    }
}
