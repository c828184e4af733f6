//! LU for one processor, over the same atomics, which plain memory has too.

use super::kernel::{self, Units};
use super::{Found, Problem};
use crate::raw::{Element, Float};

/// Factors the matrix; the result, and its units of work.
pub fn solve(problem: &Problem) -> (Found, u64) {
    match problem.element {
        Element::F32 => run::<f32>(problem),
        Element::F64 => run::<f64>(problem),
    }
}

fn run<E: Float>(problem: &Problem) -> (Found, u64)
where
    E::Atomic: Default,
{
    let (blocks, size) = (problem.blocks(), problem.block);
    let all: Vec<Vec<E::Atomic>> = (0..blocks * blocks)
        .map(|at| {
            let number = |place| {
                let cell = E::Atomic::default();
                E::store(&cell, problem.element_of((at / blocks, at % blocks), place));
                cell
            };
            (0..problem.block_len()).map(number).collect()
        })
        .collect();
    let of = |i: usize, j: usize| &all[i * blocks + j][..];
    let cost = Units::of(size);
    let mut units = 0;
    for k in 0..blocks {
        kernel::factor::<E>(of(k, k), size);
        for rest in k + 1..blocks {
            kernel::below::<E>(of(rest, k), of(k, k), size);
            kernel::beside::<E>(of(k, rest), of(k, k), size);
        }
        for i in k + 1..blocks {
            (k + 1..blocks).for_each(|j| kernel::inner::<E>(of(i, j), of(i, k), of(k, j), size));
        }
        let left = (blocks - k - 1) as u64;
        units += cost.factor + 2 * left * cost.edge + left * left * cost.inner;
    }
    let digest = (0..blocks * blocks).map(|at| {
        let numbers = all[at].iter().map(E::load);
        problem.digest((at / blocks, at % blocks), numbers)
    });
    let found = Found {
        digest: digest.fold(0, u64::wrapping_add),
        residual: problem.residual(|row, column| {
            let cells = of(row / size, column / size);
            E::load(&cells[row % size * size + column % size])
        }),
        usage: None,
    };
    (found, units)
}
