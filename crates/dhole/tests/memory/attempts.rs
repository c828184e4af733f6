//! Accesses that are tried return an error where they cannot be made, and the program goes on.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::mpsc;
use std::time::Duration;

use dhole::memory::{
    self, MemoryAccessError, MemoryAccessFailure, MemoryError, SharedRow, SharedRows, TryAccess,
};
use dhole::{Result, Worker};

use crate::{cluster, config, everywhere, killed};

fn row(w: &mut Worker<'_>) -> Result<SharedRow<u64>> {
    w.once(|w| Ok(memory::alloc_rows::<u64>(w, 1, 4)?.row(0)))
}

/// What comes of accesses to a row that node 0 has freed.
pub fn of_a_freed_row(w: &mut Worker<'_>) -> Result<Vec<MemoryAccessFailure>> {
    let row = row(w)?;
    let cells = row.cells(w);
    cells[3].try_store(7, SeqCst)?;
    w.barrier()?;
    assert_eq!(cells[3].try_load(Relaxed)?, 7);
    let grown = row.try_with(w, |cells| cells[2].fetch_add(1, Relaxed))?;
    assert!(grown < w.nodes() as u64);
    w.barrier()?;
    if w.node().index() == 0 {
        row.free(w)?;
    }
    w.barrier()?;
    let errors: Vec<MemoryAccessError> = vec![
        cells[1].try_load(Relaxed).unwrap_err(),
        cells[2].try_store(1, Relaxed).unwrap_err(),
        cells[3].try_store(1, SeqCst).unwrap_err(),
    ];
    let writes: Vec<bool> = errors.iter().map(|error| error.writes).collect();
    assert_eq!(writes, [false, true, true]);
    for error in &errors {
        let words = error.to_string();
        let parts = [
            "allocated at",
            "attempts.rs:",
            "(1 x 32 bytes)",
            "freed by node 0 at",
        ];
        assert!(parts.iter().all(|part| words.contains(part)), "{words}");
    }
    let places: Vec<u64> = errors.iter().map(|error| error.address % 4096).collect();
    assert_eq!(places, [8, 16, 24]);
    assert!(errors.iter().all(|error| error.node == w.node()));
    let gone = row.try_with(w, |_| ()).unwrap_err();
    assert!(matches!(gone, MemoryError::Gone { .. }), "{gone}");
    assert!(gone.to_string().contains("freed by node 0 at"), "{gone}");
    w.barrier()?;
    Ok(errors.into_iter().map(|error| error.cause).collect())
}

#[test]
fn a_freed_row_is_an_error_and_the_program_goes_on() {
    for run in everywhere(3, 2, of_a_freed_row) {
        assert_eq!(run.value, [const { MemoryAccessFailure::Gone }; 3]);
    }
}

#[test]
fn a_raw_pointer_leads_to_the_same_numbers() {
    let runs = everywhere(2, 0, |w| {
        let row = row(w)?;
        let first = row.as_ptr(w)?;
        if w.node().index() == 1 {
            // SAFETY: the third of four numbers, in the run, which the other node does not access
            // before the barrier.
            unsafe { first.add(2).write_volatile(9) };
        }
        w.barrier()?;
        // SAFETY: as above; nobody writes it behind the barrier.
        let found = unsafe { first.add(2).read_volatile() };
        w.barrier()?;
        Ok((found, row.cells(w)[2].load(Relaxed)))
    });
    for run in runs {
        assert_eq!(run.value, (9, 9));
    }
}

/// What a run comes to, which would wait for ever if what it tests were broken.
fn within_limit<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> R {
    // No run here takes a hundredth of it.
    const LONGEST: Duration = Duration::from_secs(60);
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(run()));
    let ended = ended.recv_timeout(LONGEST);
    ended.unwrap_or_else(|why| panic!("the run has not ended after {LONGEST:?}: {why}"))
}

#[test]
fn an_access_that_would_wait_where_memory_is_held_is_an_error() {
    let runs = || {
        config(2).run(|w| {
            let rows: SharedRows<u64> = w.once(|w| Ok(memory::alloc_rows(w, 2, 4)?))?;
            let mut words = String::new();
            if w.node().index() == 1 {
                let other = &rows.row(1).cells(w)[0];
                let tried = rows.row(0).try_with(w, |_| other.try_load(Relaxed))?;
                words = tried.unwrap_err().to_string();
                // It may be made now.
                assert_eq!(other.try_load(Relaxed)?, 0);
            }
            w.barrier()?;
            if w.node().index() == 0 {
                // What was asked for in the closure was acknowledged.
                rows.row(1).cells(w)[0].store(1, Relaxed);
            }
            w.barrier()?;
            Ok(w.reduce(words, |one, other| one + &other)?)
        })
    };
    let run = within_limit(runs);
    let words = run.expect("a run").value.expect("node 0's");
    assert!(words.contains("holds memory"), "{words}");
    assert!(words.contains("on node 1"), "{words}");
}

/// Nodes take numbers away from each other until an access fails, which is the program's to handle.
pub fn until_one_fails(w: &mut Worker<'_>) -> Result<()> {
    let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 4, 8)?))?;
    w.barrier()?;
    killed::dies_soon(w);
    let cells: Vec<_> = (0..4).map(|row| &rows.row(row).cells(w)[0]).collect();
    let error = loop {
        let mut tried = cells.iter().map(|cell| cell.try_store(1, Relaxed));
        if let Some(error) = tried.find_map(std::result::Result::err) {
            break error;
        }
        // A node that has all of them when another one dies faults no more.
        w.pause()?;
    };
    println!("=> tried: {error}");
    Err(error.into())
}

#[test]
fn an_access_that_needs_a_killed_node_is_an_error() {
    let mut tried = 0;
    for (victim, after_us) in [(0, 300), (1, 2_000), (2, 900), (0, 9_000)] {
        for (code, words) in killed::left("tries until one fails", victim, after_us) {
            assert_eq!(code, Some(1), "{victim} after {after_us}: {words}");
            assert!(words.contains(&format!("node {victim}")), "{words}");
            tried += usize::from(words.contains("=> tried: writing memory at 0x"));
        }
    }
    // Whichever does not fail hears of it in its next pause.
    assert!(tried > 0);
}

#[test]
fn processes_have_the_same_errors() {
    let said = cluster::succeeds(2, "tries what is freed");
    assert_eq!(said, ["value [Gone, Gone, Gone]"]);
}
