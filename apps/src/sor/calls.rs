//! SOR by message passing, as Jackal's paper does with RMI (section 7): before each half-sweep a
//! node passes the edges of its band to its neighbours.

use dhole::{NodeId, Object, Result, Worker, on};
use serde::{Deserialize, Serialize};

use super::problem::UNITS_PER_POINT;
use super::sequential::Grid;
use super::shared::{Finding, Outcome};
use super::{Colour, Problem, relax};

/// What a node gets from its neighbours: the row above its band, and the row below it.
#[derive(Serialize, Deserialize)]
struct Edges {
    rows: [Option<Vec<f64>>; 2],
}

#[dhole::object]
impl Edges {
    #[when(self.rows[*side].is_none())]
    pub fn put(&mut self, side: usize, row: Vec<f64>) {
        self.rows[side] = Some(row);
    }

    #[when(self.rows[*side].is_some())]
    pub fn take(&mut self, side: usize) -> Vec<f64> {
        self.rows[side].take().unwrap_or_default()
    }
}

const ABOVE: usize = 0;
const BELOW: usize = 1;

/// The rows of a node's band, with the one above and the one below.
struct Band {
    first: usize,
    rows: [Vec<Vec<f64>>; 2],
}

impl Band {
    fn new(problem: &Problem, node: usize, nodes: usize) -> Band {
        let band = problem.band(node, nodes);
        let first = band.start - 1;
        let filled = |colour| {
            let row = |row| {
                let mut values = vec![0.0; problem.row_len()];
                problem.fill(colour, row, &mut values);
                values
            };
            (first..=band.end).map(row).collect()
        };
        Band {
            first,
            rows: Colour::BOTH.map(filled),
        }
    }

    fn row(&self, colour: Colour, row: usize) -> &[f64] {
        &self.rows[usize::from(colour == Colour::Black)][row - self.first]
    }

    fn row_mut(&mut self, colour: Colour, row: usize) -> &mut Vec<f64> {
        &mut self.rows[usize::from(colour == Colour::Black)][row - self.first]
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
    solution: Option<&Grid>,
    after_step: impl Fn(usize),
) -> Result<Outcome> {
    let (node, nodes) = (w.node().index(), w.nodes());
    let rows = [None, None];
    let own = w.new_object(on(NodeId::at(node)), Edges { rows })?;
    let edges: Vec<Object<Edges>> = w.all_gather(own)?;
    let band = problem.band(node, nodes);
    let mut grid = Band::new(problem, node, nodes);
    w.barrier()?;
    w.begin_measuring()?;
    let began = w.now();
    let points = band.len() * problem.columns / 2;
    for step in 0..problem.steps {
        for (colour, other) in [(Colour::Red, Colour::Black), (Colour::Black, Colour::Red)] {
            let mut puts = Vec::new();
            if node > 0 {
                let row = grid.row(other, band.start).to_vec();
                puts.push(edges[node - 1].start_put(w, BELOW, row)?);
            }
            if node + 1 < nodes {
                let row = grid.row(other, band.end - 1).to_vec();
                puts.push(edges[node + 1].start_put(w, ABOVE, row)?);
            }
            if node > 0 {
                *grid.row_mut(other, band.start - 1) = own.take(w, ABOVE)?;
            }
            if node + 1 < nodes {
                *grid.row_mut(other, band.end) = own.take(w, BELOW)?;
            }
            for row in problem.order(node, nodes) {
                let mut out = std::mem::take(grid.row_mut(colour, row));
                let neighbours = [row - 1, row + 1, row].map(|at| grid.row(other, at));
                relax(
                    &mut out,
                    neighbours,
                    colour.columns(row),
                    problem.columns,
                    problem.omega,
                );
                *grid.row_mut(colour, row) = out;
            }
            w.work(points as u64 * UNITS_PER_POINT);
            for put in puts {
                put.wait(w)?;
            }
        }
        after_step(step + 1);
    }
    w.barrier()?;
    let sweeps = w.now().saturating_sub(began);
    w.end_measuring()?;
    let mut found = Finding::NOTHING;
    for colour in Colour::BOTH {
        for row in problem.initial_band(node, nodes) {
            let values = grid.row(colour, row);
            found.add(problem, solution, (colour, row), values);
        }
    }
    Outcome::of_all(w, found, solution.is_some(), sweeps)
}
