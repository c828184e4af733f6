//! LU: a dense matrix as the product of a lower and an upper triangular one, by blocks, without
//! pivots (SPLASH-2's LU with contiguous blocks; MultiView, section 4.3). Over raw memory.
//!
//! Each block is a minipage. Block `(i, j)` belongs to one node, by a grid of nodes that repeats
//! itself over the blocks, and that node alone writes it. In step `k`:
//!
//! 1. The owner of block `(k, k)` factors it. Barrier.
//! 2. The owners of the blocks below it and beside it read it, and finish theirs. Barrier.
//! 3. Each node subtracts from its blocks `(i, j)` with `i, j > k` the product of `(i, k)` and
//!    `(k, j)`. It reads those of other nodes once.
//!
//! That makes 2 barriers a step. With prefetch a node asks for the block that it needs in part 2,
//! and for all blocks that it needs in part 3, before it reads the first: two calls.

mod kernel;
mod memory;
mod options;
mod sequential;

pub use memory::solve;
pub use options::Options;

use dhole::memory::MemoryUsage;
use serde_json::{Value, json};

use crate::program::Losses;
use crate::random::SplitMix;
use crate::raw::{self, Element};
use crate::solve::Program;

/// A matrix, and how it is factored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Rows and columns, a multiple of those of a block.
    pub size: usize,
    /// Rows and columns of a block.
    pub block: usize,
    /// Chooses the matrix.
    pub seed: u64,
    /// Whether blocks of other nodes are asked for ahead.
    pub prefetch: bool,
    /// The numbers.
    pub element: Element,
}

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Found {
    /// Tells the factors from others.
    pub digest: u64,
    /// The largest difference from 1 of the solution of `A x = A 1` that the factors give: on
    /// node 0.
    pub residual: f64,
    /// What node 0 has allocated, if it is shared.
    pub usage: Option<MemoryUsage>,
}

impl Problem {
    /// Blocks along a side of the matrix.
    fn blocks(&self) -> usize {
        self.size / self.block
    }

    /// Numbers in a block.
    fn block_len(&self) -> usize {
        self.block * self.block
    }

    /// An element of the matrix, a random number in `0.0..1.0` as `f32` has it, but for the
    /// diagonal, which outweighs its row.
    fn element(&self, row: usize, column: usize) -> f64 {
        let bits = SplitMix::new(self.seed).at((row * self.size + column) as u64);
        let random = f64::from((bits >> 40) as u32) / f64::from(1_u32 << 24);
        match row == column {
            true => random + self.size as f64,
            false => random,
        }
    }

    /// Element `place` of block `(i, j)`.
    fn element_of(&self, (i, j): (usize, usize), place: usize) -> f64 {
        let (row, column) = (place / self.block, place % self.block);
        self.element(i * self.block + row, j * self.block + column)
    }

    /// The node that owns a block, of a grid of nodes as square as their number allows.
    fn owner(&self, (i, j): (usize, usize), nodes: usize) -> usize {
        let root = nodes.isqrt();
        let rows = (1..=root).rev().find(|rows| nodes.is_multiple_of(*rows));
        let rows = rows.unwrap_or(1);
        let columns = nodes / rows;
        (j % columns) + (i % rows) * columns
    }

    /// The part of a block in the digest.
    fn digest(&self, (i, j): (usize, usize), numbers: impl Iterator<Item = f64>) -> u64 {
        let place = (i * self.blocks() + j) as u64;
        let fold = |sum: u64, number: f64| sum.rotate_left(5) ^ number.to_bits();
        let sum = numbers.fold(place, fold);
        sum.wrapping_mul(2 * place + 1)
    }

    /// How far the solution of `A x = A 1` by the factors is from 1.
    fn residual(&self, factor: impl Fn(usize, usize) -> f64) -> f64 {
        let size = self.size;
        let row = |row: usize| {
            (0..size)
                .map(|column| self.element(row, column))
                .sum::<f64>()
        };
        let mut x: Vec<f64> = (0..size).map(row).collect();
        for row in 0..size {
            let known: f64 = (0..row).map(|column| factor(row, column) * x[column]).sum();
            x[row] -= known;
        }
        for row in (0..size).rev() {
            let known: f64 = (row + 1..size)
                .map(|column| factor(row, column) * x[column])
                .sum();
            x[row] = (x[row] - known) / factor(row, row);
        }
        let apart = |x: &f64| (x - 1.0).abs();
        // A NaN must not be overlooked.
        let largest = |most: f64, apart: f64| if apart <= most { most } else { apart };
        x.iter().map(apart).fold(0.0, largest)
    }

    /// The largest residual that rounding makes.
    fn rounding(&self) -> f64 {
        match self.element {
            Element::F32 => 1e-3,
            Element::F64 => 1e-10,
        }
    }
}

/// The program.
pub const PROGRAM: Program<Problem, Found> = Program {
    name: "lu",
    losses: Losses::End,
    sequential: sequential::solve,
    shared: memory::solve,
    differ,
    title: |problem| {
        let Problem { size, block, .. } = problem;
        format!("LU factors of a matrix of {size} x {size}, in blocks of {block} x {block}")
    },
    found: |_, found| {
        let Found {
            digest, residual, ..
        } = found;
        format!("a solution by the factors is off by {residual:.0e}; digest {digest:016x}")
    },
    result,
    keep: |problem, found| match found.residual <= problem.rounding() {
        true => Ok(()),
        false => Err(dhole::Error::program(format!(
            "the factors are wrong: a solution by them is {} off",
            found.residual
        ))),
    },
};

fn differ(alone: &Found, found: &Found) -> Option<String> {
    let (alone, found) = (alone.digest, found.digest);
    (alone != found).then(|| format!("{alone:016x} and {found:016x}"))
}

fn result(problem: &Problem, found: &Found) -> Value {
    let result = json!({
        "size": problem.size,
        "block": problem.block,
        "digest": format!("{:016x}", found.digest),
        "residual": found.residual,
    });
    match &found.usage {
        Some(usage) => raw::with(result, &raw::shown(usage)),
        None => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(size: usize, block: usize) -> Problem {
        Problem {
            size,
            block,
            seed: 1,
            prefetch: false,
            element: Element::F64,
        }
    }

    #[test]
    fn the_factors_of_any_blocks_solve_equations() {
        for (size, block) in [(1, 1), (6, 1), (12, 3), (12, 12), (40, 8)] {
            let problem = problem(size, block);
            let (found, _) = sequential::solve(&problem);
            assert!(found.residual <= problem.rounding(), "{size}: {found:?}");
        }
        let wrong = problem(12, 3).residual(|row, column| problem(12, 3).element(row, column));
        assert!(wrong > 0.01, "{wrong}");
    }

    #[test]
    fn each_node_owns_as_many_blocks_as_any_other() {
        for nodes in 1..=12 {
            let problem = problem(12, 1);
            let mut owned = vec![0; nodes];
            for i in 0..12 {
                (0..12).for_each(|j| owned[problem.owner((i, j), nodes)] += 1);
            }
            let all = owned.iter().sum::<usize>();
            assert_eq!(all, 144);
            let even = owned.iter().all(|own| own.abs_diff(144 / nodes) <= 12);
            assert!(even, "{nodes}: {owned:?}");
        }
    }
}
