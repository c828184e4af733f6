//! SOR for one processor.

use std::time::Instant;

use super::{Colour, Problem, problem::UNITS_PER_POINT, relax};

/// The whole grid: two arrays of rows, each in one piece.
#[derive(Clone, PartialEq, Debug)]
pub struct Grid {
    problem: Problem,
    red: Vec<f64>,
    black: Vec<f64>,
}

/// The result of a run, and its cost.
#[derive(Debug)]
pub struct Outcome {
    /// The grid after the last step.
    pub grid: Grid,
    /// Wall-clock time of the sweeps alone, in seconds.
    pub sweep_seconds: f64,
    /// The cost of the sweeps in units of `Worker::work`.
    pub units: u64,
}

impl Grid {
    /// The grid before the first step.
    pub fn new(problem: Problem) -> Grid {
        let of = |colour| {
            let mut values = vec![0.0; problem.stored_rows() * problem.row_len()];
            for (row, out) in values.chunks_exact_mut(problem.row_len()).enumerate() {
                problem.fill(colour, row, out);
            }
            values
        };
        Grid {
            problem,
            red: of(Colour::Red),
            black: of(Colour::Black),
        }
    }

    /// Relaxes all points of `colour`.
    pub fn half_sweep(&mut self, colour: Colour) {
        let Problem {
            rows,
            columns,
            omega,
            ..
        } = self.problem;
        let len = self.problem.row_len();
        let (write, read) = match colour {
            Colour::Red => (&mut self.red, &self.black),
            Colour::Black => (&mut self.black, &self.red),
        };
        for row in 1..=rows {
            let out = &mut write[row * len..][..len];
            let of = |row: usize| &read[row * len..][..len];
            let neighbours = [of(row - 1), of(row + 1), of(row)];
            relax(out, neighbours, colour.columns(row), columns, omega);
        }
    }

    /// Row `row` of one colour.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, colour: Colour, row: usize) -> &[f64] {
        let len = self.problem.row_len();
        let values = match colour {
            Colour::Red => &self.red,
            Colour::Black => &self.black,
        };
        &values[row * len..][..len]
    }

    /// The value at row `row` and column `column`, walls included.
    ///
    /// # Panics
    /// When there is no such point.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        assert!(column <= self.problem.columns + 1, "no column {column}");
        let column = if column == self.problem.columns + 1 {
            0
        } else {
            column
        };
        let colour = if (row + column).is_multiple_of(2) {
            Colour::Red
        } else {
            Colour::Black
        };
        self.row(colour, row)[column / 2]
    }

    /// The sum of all rows' [`Problem::digest`]s.
    pub fn digest(&self) -> u64 {
        let mut sum = 0u64;
        for colour in Colour::BOTH {
            for row in 0..self.problem.stored_rows() {
                sum = sum.wrapping_add(self.problem.digest(colour, row, self.row(colour, row)));
            }
        }
        sum
    }
}

/// Solves `problem`; `after_step` is called with the number of steps done after each.
pub fn run(problem: Problem, mut after_step: impl FnMut(usize)) -> Outcome {
    let mut grid = Grid::new(problem);
    let swept_from = Instant::now();
    for step in 0..problem.steps {
        grid.half_sweep(Colour::Red);
        grid.half_sweep(Colour::Black);
        after_step(step + 1);
    }
    Outcome {
        grid,
        sweep_seconds: swept_from.elapsed().as_secs_f64(),
        units: problem.relaxed_points() * UNITS_PER_POINT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(rows: usize, columns: usize, steps: usize) -> Problem {
        Problem {
            rows,
            columns,
            steps,
            seed: 42,
            omega: 1.5,
            edges_first: false,
            setup_measured: false,
        }
    }

    /// The same on one array of points, as the textbook has it.
    fn naive(problem: Problem) -> Vec<Vec<f64>> {
        let start = Grid::new(problem);
        let Problem {
            rows,
            columns,
            steps,
            omega,
            ..
        } = problem;
        let mut grid: Vec<Vec<f64>> = (0..rows + 2)
            .map(|row| {
                (0..columns + 2)
                    .map(|column| start.at(row, column))
                    .collect()
            })
            .collect();
        for half_step in 0..2 * steps {
            for i in 1..=rows {
                for j in (1..=columns).filter(|j| (i + j) % 2 == half_step % 2) {
                    let (above, below) = (grid[i - 1][j], grid[i + 1][j]);
                    let (left, right) = (grid[i][j - 1], grid[i][j + 1]);
                    let average = 0.25 * ((above + below) + (left + right));
                    grid[i][j] += omega * (average - grid[i][j]);
                }
            }
        }
        grid
    }

    #[test]
    fn it_equals_the_textbook_exactly() {
        for (rows, columns) in [(1, 1), (1, 2), (2, 1), (5, 7), (6, 8), (9, 2), (20, 31)] {
            let problem = problem(rows, columns, 4);
            let found = run(problem, |_| ()).grid;
            for (i, expected) in naive(problem).iter().enumerate() {
                for (j, value) in expected.iter().enumerate() {
                    assert_eq!(found.at(i, j), *value, "{rows} x {columns}: at {i}, {j}");
                }
            }
        }
    }

    #[test]
    fn it_converges_to_values_that_are_the_average_of_their_neighbours() {
        let grid = run(problem(15, 18, 400), |_| ()).grid;
        for i in 1..=15 {
            for j in 1..=18 {
                let neighbours = (grid.at(i - 1, j) + grid.at(i + 1, j))
                    + (grid.at(i, j - 1) + grid.at(i, j + 1));
                assert!(
                    (grid.at(i, j) - neighbours / 4.0).abs() < 1e-12,
                    "at {i}, {j}"
                );
            }
        }
    }

    #[test]
    fn walls_keep_their_values() {
        let before = Grid::new(problem(6, 9, 0));
        let after = run(problem(6, 9, 10), |_| ()).grid;
        for j in 0..=10 {
            assert_eq!(
                (after.at(0, j), after.at(7, j)),
                (before.at(0, j), before.at(7, j))
            );
        }
        assert!((0..8).all(|i| after.at(i, 0) == before.at(i, 0)));
    }

    #[test]
    fn every_step_changes_the_digest_and_the_same_run_repeats_it() {
        let digest = |steps| run(problem(8, 9, steps), |_| ()).grid.digest();
        assert_ne!(digest(3), digest(4));
        assert_eq!(digest(3), digest(3));
    }
}
