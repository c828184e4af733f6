//! Faults take no lock of their node: not where a node faults, and not where it answers.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use dhole::memory;

use crate::{config, messages};

const ROWS: usize = 8;
/// Longer than all faults take, on the slowest machine.
const AT_MOST: Duration = Duration::from_secs(30);

/// Computes until so many nodes have looked at their locks.
fn compute_until(looked: &AtomicUsize, nodes: usize) {
    let begun = Instant::now();
    while looked.load(SeqCst) < nodes && begun.elapsed() < AT_MOST {
        std::thread::yield_now();
    }
}

#[test]
fn a_fault_takes_no_node_lock_and_is_counted() {
    let looked = AtomicUsize::new(0);
    let run = config(2).run(|w| {
        let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, ROWS, 512)?))?;
        let cells: Vec<_> = (0..ROWS).map(|row| &rows.row(row).cells(w)[0]).collect();
        if w.node().index() == 1 {
            cells.iter().for_each(|cell| cell.store(1, Relaxed));
        }
        w.barrier()?;
        let (before, mut sum) = (w.node_locks(), 0);
        match w.node().index() {
            0 => {
                sum = cells.iter().map(|cell| cell.load(Relaxed)).sum();
                cells.iter().for_each(|cell| cell.store(2, Relaxed));
            }
            _ => compute_until(&looked, 1),
        }
        let taken = w.node_locks() - before;
        looked.fetch_add(1, SeqCst);
        // A node that goes to a barrier takes the lock of the other one.
        compute_until(&looked, 2);
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
