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

use dhole::Worker;
use dhole::memory::{self, MemoryUsage, SharedRows};

use super::kernel::relaxed;
use super::problem::UNITS_PER_POINT;
use super::sequential::Grid;
use super::shared::{Finding, Outcome};
use super::{Colour, Columns, Problem};
use crate::raw::{Cut, Float, Granularity};

/// A number of which rows are.
pub trait RowNumber: Float {
    /// Relaxes a row that is held as a slice, as [`relax`] does one of cells, if that is faster:
    /// where it becomes vector instructions.
    const RELAX_HELD: Option<RelaxHeld<Self>>;
    /// The number, rounded.
    fn rounded(number: f64) -> Self;
    /// The number.
    fn exact(self) -> f64;
}

/// As of [`kernel::relax`](super::kernel::relax).
pub type RelaxHeld<E> = fn(&mut [E], [&[E]; 3], Columns, usize, f64);

impl RowNumber for f64 {
    const RELAX_HELD: Option<RelaxHeld<f64>> = Some(super::kernel::relax);

    fn rounded(number: f64) -> f64 {
        number
    }

    fn exact(self) -> f64 {
        self
    }
}

impl RowNumber for f32 {
    const RELAX_HELD: Option<RelaxHeld<f32>> = None;

    fn rounded(number: f64) -> f32 {
        number as f32
    }

    fn exact(self) -> f64 {
        self.into()
    }
}

/// Rows of at least so many numbers are held while they are relaxed: holding four rows takes as
/// long as a fraction of that.
pub const LEAST_HELD: usize = 1024;

/// How rows that are cut so are relaxed, if they are held.
fn relax_held<E: RowNumber>(problem: &Problem, cut: Cut) -> Option<RelaxHeld<E>> {
    // A row that is no minipage may lie in several, and cannot be held.
    let is_long = cut.granularity != Granularity::Page && problem.row_len() >= LEAST_HELD;
    E::RELAX_HELD.filter(|_| is_long)
}

/// The rows of both colours.
struct Rows<E: Float> {
    red: SharedRows<E>,
    black: SharedRows<E>,
}

impl<E: Float> Rows<E> {
    fn of(&self, colour: Colour) -> SharedRows<E> {
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
pub fn relax<E: Float>(
    out: &[E::Atomic],
    [above, below, same]: [&[E::Atomic]; 3],
    which: Columns,
    columns: usize,
    omega: f64,
) {
    let at = |row: &[E::Atomic], k: usize| E::load(&row[k]);
    let last = columns / 2;
    let point = |k: usize, left: f64, right: f64| {
        let new = relaxed(at(out, k), at(above, k), at(below, k), left, right, omega);
        E::store(&out[k], new);
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
/// objects, with rows of `E` that are cut into minipages so. With it, what node 0 has allocated.
///
/// # Errors
/// Those of the runtime; and that the run has no raw memory, or not enough.
pub fn run<E: RowNumber>(
    w: &mut Worker<'_>,
    (problem, cut): (&Problem, Cut),
    solution: Option<&Grid>,
    after_step: impl Fn(usize),
) -> dhole::Result<(Outcome, MemoryUsage)> {
    if problem.setup_measured {
        w.begin_measuring()?;
    }
    // With a row for each node: the bits of its digest, and of its largest error.
    let (red, black, findings) = w.once(|w| {
        let (count, len) = (problem.stored_rows(), problem.row_len());
        let red = cut.rows::<E>(w, count, len)?;
        let black = cut.rows::<E>(w, count, len)?;
        Ok((red, black, memory::alloc_rows::<u64>(w, w.nodes(), 2)?))
    })?;
    let shared = Rows { red, black };
    let (node, nodes) = (w.node().index(), w.nodes());
    let mut values = vec![0.0; problem.row_len()];
    let held = relax_held(problem, cut);
    for colour in Colour::BOTH {
        for row in problem.initial_band(node, nodes) {
            problem.fill(colour, row, &mut values);
            let row = shared.of(colour).row(row);
            if held.is_some() {
                row.write(w, |row| {
                    let both = row.iter_mut().zip(&values);
                    both.for_each(|(number, value)| *number = E::rounded(*value));
                })?;
                continue;
            }
            let both = row.cells(w).iter().zip(&values);
            both.for_each(|(cell, value)| E::store(cell, *value));
        }
    }
    w.barrier()?;
    if !problem.setup_measured {
        w.begin_measuring()?;
    }
    let began = w.now();
    for step in 0..problem.steps {
        for colour in Colour::BOTH {
            half_sweep(w, (problem, held), &shared, colour)?;
            w.barrier()?;
        }
        after_step(step + 1);
    }
    let sweeps = w.now().saturating_sub(began);
    w.end_measuring()?;
    let mut found = Finding::NOTHING;
    for colour in Colour::BOTH {
        for row in problem.initial_band(node, nodes) {
            let at = shared.of(colour).row(row);
            if held.is_some() {
                at.read(w, |row| {
                    let both = values.iter_mut().zip(row);
                    both.for_each(|(value, number)| *value = number.exact());
                })?;
            } else {
                let both = values.iter_mut().zip(at.cells(w));
                both.for_each(|(value, cell)| *value = E::load(cell));
            }
            found.add(problem, solution, (colour, row), &values);
        }
    }
    let own = findings.row(node).cells(w);
    own[0].store(found.digest, Relaxed);
    own[1].store(found.max_error.to_bits(), Relaxed);
    w.barrier()?;
    let others = (1..if node == 0 { nodes } else { 1 }).map(|other| {
        let cells = findings.row(other).cells(w);
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
fn half_sweep<E: RowNumber>(
    w: &mut Worker<'_>,
    (problem, held): (&Problem, Option<RelaxHeld<E>>),
    shared: &Rows<E>,
    colour: Colour,
) -> dhole::Result<()> {
    let (write, read) = match colour {
        Colour::Red => (shared.red, shared.black),
        Colour::Black => (shared.black, shared.red),
    };
    let band = problem.band(w.node().index(), w.nodes());
    // What is left of the points of the band is the last row's.
    let (rows, points) = (band.len(), band.len() * problem.columns / 2);
    for (done, row) in problem.order(w.node().index(), w.nodes()).enumerate() {
        let neighbours = [row - 1, row + 1, row].map(|row| read.row(row));
        let (which, columns, omega) = (colour.columns(row), problem.columns, problem.omega);
        let out = write.row(row);
        match held {
            Some(relax) => memory::hold(w, neighbours, [out], |neighbours, [out]| {
                relax(out, neighbours, which, columns, omega);
            })?,
            None => {
                let neighbours = neighbours.map(|row| row.cells(w));
                relax::<E>(out.cells(w), neighbours, which, columns, omega);
            }
        }
        let until = |row: usize| points * row / rows;
        w.work((until(done + 1) - until(done)) as u64 * UNITS_PER_POINT);
    }
    Ok(())
}
