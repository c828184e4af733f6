//! Faults take no lock of their node: not where a node faults, and not where it answers.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use dhole::memory;

use crate::{config, messages};

const ROWS: usize = 8;
/// Longer than all faults take, on the slowest machine.
const AT_MOST: Duration = Duration::from_secs(30);

#[test]
fn a_fault_takes_no_node_lock_and_is_counted() {
    let over = AtomicBool::new(false);
    let run = config(2).run(|w| {
        let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, ROWS, 512)?))?;
        let cells: Vec<_> = (0..ROWS).map(|row| &rows.row(row).cells(w)[0]).collect();
        if w.node().index() == 1 {
            cells.iter().for_each(|cell| cell.store(1, Relaxed));
        }
        w.barrier()?;
        let (before, mut sum) = (w.node_locks(), 0);
        if w.node().index() == 0 {
            sum = cells.iter().map(|cell| cell.load(Relaxed)).sum();
            cells.iter().for_each(|cell| cell.store(2, Relaxed));
            over.store(true, SeqCst);
        }
        // Node 1 computes meanwhile: at a barrier it would take node 0's lock.
        let begun = Instant::now();
        while !over.load(SeqCst) && begun.elapsed() < AT_MOST {
            std::thread::yield_now();
        }
        let taken = w.node_locks() - before;
        w.barrier()?;
        let taken = w.reduce(taken, |one, other| one + other)?;
        Ok((sum, taken))
    });
    let run = run.expect("a run on threads");
    assert_eq!(run.value, (ROWS as u64, Some(0)));
    let total = run.report.total();
    let faults = [total.raw_read_faults, total.raw_write_faults];
    assert_eq!(faults, [ROWS as u64, 2 * ROWS as u64]);
    let sent: u64 = messages(&run).iter().map(|(_, sent)| sent).sum();
    assert!(sent > 4 * ROWS as u64, "{sent} messages");
}
