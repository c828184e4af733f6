//! SOR with a barrier of sections (Jackal, section 7): each row is an object at home at the node
//! that relaxes it, and the neighbour fetches it in each half-sweep.

use dhole::{Coherence, Read, Result, Row, Rows, Worker, Write};

use super::problem::UNITS_PER_POINT;
use super::sequential::Grid;
use super::shared::{Finding, Outcome};
use super::{Colour, Problem, relax};
use crate::share::{Construct, Meeting};

/// The rows of both colours, by their numbers.
struct Shared([Vec<Row<f64>>; 2]);

impl Shared {
    fn new(w: &mut Worker<'_>, problem: &Problem, construct: Construct) -> Result<Shared> {
        let nodes = w.nodes();
        let all: Vec<[Rows<f64>; 2]> = construct.each(w, |w, node| {
            let (count, len) = (problem.initial_band(node, nodes).len(), problem.row_len());
            let mut rows = || w.under(Coherence::Home).alloc_rows(count, len);
            Ok([rows(), rows()])
        })?;
        let of = |colour: usize| all.iter().flat_map(|of| of[colour].iter()).collect();
        Ok(Shared([of(0), of(1)]))
    }

    fn rows(&self, colour: Colour) -> &[Row<f64>] {
        let [red, black] = &self.0;
        match colour {
            Colour::Red => red,
            Colour::Black => black,
        }
    }
}

/// Solves `problem` on the cluster of `w`, as [`shared::run`](super::shared::run) does. The result
/// is complete on all nodes.
///
/// # Errors
/// Those of the runtime.
pub fn run(
    w: &mut Worker<'_>,
    problem: &Problem,
    construct: Construct,
    solution: Option<&Grid>,
    after_step: impl Fn(usize),
) -> Result<Outcome> {
    let (node, nodes) = (w.node().index(), w.nodes());
    let shared = Shared::new(w, problem, construct)?;
    let meeting = Meeting::new(w)?;
    let initial = problem.initial_band(node, nodes);
    for colour in Colour::BOTH {
        for row in initial.clone() {
            problem.fill(colour, row, shared.rows(colour)[row].get_mut(w));
        }
    }
    w.barrier()?;
    w.begin_measuring()?;
    let began = w.now();
    let points = problem.band(node, nodes).len() * problem.columns / 2;
    for step in 0..problem.steps {
        for (colour, other) in [(Colour::Red, Colour::Black), (Colour::Black, Colour::Red)] {
            let (write, read) = (shared.rows(colour), shared.rows(other));
            for row in problem.order(node, nodes) {
                let neighbours = [read[row - 1], read[row + 1], read[row]].map(Read);
                let [above, below, same] = neighbours;
                let (out, above, below, same) =
                    w.borrow((Write(write[row]), above, below, same))?;
                let which = colour.columns(row);
                relax(
                    out,
                    [above, below, same],
                    which,
                    problem.columns,
                    problem.omega,
                );
            }
            w.work(points as u64 * UNITS_PER_POINT);
            meeting.meet(w)?;
        }
        after_step(step + 1);
    }
    let sweeps = w.now().saturating_sub(began);
    w.end_measuring()?;
    let mut found = Finding::NOTHING;
    for colour in Colour::BOTH {
        for row in initial.clone() {
            let values = shared.rows(colour)[row].get(w);
            found.add(problem, solution, (colour, row), values);
        }
    }
    Outcome::of_all(w, found, solution.is_some(), sweeps)
}
