//! Freed memory is allocated again.

use std::sync::atomic::Ordering::Relaxed;

use dhole::Config;
use dhole::Worker;
use dhole::memory::{self, MemoryAccessFailure, MemoryError, MemorySettings, TryAccess};

use crate::everywhere;

#[test]
fn rows_that_are_freed_and_allocated_in_turns_take_no_more_memory() {
    let runs = everywhere(3, 0, |w| {
        let mut bytes = Vec::new();
        for round in 0..20_u64 {
            let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 30, 16)?))?;
            for row in (w.node().index()..30).step_by(w.nodes()) {
                let cells = rows.row(row).cells(w);
                assert!(cells.iter().all(|cell| cell.load(Relaxed) == 0));
                cells[3].store(round + 1, Relaxed);
            }
            w.barrier()?;
            let sum: u64 = (0..30)
                .map(|row| rows.row(row).cells(w)[3].load(Relaxed))
                .sum();
            assert_eq!(sum, 30 * (round + 1));
            w.barrier()?;
            if w.node().index() == 1 {
                rows.free(w)?;
            }
            w.barrier()?;
            let usage = memory::usage(w)?;
            bytes.push((usage.bytes, usage.minipage_bytes));
        }
        Ok(bytes)
    });
    for run in runs {
        let expected = [(run.value[0].0, 0); 20];
        assert_eq!(run.value, expected);
    }
}

#[test]
fn a_stale_reference_is_an_error_until_its_space_is_allocated_again() {
    let runs = everywhere(2, 0, |w| {
        let stale = w.once(|w| Ok(memory::alloc_rows::<u32>(w, 1, 8)?.row(0)))?;
        stale.cells(w)[w.node().index()].fetch_add(1, Relaxed);
        w.barrier()?;
        if w.node().index() == 1 {
            stale.free(w)?;
        }
        w.barrier()?;
        // Of as many bytes, but other numbers: it lies elsewhere.
        let other = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 1, 4)?.row(0)))?;
        other.cells(w)[0].fetch_add(1, Relaxed);
        let gone = stale.cells(w)[0].try_load(Relaxed).unwrap_err();
        assert_eq!(gone.cause, MemoryAccessFailure::Gone);
        w.barrier()?;
        let again = w.once(|w| Ok(memory::alloc_rows::<u32>(w, 1, 8)?.row(0)))?;
        let both = again.cells(w)[0].fetch_add(1, Relaxed);
        w.barrier()?;
        // It leads to numbers of the same size.
        let found = stale.cells(w)[0].load(Relaxed);
        w.barrier()?;
        Ok((both < 2, found, other.cells(w)[0].load(Relaxed)))
    });
    for run in runs {
        assert_eq!(run.value, (true, 2, 2));
    }
}

#[test]
fn memory_that_is_used_up_is_an_error_that_says_how_much() {
    let small = MemorySettings {
        views: 2,
        bytes: 16 << 10,
    };
    let run = Config::nodes(1).memory(small).run(|w: &mut Worker<'_>| {
        let rows = memory::alloc_rows::<u64>(w, 3, 512)?;
        let full = memory::alloc_rows::<u64>(w, 2, 512).unwrap_err();
        assert!(matches!(full, MemoryError::Refused(_)));
        rows.free(w)?;
        let again = memory::alloc_rows::<u64>(w, 3, 512)?;
        again.row(2).cells(w)[511].store(1, Relaxed);
        Ok(full.to_string())
    });
    let words = run.expect("a run").value;
    for part in [
        "allocating 2 minipages of 4096 bytes",
        "12288 bytes of this node's part",
        "4096 are left",
        "MemorySettings::bytes",
    ] {
        assert!(words.contains(part), "{words}");
    }
}
