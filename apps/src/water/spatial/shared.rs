//! Water-spatial over shared molecules and cells.
//!
//! The data that other nodes need are shared: the positions of each molecule, and for each cell the
//! list of the molecules in it, which is linked through them. Only the node that has a molecule's
//! cell knows its motion, until it hands the molecule on. A step:
//!
//! 1. Each node predicts its molecules' positions, shows them, and links the lists of its cells.
//!    Barrier.
//! 2. It reads the lists of the cells around its block, computes the forces on its molecules,
//!    corrects their motion, and hands on those that have come to another node's cell: under one
//!    lock for each such node, into a list of its own. Barrier.
//! 3. It takes in those that were handed on to it.

use std::collections::BTreeMap;

use dhole::{Lock, Ref, Refs, Share, Worker};

use super::block::{Block, Resident};
use super::grid::Grid;
use crate::pool::Pool;
use crate::water::inter::Sites;
use crate::water::outcome::Finding;
use crate::water::{Alone, Atoms, Energy, Motion, Outcome, Pairs, Problem, System};

/// The fields of a molecule that other nodes need.
#[derive(Share, Clone, Copy, Debug)]
#[repr(C)]
pub struct Molecule {
    /// Where its atoms are, in angstrom.
    pub atoms: Atoms,
    /// The next molecule in its cell, which has a higher number.
    pub next: Option<Ref<Molecule>>,
}

/// A cell.
#[derive(Share, Clone, Copy, Default, Debug)]
pub struct Cell {
    /// The molecule of the lowest number in it.
    pub first: Option<Ref<Molecule>>,
}

/// A molecule that is handed on.
#[derive(Share, Clone, Copy, Debug)]
#[repr(C)]
pub struct Mover {
    /// How it moves.
    pub motion: Motion,
    /// The next that is handed on to the same node.
    pub next: Option<Ref<Mover>>,
    /// Its number.
    pub number: u32,
}

/// Where molecules wait for the node to whose cells they have come, under the lock of its number.
#[derive(Share, Clone, Copy, Default, Debug)]
pub struct Inbox {
    /// The first of them.
    pub first: Option<Ref<Mover>>,
}

/// The roots of the shared data.
#[derive(Share, Clone, Copy)]
struct Shared {
    /// By their numbers.
    molecules: Refs<Molecule>,
    cells: Refs<Cell>,
    inboxes: Refs<Inbox>,
    findings: Refs<Finding>,
}

fn create(w: &mut Worker<'_>, problem: &Problem, cells: usize) -> Shared {
    let nodes = w.nodes();
    let nowhere = Molecule {
        atoms: Atoms::default(),
        next: None,
    };
    Shared {
        molecules: w.alloc_range(problem.molecules, |_| nowhere),
        cells: w.alloc_range(cells, |_| Cell::default()),
        inboxes: w.alloc_range(nodes, |_| Inbox::default()),
        findings: w.alloc_range(nodes, |_| Finding::default()),
    }
}

impl Shared {
    fn molecule(&self, resident: &Resident) -> Ref<Molecule> {
        self.molecules.at(resident.number as usize)
    }
}

/// One node's part in the run.
struct Part {
    shared: Shared,
    block: Block,
    /// The node of each cell.
    owners: Vec<usize>,
    /// The cells of other nodes that touch the block,
    around: Vec<usize>,
    /// and the molecules that were in them when they were last looked at.
    neighbours: Vec<Ref<Molecule>>,
    prefetches: bool,
    movers: Pool<Mover>,
}

/// Solves `problem` on the cluster of `w`. Every node calls it; `after_step` is called with the
/// number of steps done after each. With a `solution` the result is compared with it. The result is
/// complete on node 0.
///
/// # Errors
/// Those of the runtime.
pub fn run(
    w: &mut Worker<'_>,
    problem: &Problem,
    solution: Option<&Alone>,
    after_step: impl Fn(usize),
) -> dhole::Result<Outcome> {
    let grid = Grid::of(&System::of(problem));
    let shared = w.once(|w| Ok(create(w, problem, grid.cells())))?;
    let mut part = Part::new(w, problem, shared);
    let mut found = Finding::default();
    let own: Vec<Ref<Molecule>> = part.block.residents().map(|r| shared.molecule(r)).collect();
    if problem.prefetch {
        w.prefetch(&own)?;
    }
    part.show(w);
    w.barrier()?;
    (found.start, _) = part.act(w)?;
    found.start.add(&part.block.start());
    w.barrier()?;
    w.begin_measuring()?;
    let began = w.now();
    for step in 0..problem.steps {
        part.block.predict();
        part.show(w);
        w.barrier()?;
        let (potential, pairs) = part.act(w)?;
        found.end = potential;
        found.end.add(&part.block.correct());
        found.count(pairs);
        part.hand_on(w)?;
        w.barrier()?;
        part.take_in(w);
        after_step(step + 1);
    }
    w.barrier()?;
    let steps = w.now().saturating_sub(began);
    w.end_measuring()?;
    if let Some(alone) = solution {
        for Resident { number, motion } in part.block.residents() {
            let expected = &alone.atoms[*number as usize];
            found.compare(&part.block.system, &motion.terms[0], expected);
        }
    }
    let all = found.gather(w, shared.findings)?;
    Ok(all.outcome(problem, solution, steps))
}

impl Part {
    fn new(w: &Worker<'_>, problem: &Problem, shared: Shared) -> Part {
        let node = w.node().index();
        let grid = Grid::of(&System::of(problem));
        let owners = grid.owners(w.nodes());
        let own = (0..grid.cells()).filter(|&cell| owners[cell] == node);
        let mut around = grid.around(&owners, node);
        around.sort_unstable();
        let outskirts = Block::new(problem, around.iter().copied());
        Part {
            shared,
            block: Block::new(problem, own),
            owners,
            around,
            prefetches: problem.prefetch,
            neighbours: outskirts.residents().map(|r| shared.molecule(r)).collect(),
            movers: Pool::default(),
        }
    }

    /// Shows where the molecules are, and in which cells.
    fn show(&self, w: &mut Worker<'_>) {
        for cell in &self.block.cells {
            let mut next = None;
            for resident in cell.residents.iter().rev() {
                let molecule = self.shared.molecule(resident);
                let atoms = resident.motion.terms[0];
                *molecule.get_mut(w) = Molecule { atoms, next };
                next = Some(molecule);
            }
            let shared = self.shared.cells.at(cell.number);
            // Others need not be told of a list that begins as before.
            if shared.get(w).first != next {
                shared.get_mut(w).first = next;
            }
        }
    }

    /// Computes the forces on the block's molecules, and returns their energy.
    fn act(&mut self, w: &Worker<'_>) -> dhole::Result<(Energy, Pairs)> {
        let within = self.block.act_within();
        self.look_around(w)?;
        let (between, pairs) = self.block.act_between();
        w.work(self.block.units(pairs));
        let energy = Energy {
            within,
            between,
            ..Energy::default()
        };
        Ok((energy, pairs))
    }

    /// Reads the lists of the cells around the block. Nearly all molecules are where they were, so
    /// they can be asked for together, before the lists tell.
    fn look_around(&mut self, w: &Worker<'_>) -> dhole::Result<()> {
        let cells = self.shared.cells;
        let around: Vec<Ref<Cell>> = self.around.iter().map(|&cell| cells.at(cell)).collect();
        if self.prefetches {
            w.prefetch((&around, &self.neighbours))?;
        }
        self.neighbours.clear();
        for &cell in &self.around {
            let view = &mut self.block.view[cell];
            view.clear();
            let mut next = cells.at(cell).get(w).first;
            while let Some(molecule) = next {
                self.neighbours.push(molecule);
                let molecule = molecule.get(w);
                view.push(Sites::new(&molecule.atoms));
                next = molecule.next;
            }
        }
        Ok(())
    }

    /// Hands on the molecules that have left the block.
    fn hand_on(&mut self, w: &mut Worker<'_>) -> dhole::Result<()> {
        let mut leaving: BTreeMap<usize, Vec<Resident>> = BTreeMap::new();
        for (cell, resident) in self.block.move_on() {
            let owner = self.owners[cell];
            leaving.entry(owner).or_default().push(resident);
        }
        self.movers.reuse();
        for (node, residents) in leaving {
            let inbox = self.shared.inboxes.at(node);
            Lock::numbered(node as u32).with(w, |w| {
                let mut next = inbox.get(w).first;
                for Resident { number, motion } in residents {
                    let mover = Mover {
                        motion,
                        next,
                        number,
                    };
                    next = Some(self.movers.take(w, mover));
                }
                inbox.get_mut(w).first = next;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Takes in the molecules that were handed on to this node.
    fn take_in(&mut self, w: &mut Worker<'_>) {
        let inbox = self.shared.inboxes.at(w.node().index());
        let first = inbox.get(w).first;
        if first.is_some() {
            inbox.get_mut(w).first = None;
        }
        let movers = std::iter::successors(first, |mover| mover.get(w).next);
        self.block.admit(movers.map(|mover| {
            let &Mover { motion, number, .. } = mover.get(w);
            Resident { number, motion }
        }));
    }
}
