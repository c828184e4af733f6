//! Isolated allocations: what is written past the end of one, or touched after it was freed.

use std::sync::atomic::Ordering::Relaxed;

use dhole::memory::{self, MemorySettings, SharedRow, TryAccess as _};
use dhole::sim::Settings;
use dhole::{Config, ConfigError, Domains, MemoryLayout, Result, Run, RunError, Worker};

use crate::cluster;

fn config(nodes: usize) -> Config {
    crate::config(nodes).memory_layout(MemoryLayout::Isolate)
}

/// Writes a row's bytes from one on, past its end.
fn writes(w: &Worker<'_>, row: SharedRow<u8>, bytes: std::ops::Range<usize>) -> Result<()> {
    let begins = row.as_ptr(w)?;
    for at in bytes {
        // SAFETY: what is behind the row lies on its last page, which is its alone.
        unsafe { begins.add(at).write_volatile(1) };
    }
    Ok(())
}

/// On threads and simulated.
fn both<R: Send>(
    nodes: usize,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> [std::result::Result<Run<R>, RunError>; 2] {
    let simulated = Settings::fixed_cost(nodes);
    [
        config(nodes).run(&program),
        config(nodes).simulate(simulated, &program),
    ]
}

/// The program fails so on both.
fn fails(
    nodes: usize,
    words: &[&str],
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<()> + Sync,
) {
    for run in both(nodes, program) {
        let said = run.map(|_| ()).expect_err("an overflow").to_string();
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}

/// Node 1 writes 3 bytes too many, and node 0 reads the row.
pub fn overflows(w: &mut Worker<'_>) -> Result<()> {
    let rows = w.once(|w| Ok(memory::alloc_rows::<u8>(w, 4, 100)?))?;
    if w.node().index() == 1 {
        writes(w, rows.row(2), 0..103)?;
    }
    w.barrier()?;
    if w.node().index() == 0 {
        rows.row(2).cells(w)[0].try_load(Relaxed)?;
    }
    Ok(w.barrier()?)
}

/// The words of that, and the line that allocates.
const OVERFLOWS: [&str; 3] = [
    "checking raw memory on node 1",
    "has written 3 bytes past the end of an allocation, at 0x2064",
    ": 100 bytes, allocated at crates/dhole/tests/memory/isolate.rs:53:",
];

#[test]
fn an_overflow_is_found_where_the_copy_is_sent() {
    fails(2, &OVERFLOWS, overflows);
}

#[test]
fn so_it_is_between_processes() {
    for ended in cluster::run(2, "overflows") {
        assert_eq!(ended.code, Some(1), "{}", ended.all);
        for word in OVERFLOWS {
            assert!(ended.all.contains(word), "{word}: {}", ended.all);
        }
    }
}

#[test]
fn an_overflow_is_found_at_free_and_at_the_end_of_the_program() {
    fails(1, &["on node 0", "has written 1 bytes past"], |w| {
        let row = memory::alloc_rows::<u8>(w, 1, 4096)?.row(0);
        writes(w, row, 4096..4097)?;
        Ok(row.free(w)?)
    });
    fails(2, &["on node 1", "has written 70 bytes past"], |w| {
        let row = memory::alloc_chunks::<u8>(w, 4, 25, 4)?.row(3);
        if w.node().index() == 1 {
            writes(w, row, 25..95)?;
        }
        Ok(w.barrier()?)
    });
    // Rows one behind the other, over three pages: the last one ends on the third.
    fails(
        2,
        &["on node 0", "has written 2 bytes past", ": 9000 bytes"],
        |w| {
            let rows = w.once(|w| Ok(memory::alloc_contiguous::<u8>(w, 9, 1000)?))?;
            for row in (w.node().index()..9).step_by(2) {
                writes(w, rows.row(row), 0..1000)?;
            }
            w.barrier()?;
            if w.node().index() == 0 {
                writes(w, rows.row(8), 1000..1002)?;
            }
            Ok(w.barrier()?)
        },
    );
}

#[test]
fn a_touch_after_free_names_who_freed_it_where() {
    for run in both(2, |w| {
        let row = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 1, 4)?.row(0)))?;
        row.cells(w)[w.node().index()].store(1, Relaxed);
        w.barrier()?;
        if w.node().index() == 1 {
            row.free(w)?;
        }
        w.barrier()?;
        // What is allocated now is not there.
        let other = memory::alloc_rows::<u64>(w, 1, 4)?.row(0);
        other.cells(w)[0].store(1, Relaxed);
        let touched = row.cells(w)[0].try_load(Relaxed);
        w.barrier()?;
        Ok(touched.expect_err("it was freed").to_string())
    }) {
        let said = run.expect("a run").value;
        for word in [
            "allocated at crates",
            "(1 x 32 bytes)",
            "freed by node 1 at crates",
        ] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}

#[test]
fn a_right_program_gets_what_it_gets_without() {
    let program = |w: &mut Worker<'_>| {
        let (rows, pages, groups, chunks) = w.once(|w| {
            let rows = memory::alloc_rows::<u32>(w, 12, 1000)?;
            let pages = memory::alloc_contiguous::<u32>(w, 12, 1000)?;
            let groups = memory::alloc_groups::<u32>(w, 12, 1024)?;
            Ok((
                rows,
                pages,
                groups,
                memory::alloc_chunks::<u32>(w, 12, 30, 5)?,
            ))
        })?;
        let (node, nodes) = (w.node().index(), w.nodes());
        for row in (node..12).step_by(nodes) {
            for of in [rows, pages, groups, chunks] {
                let cells = of.row(row).cells(w);
                cells
                    .iter()
                    .for_each(|cell| cell.store(row as u32 + 1, Relaxed));
            }
        }
        w.barrier()?;
        rows.range(..).fetch(w)?;
        let mut sum = 0;
        for of in [rows, pages, groups, chunks] {
            for row in 0..12 {
                sum += of
                    .row(row)
                    .cells(w)
                    .iter()
                    .map(|it| it.load(Relaxed))
                    .sum::<u32>();
            }
        }
        let mut copy = vec![0; 12_000];
        rows.range(..).copy_to(w, &mut copy)?;
        w.barrier()?;
        if node == 0 {
            rows.free(w)?;
        }
        let usage = memory::usage(w)?;
        Ok((sum, copy.iter().sum::<u32>(), usage.views))
    };
    for run in both(3, program) {
        let each = 78 * (1000 + 1000 + 1024 + 30);
        assert_eq!(run.expect("a run").value, (each, 78_000, 1));
    }
}

#[test]
fn of_contiguous_rows_that_have_no_room_nothing_is_allocated() {
    const PAGES: usize = 16;
    let settings = MemorySettings {
        views: 2,
        bytes: PAGES as u64 * 4096,
    };
    let run = config(1).memory(settings).run(|w| {
        // The whole pages have room, and the last one with its red zone has not.
        let refused = memory::alloc_contiguous::<u64>(w, PAGES, 512);
        let refused = refused.expect_err("there is no room").to_string();
        let words = "0 bytes of this node's part of the memory are used, by whole pages, and 65536";
        assert!(refused.contains(words), "{refused}");
        assert_eq!(memory::usage(w)?.bytes, 0);
        let rows = memory::alloc_contiguous::<u64>(w, PAGES - 2, 512)?;
        rows.row(PAGES - 3).cells(w)[511].store(3, Relaxed);
        Ok(memory::usage(w)?.bytes)
    });
    assert_eq!(run.expect("a run").value, 15 * 4096);
}

#[test]
fn nodes_that_have_the_same_pages_are_refused() {
    let refused = config(2).domains(Domains::Host).run(|_| Ok(())).map(|_| ());
    let refused = refused.expect_err("a setting that cannot be");
    let is_conflict = matches!(&refused, RunError::Config(ConfigError::Conflict { .. }));
    let words = refused.to_string();
    let which = "contradicts domains `host` (Config::domains)";
    assert!(is_conflict && words.contains(which), "{words}");
    assert!(words.contains("(--domains node)"), "{words}");
}
