//! SOR over raw memory, as TreadMarks' program was run by Millipage (MultiView, section 4.3): each
//! row a minipage of its own, read and written by plain loads and stores.
//!
//! With two nodes, of which node 0 has allocated all rows, a step takes 20 messages about
//! minipages, the first 5 fewer. In each half-sweep each node reads one row of the other: 3
//! messages where node 1 asks (request, data, acknowledgement), 2 where node 0 does (forward,
//! data). And each writes the row that the other has read before: 3 messages where node 1 does
//! (request, grant, acknowledgement), 2 where node 0 does (invalidate, invalidated). In the first
//! half-sweep nobody has read a row that is written.

use std::sync::atomic::Ordering::Relaxed;

use dhole::memory::{self, AtomicF64, MemoryUsage, SharedRows};
use dhole::{Share, Worker};

use super::kernel::relaxed;
use super::problem::UNITS_PER_POINT;
use super::sequential::Grid;
use super::shared::{Finding, Outcome};
use super::{Colour, Columns, Problem};

/// The roots of the shared data.
#[derive(Share, Clone, Copy)]
struct Shared {
    red: SharedRows<f64>,
    black: SharedRows<f64>,
    /// A row for each node: the bits of its digest, and of its largest error.
    findings: SharedRows<u64>,
}

impl Shared {
    fn new(w: &mut Worker<'_>, problem: &Problem, chunk: usize) -> dhole::Result<Shared> {
        let (count, len) = (problem.stored_rows(), problem.row_len());
        Ok(Shared {
            red: memory::alloc_chunks(w, count, len, chunk)?,
            black: memory::alloc_chunks(w, count, len, chunk)?,
            findings: memory::alloc_rows(w, w.nodes(), 2)?,
        })
    }

    fn rows(&self, colour: Colour) -> SharedRows<f64> {
        match colour {
            Colour::Red => self.red,
            Colour::Black => self.black,
        }
    }
}

/// Relaxes the points of one row of one colour, as [`relax`](super::relax) does.
///
/// # Panics
/// As there.
pub fn relax(
    out: &[AtomicF64],
    [above, below, same]: [&[AtomicF64]; 3],
    which: Columns,
    columns: usize,
    omega: f64,
) {
    let at = |row: &[AtomicF64], k: usize| row[k].load(Relaxed);
    let last = columns / 2;
    let point = |k: usize, left: f64, right: f64| {
        let new = relaxed(at(out, k), at(above, k), at(below, k), left, right, omega);
        out[k].store(new, Relaxed);
    };
    match which {
        Columns::Odd => {
            (0..last).for_each(|k| point(k, at(same, k), at(same, k + 1)));
            if columns % 2 == 1 {
                point(last, at(same, last), at(same, 0));
            }
        }
        Columns::Even => {
            let inner = 1..last + columns % 2;
            inner.for_each(|k| point(k, at(same, k - 1), at(same, k)));
            if columns.is_multiple_of(2) {
                point(last, at(same, last - 1), at(out, 0));
            }
        }
    }
}

/// Solves `problem` on the cluster of `w`, as [`shared::run`](super::shared::run) does over
/// objects, with `chunk` rows in a minipage. With it, what node 0 has allocated.
///
/// # Errors
/// Those of the runtime; and that the run has no raw memory, or not enough.
pub fn run(
    w: &mut Worker<'_>,
    (problem, chunk): (&Problem, usize),
    solution: Option<&Grid>,
    after_step: impl Fn(usize),
) -> dhole::Result<(Outcome, MemoryUsage)> {
    if problem.setup_measured {
        w.begin_measuring()?;
    }
    let shared = w.once(|w| Shared::new(w, problem, chunk))?;
    let (node, nodes) = (w.node().index(), w.nodes());
    let mut values = vec![0.0; problem.row_len()];
    for colour in Colour::BOTH {
        for row in problem.initial_band(node, nodes) {
            problem.fill(colour, row, &mut values);
            let cells = shared.rows(colour).row(row).cells(w);
            let mut both = cells.iter().zip(&values);
            both.by_ref()
                .for_each(|(cell, value)| cell.store(*value, Relaxed));
        }
    }
    w.barrier()?;
    if !problem.setup_measured {
        w.begin_measuring()?;
    }
    let began = w.now();
    for step in 0..problem.steps {
        for colour in Colour::BOTH {
            half_sweep(w, problem, &shared, colour);
            w.barrier()?;
        }
        after_step(step + 1);
    }
    let sweeps = w.now().saturating_sub(began);
    w.end_measuring()?;
    let mut found = Finding::NOTHING;
    for colour in Colour::BOTH {
        for row in problem.initial_band(node, nodes) {
            let cells = shared.rows(colour).row(row).cells(w);
            let mut both = values.iter_mut().zip(cells);
            both.by_ref()
                .for_each(|(value, cell)| *value = cell.load(Relaxed));
            found.add(problem, solution, (colour, row), &values);
        }
    }
    let own = shared.findings.row(node).cells(w);
    own[0].store(found.digest, Relaxed);
    own[1].store(found.max_error.to_bits(), Relaxed);
    w.barrier()?;
    let others = (1..if node == 0 { nodes } else { 1 }).map(|other| {
        let cells = shared.findings.row(other).cells(w);
        Finding {
            digest: cells[0].load(Relaxed),
            max_error: f64::from_bits(cells[1].load(Relaxed)),
        }
    });
    let all = others.fold(found, Finding::and);
    let outcome = Outcome {
        digest: all.digest,
        max_error: solution.map(|_| all.max_error),
        sweeps,
    };
    Ok((outcome, memory::usage(w)?))
}

/// Relaxes the points of one colour in this node's band.
fn half_sweep(w: &Worker<'_>, problem: &Problem, shared: &Shared, colour: Colour) {
    let (write, read) = match colour {
        Colour::Red => (shared.red, shared.black),
        Colour::Black => (shared.black, shared.red),
    };
    let band = problem.band(w.node().index(), w.nodes());
    let points = band.len() * problem.columns / 2;
    for row in problem.order(w.node().index(), w.nodes()) {
        let of = |row: usize| read.row(row).cells(w);
        let neighbours = [of(row - 1), of(row + 1), of(row)];
        let out = write.row(row).cells(w);
        relax(
            out,
            neighbours,
            colour.columns(row),
            problem.columns,
            problem.omega,
        );
    }
    w.work(points as u64 * UNITS_PER_POINT);
}
