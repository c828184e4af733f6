//! SOR over shared rows, in either layout. Each node relaxes a band of rows. Of the other rows it
//! reads the two beside its band, and fetches them once in each half-sweep.

use std::time::Duration;

use dhole::{Refs, Share, Worker};

use super::problem::UNITS_PER_POINT;
use super::sequential::Grid;
use super::{Colour, Layout, Problem};

/// The result of a run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The sum of all rows' [`Problem::digest`]s.
    pub digest: u64,
    /// The largest difference from the grid to compare with, if there is one.
    pub max_error: Option<f64>,
    /// From the first sweep's start to the last one's end, on node 0's clock.
    pub sweeps: Duration,
}

impl Outcome {
    /// Of what each node found, on all of them.
    ///
    /// # Errors
    /// Those of a collective call.
    pub(super) fn of_all(
        w: &mut Worker<'_>,
        found: Finding,
        is_compared: bool,
        sweeps: Duration,
    ) -> dhole::Result<Outcome> {
        let all = w.all_gather((found.digest, found.max_error))?;
        let all = all
            .into_iter()
            .map(|(digest, max_error)| Finding { digest, max_error });
        let all = all.fold(Finding::NOTHING, Finding::and);
        Ok(Outcome {
            digest: all.digest,
            max_error: is_compared.then_some(all.max_error),
            sweeps,
        })
    }
}

/// The roots of the shared data.
#[derive(Share, Clone, Copy)]
struct Shared<L> {
    red: L,
    black: L,
    findings: Refs<Finding>,
}

/// A node's result for its rows.
#[derive(Share, Clone, Copy)]
pub(super) struct Finding {
    pub digest: u64,
    pub max_error: f64,
}

impl Finding {
    /// That of no rows.
    pub const NOTHING: Finding = Finding {
        digest: 0,
        max_error: 0.0,
    };

    /// Adds a row: its digest, and how far it is from that of `solution`.
    pub fn add(
        &mut self,
        problem: &Problem,
        solution: Option<&Grid>,
        (colour, row): (Colour, usize),
        values: &[f64],
    ) {
        let digest = problem.digest(colour, row, values);
        self.digest = self.digest.wrapping_add(digest);
        let expected = solution.map_or(values, |grid| grid.row(colour, row));
        for (value, expected) in values.iter().zip(expected) {
            self.max_error = self.max_error.max((value - expected).abs());
        }
    }

    /// That of both nodes' rows.
    pub fn and(self, other: Finding) -> Finding {
        Finding {
            digest: self.digest.wrapping_add(other.digest),
            max_error: self.max_error.max(other.max_error),
        }
    }
}

impl<L: Layout> Shared<L> {
    fn new(w: &mut Worker<'_>, problem: &Problem) -> Shared<L> {
        let (count, len) = (problem.stored_rows(), problem.row_len());
        Shared {
            red: L::alloc(w, count, len),
            black: L::alloc(w, count, len),
            findings: w.alloc_range(w.nodes(), |_| Finding::NOTHING),
        }
    }

    fn rows(&self, colour: Colour) -> L {
        match colour {
            Colour::Red => self.red,
            Colour::Black => self.black,
        }
    }
}

/// Solves `problem` on the cluster of `w`. Every node calls it; `after_step` is called with the
/// number of steps done after each. With a `solution` the result is compared with it. The result is
/// complete on node 0.
///
/// # Errors
/// Those of the runtime.
pub fn run<L: Layout>(
    w: &mut Worker<'_>,
    problem: &Problem,
    solution: Option<&Grid>,
    after_step: impl Fn(usize),
) -> dhole::Result<Outcome> {
    if problem.setup_measured {
        w.begin_measuring()?;
    }
    let shared = w.once(|w| Ok(Shared::<L>::new(w, problem)))?;
    let (node, nodes) = (w.node().index(), w.nodes());
    let initial = problem.initial_band(node, nodes);
    for colour in Colour::BOTH {
        for row in initial.clone() {
            problem.fill(colour, row, shared.rows(colour).row_mut(w, row));
        }
    }
    w.barrier()?;
    if !problem.setup_measured {
        w.begin_measuring()?;
    }
    let began = w.now();
    for step in 0..problem.steps {
        for colour in Colour::BOTH {
            half_sweep(w, problem, &shared, colour)?;
            w.barrier()?;
        }
        after_step(step + 1);
    }
    let sweeps = w.now().saturating_sub(began);
    w.end_measuring()?;
    let found = finding(w, problem, &shared, solution);
    *shared.findings.at(node).get_mut(w) = found;
    w.barrier()?;
    let mut all = found;
    if node == 0 {
        let others = shared.findings.iter().skip(1);
        all = others.fold(found, |all, other| all.and(other.read(w)));
    }
    Ok(Outcome {
        digest: all.digest,
        max_error: solution.map(|_| all.max_error),
        sweeps,
    })
}

/// Relaxes the points of one colour in this node's band.
fn half_sweep<L: Layout>(
    w: &mut Worker<'_>,
    problem: &Problem,
    shared: &Shared<L>,
    colour: Colour,
) -> dhole::Result<()> {
    let (write, read) = match colour {
        Colour::Red => (shared.red, shared.black),
        Colour::Black => (shared.black, shared.red),
    };
    let band = problem.band(w.node().index(), w.nodes());
    let points = band.len() * problem.columns / 2;
    for row in problem.order(w.node().index(), w.nodes()) {
        write.relax(w, read, row, colour.columns(row), problem)?;
    }
    w.work(points as u64 * UNITS_PER_POINT);
    Ok(())
}

/// The digest of this node's rows, and how far they are from those of `solution`.
fn finding<L: Layout>(
    w: &Worker<'_>,
    problem: &Problem,
    shared: &Shared<L>,
    solution: Option<&Grid>,
) -> Finding {
    let mut found = Finding::NOTHING;
    for colour in Colour::BOTH {
        for row in problem.initial_band(w.node().index(), w.nodes()) {
            let values = shared.rows(colour).row(w, row);
            found.add(problem, solution, (colour, row), values);
        }
    }
    found
}
