//! Raw shared memory in units of any size, sequentially consistent: on Linux on x86-64.
//!
//! Objects are reached by calls; raw memory by plain loads and stores. Its unit of sharing is what
//! the program allocates, a *minipage*: one node may write a minipage, or several may read it. An
//! access that a node may not make faults, and waits until it may. An access that it may make costs
//! what it costs on private memory (MultiView and Millipage).
//!
//! ```
//! use std::sync::atomic::Ordering::{Relaxed, SeqCst};
//!
//! use dhole::Config;
//! use dhole::memory::{self, MemorySettings};
//!
//! let config = Config::nodes(2).memory(MemorySettings::default());
//! let run = config.run(|w| {
//!     // Node 0 allocates; each row is shared by itself, sixteen of them on a page.
//!     let rows = w.once(|w| Ok(memory::alloc_rows::<f64>(w, 64, 32)?))?;
//!     let total = w.once(|w| Ok(memory::alloc::<u64>(w)?))?;
//!     let (first, second) = (rows.row(2 * w.node().index()), rows.row(2 * w.node().index() + 1));
//!     first.cells(w)[0].store(1.5, Relaxed);
//!     second.cells(w)[31].store(2.5, Relaxed);
//!     total.get(w).fetch_add(1, SeqCst);
//!     w.barrier()?;
//!     let sum: f64 = (0..4).map(|row| rows.row(row).cells(w)).map(|row| {
//!         row[0].load(Relaxed) + row[31].load(Relaxed)
//!     }).sum();
//!     Ok((sum, total.get(w).load(SeqCst)))
//! })?;
//! assert_eq!(run.value, (8.0, 2));
//! assert!(run.report.total().raw_read_faults > 0);
//! # Ok::<(), dhole::RunError>(())
//! ```
//!
//! # Consistency
//!
//! Between nodes all accesses, relaxed ones too, take place in one order that keeps each node's
//! own (sequential consistency). Barriers, locks and operations on objects order them as well.
//! Between threads of one node it is the processor's order, as Rust's atomics have it.
//!
//! # Threads
//!
//! Any thread of a node's process may touch the memory; [`threads::scope`] begins some. Where
//! several need one minipage it comes once. A worker does not leave its thread:
//!
//! ```compile_fail,E0277
//! # use dhole::memory::threads;
//! # use dhole::Worker;
//! fn program(w: &mut Worker<'_>) -> dhole::Result<()> {
//!     threads::scope(w, |w, scope| scope.spawn(|| w.barrier()))??; // error: `Worker` in a thread
//!     Ok(())
//! }
//! ```
//!
//! and memory is not touched when the run is over:
//!
//! ```compile_fail,E0521
//! # use std::sync::atomic::Ordering::Relaxed;
//! # use dhole::memory::SharedRow;
//! # use dhole::Worker;
//! fn program(w: &mut Worker<'_>, row: SharedRow<u64>) {
//!     let cells = row.cells(w);
//!     std::thread::spawn(|| cells[0].load(Relaxed)); // error: the thread may outlive the run
//! }
//! ```
//!
//! # Slices
//!
//! [`SharedRow::read`], [`SharedRow::write`] and [`hold`] lend rows as slices of plain numbers, of
//! several rows at once. The node *holds* their minipages: no other node changes them before the
//! closure is over.
//!
//! ```
//! # use dhole::Config;
//! # use dhole::memory::{self, MemorySettings};
//! # let run = Config::nodes(2).memory(MemorySettings::default()).run(|w| {
//! let rows = w.once(|w| Ok(memory::alloc_rows::<f64>(w, 3, 100)?))?;
//! let [up, row, down] = [0, 1, 2].map(|row| rows.row(row));
//! memory::hold(w, [up, down], [row], |[up, down], [row]| {
//!     for ((number, up), down) in row.iter_mut().zip(up).zip(down) {
//!         *number += (up + down) / 2.0 + 1.0;
//!     }
//! })?;
//! # w.barrier()?;
//! # let sum = row.read(w, |row| row[99])?;
//! # w.barrier()?;
//! # Ok(sum)
//! # })?;
//! # assert_eq!(run.value, 2.0);
//! # Ok::<(), dhole::RunError>(())
//! ```
//!
//! In the closure no thread waits, so it has no worker:
//!
//! ```compile_fail,E0499
//! # use dhole::Worker;
//! # use dhole::memory::SharedRow;
//! fn program(w: &mut Worker<'_>, row: SharedRow<f64>) -> dhole::Result<()> {
//!     row.write(w, |_| w.barrier())??; // error: `*w` is borrowed
//!     Ok(())
//! }
//! ```
//!
//! and a slice does not leave it:
//!
//! ```compile_fail
//! # use dhole::Worker;
//! # use dhole::memory::SharedRow;
//! fn first<'id>(w: &mut Worker<'id>, row: SharedRow<f64>) -> dhole::Result<&'id f64> {
//!     Ok(row.read(w, |row| &row[0])?) // error: lifetime may not live long enough
//! }
//! ```
//!
//! A number is an integer or a float: a type with references cannot be shared.
//!
//! ```compile_fail,E0277
//! # use dhole::Worker;
//! # use dhole::memory::{self, SharedRows};
//! fn names(w: &mut Worker<'_>) -> dhole::Result<SharedRows<&'static str>> {
//!     Ok(memory::alloc_rows(w, 4, 4)?) // error: `&str` is no number
//! }
//! ```
//!
//! # Errors of accesses
//!
//! [`TryAccess`] has loads and stores that return an error where an ordinary one would end the
//! process. One that the node may make costs a single instruction. `read`, `write` and
//! [`SharedRow::try_with`] return such errors as well.
//!
//! ```
//! # use std::sync::atomic::Ordering::Relaxed;
//! # use dhole::Config;
//! use dhole::memory::{MemoryAccessFailure, TryAccess};
//! # use dhole::memory::{self, MemorySettings};
//! # let run = Config::nodes(2).memory(MemorySettings::default()).run(|w| {
//! let row = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 1, 4)?.row(0)))?;
//! row.cells(w)[3].try_store(5, Relaxed)?;
//! w.barrier()?;
//! if w.node().index() == 0 {
//!     row.free(w)?;
//! }
//! w.barrier()?;
//! let gone = row.cells(w)[3].try_load(Relaxed).unwrap_err();
//! assert_eq!(gone.cause, MemoryAccessFailure::Gone);
//! # Ok(())
//! # })?;
//! # Ok::<(), dhole::RunError>(())
//! ```
//!
//! # Raw pointers
//!
//! [`SharedRow::as_ptr`] gives a pointer, which is safe to have and unsafe to follow.
//!
//! # Limits
//!
//! Memory is not touched within a call of the runtime (an operation, an initialiser), and in a
//! simulation only by the thread that runs the program. 4,096 threads of a node may wait. An access
//! that cannot be made ends the process with exit code 70, unless it was tried ([`TryAccess`]):
//! nothing is allocated there, or the run has ended. There is no way back from within a load.
//! A loop that waits for another node's store calls [`Worker::pause`](crate::Worker::pause) in
//! each turn, and so hears of the end of the run. A run that survives the loss of nodes has no raw
//! memory. System calls do not fault: copy what they read or write (`EFAULT` otherwise).

use std::sync::OnceLock;

pub use dhole_view::{
    AtomicF32, AtomicF64, CANNOT_ACCESS, HeldRows, MemoryAccessError, MemoryAccessFailure,
    MemoryError, MemorySettings, MemoryUsage, ProgramMemory, RawMemory, SharedCell, SharedNumber,
    SharedRange, SharedRow, SharedRows, TryAccess, alloc, alloc_chunks, alloc_contiguous,
    alloc_groups, alloc_rows, hold, name_faults_by, on_failed_access, usage, with_consistency,
};
pub use dhole_view::{sync, threads};

/// What names the places of a program in its report.
static NAMED: OnceLock<fn(&str) -> String> = OnceLock::new();

/// Has the report that `dhole run --report` asks for written in these words: places that the
/// program has named by addresses ([`name_faults_by`]) are found out then. Whether it is the first
/// one that asks for this.
pub fn name_places_by(names: fn(&str) -> String) -> bool {
    NAMED.set(names).is_ok()
}

/// A report with the places of the program named.
pub(crate) fn with_names(report: String) -> String {
    match NAMED.get() {
        Some(names) => names(&report),
        None => report,
    }
}
