//! What is done with blocks (SPLASH-2's `lu0`, `bdiv`, `bmodd` and `bmod`), each in the same order
//! on every number of nodes, so that all round alike.

use crate::raw::Float;

/// The cost of a multiplication and an addition, in units of `Worker::work`.
pub const UNITS_EACH: u64 = 1;

/// Factors a diagonal block.
pub fn factor<E: Float>(diagonal: &[E::Atomic], size: usize) {
    for k in 0..size {
        let pivot = E::load(&diagonal[k * size + k]);
        for i in k + 1..size {
            let quotient = E::load(&diagonal[i * size + k]) / pivot;
            E::store(&diagonal[i * size + k], quotient);
            let quotient = E::load(&diagonal[i * size + k]);
            for j in k + 1..size {
                subtract::<E>(&diagonal[i * size + j], quotient, &diagonal[k * size + j]);
            }
        }
    }
}

/// Finishes a block below a diagonal one.
pub fn below<E: Float>(block: &[E::Atomic], diagonal: &[E::Atomic], size: usize) {
    for i in 0..size {
        for k in 0..size {
            let quotient = E::load(&block[i * size + k]) / E::load(&diagonal[k * size + k]);
            E::store(&block[i * size + k], quotient);
            let quotient = E::load(&block[i * size + k]);
            for j in k + 1..size {
                subtract::<E>(&block[i * size + j], quotient, &diagonal[k * size + j]);
            }
        }
    }
}

/// Finishes a block beside a diagonal one.
pub fn beside<E: Float>(block: &[E::Atomic], diagonal: &[E::Atomic], size: usize) {
    for k in 0..size {
        for i in k + 1..size {
            let factor = E::load(&diagonal[i * size + k]);
            for j in 0..size {
                subtract::<E>(&block[i * size + j], factor, &block[k * size + j]);
            }
        }
    }
}

/// Subtracts the product of two blocks.
pub fn inner<E: Float>(
    block: &[E::Atomic],
    below: &[E::Atomic],
    beside: &[E::Atomic],
    size: usize,
) {
    for i in 0..size {
        let row = &block[i * size..][..size];
        for k in 0..size {
            let factor = E::load(&below[i * size + k]);
            let beside = &beside[k * size..][..size];
            for (to, by) in row.iter().zip(beside) {
                subtract::<E>(to, factor, by);
            }
        }
    }
}

#[inline(always)]
fn subtract<E: Float>(from: &E::Atomic, factor: f64, by: &E::Atomic) {
    E::store(from, E::load(from) - factor * E::load(by));
}

/// The cost of each, in the same units.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    /// Of a diagonal block.
    pub factor: u64,
    /// Of a block below or beside it.
    pub edge: u64,
    /// Of any other.
    pub inner: u64,
}

impl Units {
    /// Those of blocks of this size.
    pub const fn of(size: usize) -> Units {
        let cube = (size * size * size) as u64 * UNITS_EACH;
        Units {
            factor: cube.div_ceil(3),
            edge: cube.div_ceil(2),
            inner: cube,
        }
    }
}
