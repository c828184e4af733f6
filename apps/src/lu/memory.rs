//! LU over raw memory.

use dhole::memory::{self, SharedRows};
use dhole::{Result, Worker};

use super::kernel::{self, Units};
use super::{Found, Problem};
use crate::raw::{Element, Float};
use crate::solve::Steps;

/// Factors the matrix on the cluster of `w`. The result is complete on node 0.
///
/// # Errors
/// Those of the runtime; and that the run has no raw memory.
pub fn solve(w: &mut Worker<'_>, problem: &Problem, steps: &mut Steps) -> Result<Found> {
    match problem.element {
        Element::F32 => run::<f32>(w, problem, steps),
        Element::F64 => run::<f64>(w, problem, steps),
    }
}

/// One node's part.
struct Part<'a, E: Float> {
    problem: &'a Problem,
    blocks: SharedRows<E>,
    node: usize,
    nodes: usize,
}

impl<E: Float> Part<'_, E> {
    fn owns(&self, at: (usize, usize)) -> bool {
        self.problem.owner(at, self.nodes) == self.node
    }

    fn cells<'id>(&self, w: &Worker<'id>, (i, j): (usize, usize)) -> &'id [E::Atomic] {
        self.blocks.row(i * self.problem.blocks() + j).cells(w)
    }

    /// Asks for blocks of other nodes, if any of them is to be asked for ahead.
    fn ask(&self, w: &Worker<'_>, wanted: impl Iterator<Item = (usize, usize)>) -> Result<()> {
        for (i, j) in wanted.filter(|at| self.problem.prefetch && !self.owns(*at)) {
            self.blocks.row(i * self.problem.blocks() + j).prefetch(w)?;
        }
        Ok(())
    }

    /// Step `k`.
    fn step(&self, w: &mut Worker<'_>, k: usize) -> Result<()> {
        let (blocks, size) = (self.problem.blocks(), self.problem.block);
        let cost = Units::of(size);
        let rest = || k + 1..blocks;
        if self.owns((k, k)) {
            kernel::factor::<E>(self.cells(w, (k, k)), size);
            w.work(cost.factor);
        }
        w.barrier()?;
        let edges = rest().flat_map(|it| [(it, k), (k, it)]);
        let own: Vec<(usize, usize)> = edges.filter(|at| self.owns(*at)).collect();
        self.ask(w, own.first().map(|_| (k, k)).into_iter())?;
        for (i, j) in own {
            let (block, diagonal) = (self.cells(w, (i, j)), self.cells(w, (k, k)));
            match j == k {
                true => kernel::below::<E>(block, diagonal, size),
                false => kernel::beside::<E>(block, diagonal, size),
            }
            w.work(cost.edge);
        }
        w.barrier()?;
        let below = rest().filter(|i| rest().any(|j| self.owns((*i, j))));
        let beside = rest().filter(|j| rest().any(|i| self.owns((i, *j))));
        let wanted = below.map(|i| (i, k)).chain(beside.map(|j| (k, j)));
        self.ask(w, wanted)?;
        for i in rest() {
            for j in rest().filter(|j| self.owns((i, *j))) {
                let [block, below, beside] = [(i, j), (i, k), (k, j)].map(|at| self.cells(w, at));
                kernel::inner::<E>(block, below, beside, size);
                w.work(cost.inner);
            }
        }
        Ok(())
    }
}

fn run<E: Float>(w: &mut Worker<'_>, problem: &Problem, steps: &mut Steps) -> Result<Found> {
    let (node, nodes, side) = (w.node().index(), w.nodes(), problem.blocks());
    let all = side * side;
    let blocks = w.once(|w| Ok(memory::alloc_rows::<E>(w, all, problem.block_len())?))?;
    let part = Part {
        problem,
        blocks,
        node,
        nodes,
    };
    let own = (0..all).map(|at| (at / side, at % side));
    let own: Vec<(usize, usize)> = own.filter(|at| part.owns(*at)).collect();
    for at in &own {
        for (place, cell) in part.cells(w, *at).iter().enumerate() {
            E::store(cell, problem.element_of(*at, place));
        }
    }
    w.barrier()?;
    steps.begin(w)?;
    for k in 0..side {
        part.step(w, k)?;
    }
    steps.end(w)?;
    let digest = own.iter().map(|at| {
        let numbers = part.cells(w, *at).iter().map(E::load);
        problem.digest(*at, numbers)
    });
    let digest = digest.fold(0, u64::wrapping_add);
    let digest = w.all_reduce(digest, u64::wrapping_add)?;
    let mut found = Found {
        digest,
        residual: 0.0,
        usage: None,
    };
    if node == 0 {
        found.residual = problem.residual(|row, column| {
            let cells = part.cells(w, (row / problem.block, column / problem.block));
            E::load(&cells[row % problem.block * problem.block + column % problem.block])
        });
        found.usage = Some(memory::usage(w)?);
    }
    w.barrier()?;
    Ok(found)
}
