//! The grid: its shape, its initial values, and the rows of each node.

use std::ops::Range;

use super::Columns;
use crate::random::{SplitMix, unit};

/// The colour of a point, and of the array that holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colour {
    /// Points `(i, j)` with `i + j` even; relaxed first.
    Red,
    /// Points `(i, j)` with `i + j` odd.
    Black,
}

impl Colour {
    /// Both, in the order in which a step relaxes them.
    pub const BOTH: [Colour; 2] = [Colour::Red, Colour::Black];

    /// Which columns of row `row` this colour has.
    #[inline]
    pub const fn columns(self, row: usize) -> Columns {
        match (self, row % 2) {
            (Colour::Red, 0) | (Colour::Black, 1) => Columns::Even,
            _ => Columns::Odd,
        }
    }
}

/// The parameters of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Problem {
    /// Interior rows, at least 1.
    pub rows: usize,
    /// Interior columns, of both colours together, at least 1.
    pub columns: usize,
    /// Steps; each relaxes the red points and then the black ones.
    pub steps: usize,
    /// Chooses the initial values.
    pub seed: u64,
    /// The over-relaxation factor, between 0 and 2; at 1 a point becomes the average of its
    /// neighbours.
    pub omega: f64,
    /// Whether the measured part begins before the rows are allocated and filled, and not with the
    /// first step.
    pub setup_measured: bool,
    /// Whether each node first relaxes the rows that need a row of another node. Then all nodes
    /// fetch at once, right after the barrier, and answer each other while they wait.
    pub edges_first: bool,
}

/// The cost of one relaxed point in a simulation, in units of `Worker::work`. A unit stands for
/// about a nanosecond of a modern processor.
pub const UNITS_PER_POINT: u64 = 1;

impl Problem {
    /// Numbers in a row of one colour: half of the interior columns, and the wall.
    pub const fn row_len(&self) -> usize {
        self.columns / 2 + 1
    }

    /// Rows of one colour, the two walls included.
    pub const fn stored_rows(&self) -> usize {
        self.rows + 2
    }

    /// Points that a whole run relaxes.
    pub const fn relaxed_points(&self) -> u64 {
        self.rows as u64 * self.columns as u64 * self.steps as u64
    }

    /// The interior rows that node `node` of `nodes` relaxes; bands differ by at most one row.
    pub const fn band(&self, node: usize, nodes: usize) -> Range<usize> {
        1 + self.rows * node / nodes..1 + self.rows * (node + 1) / nodes
    }

    /// The same, in the order in which the node relaxes them. The result does not depend on that
    /// order, because a half-sweep writes nothing that it reads.
    pub fn order(&self, node: usize, nodes: usize) -> impl Iterator<Item = usize> + use<> {
        let Range { start, end } = self.band(node, nodes);
        let edge = self.edges_first && node + 1 < nodes && start + 1 < end;
        let first = edge.then_some(end - 1);
        first.into_iter().chain(start..end - usize::from(edge))
    }

    /// The rows that node `node` of `nodes` fills in: its band, and the wall beside it.
    pub const fn initial_band(&self, node: usize, nodes: usize) -> Range<usize> {
        let band = self.band(node, nodes);
        let start = if node == 0 { 0 } else { band.start };
        let end = if node + 1 == nodes {
            self.rows + 2
        } else {
            band.end
        };
        start..end
    }

    /// Fills `out` with the initial values of row `row` of `colour`: evenly distributed in
    /// `0.0..1.0`, each a function of the seed and the point alone.
    ///
    /// # Panics
    /// When `out` has not [`Problem::row_len`] numbers.
    pub fn fill(&self, colour: Colour, row: usize, out: &mut [f64]) {
        assert_eq!(out.len(), self.row_len(), "a row of one colour");
        let random = SplitMix::new(self.seed);
        let first = match colour.columns(row) {
            Columns::Even => 0,
            Columns::Odd => 1,
        };
        let before = (row * 2 * self.row_len() + first) as u64;
        for (k, value) in out.iter_mut().enumerate() {
            *value = unit(random.at(before + 2 * k as u64));
        }
    }

    /// A number that the bits of a row of one colour determine, and that tells at which place
    /// they were. Those of several rows are added (wrapping), in any order.
    pub fn digest(&self, colour: Colour, row: usize, values: &[f64]) -> u64 {
        let array = match colour {
            Colour::Red => 0,
            Colour::Black => self.stored_rows(),
        };
        let before = ((array + row) * self.row_len()) as u64;
        values.iter().enumerate().fold(0, |sum: u64, (k, value)| {
            sum.wrapping_add(value.to_bits().wrapping_mul(2 * (before + k as u64) + 1))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(rows: usize, columns: usize) -> Problem {
        Problem {
            rows,
            columns,
            steps: 1,
            seed: 1,
            omega: 1.0,
            setup_measured: false,
            edges_first: false,
        }
    }

    #[test]
    fn edges_first_or_not_each_row_has_its_turn_once() {
        for edges_first in [false, true] {
            let p = Problem {
                edges_first,
                ..problem(7, 3)
            };
            for (nodes, node) in [(1, 0), (2, 0), (2, 1), (3, 1), (7, 3)] {
                let order: Vec<usize> = p.order(node, nodes).collect();
                let band = p.band(node, nodes);
                let other = edges_first && node + 1 < nodes;
                let first = if other { band.end - 1 } else { band.start };
                assert_eq!(order[0], first, "{node} of {nodes}");
                let mut sorted = order;
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(band), "{node} of {nodes}");
            }
        }
    }

    #[test]
    fn a_row_of_the_papers_grid_is_8_kib() {
        assert_eq!(problem(4094, 2047).row_len() * size_of::<f64>(), 8192);
    }

    #[test]
    fn bands_cover_every_row_once() {
        for (rows, nodes) in [(1, 1), (7, 3), (8, 8), (4094, 32)] {
            let p = problem(rows, 3);
            let rows_of = |node| p.band(node, nodes);
            assert_eq!((rows_of(0).start, rows_of(nodes - 1).end), (1, rows + 1));
            assert!((1..nodes).all(|node| rows_of(node - 1).end == rows_of(node).start));
            assert!((0..nodes).all(|node| !rows_of(node).is_empty()));
            assert_eq!(p.initial_band(0, nodes).start, 0);
            assert_eq!(p.initial_band(nodes - 1, nodes).end, rows + 2);
        }
    }

    #[test]
    fn the_initial_values_of_a_point_do_not_depend_on_its_colours_array() {
        let p = problem(4, 5);
        let (mut red, mut black) = (vec![0.0; p.row_len()], vec![0.0; p.row_len()]);
        p.fill(Colour::Red, 2, &mut red);
        p.fill(Colour::Black, 2, &mut black);
        assert!(
            red.iter().all(|v| !black.contains(v)),
            "no value is drawn twice"
        );
    }
}
