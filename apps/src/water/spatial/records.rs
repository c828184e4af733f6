//! Water-spatial over SPLASH's records: all fields of a molecule are shared, and a molecule that
//! changes its node keeps its record.
//!
//! A step, as SPLASH-2's (`mdmain`), with a barrier after each part:
//!
//! 1. Each node predicts its molecules' positions, and computes the forces within them.
//! 2. It reads the records of the molecules in the cells around its block, and adds up the forces
//!    on its own, in their records: no node adds to another's forces.
//! 3. It corrects its molecules' motion by them, takes those that have left a cell from its
//!    list to that of the other, each under the lock of the cell, and adds up the kinetic energy.
//! 4. It reads the same records once more and adds up the potential energy (`poteng`).
//!
//! Molecules lie in memory as `initia` makes them, along z first, and nodes have blocks as SPLASH-2
//! cuts them. So most pages hold molecules of several nodes, which write them three times in a
//! step.

use dhole::{Lock, Ref, Refs, Share, Worker};

use super::block::Block;
use super::grid::Grid;
use crate::water::inter::Sites;
use crate::water::outcome::Finding;
use crate::water::problem::UNITS_PER_MOLECULE;
use crate::water::{
    Alone, Atoms, Energy, Molecule, Outcome, Pairs, Problem, System, intra, lattice,
};

/// A molecule in the list of its cell: 680 bytes, so that a page holds six.
#[derive(Share, Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct Link {
    /// The molecule.
    pub molecule: Molecule,
    /// Another in its cell.
    pub next: Option<Ref<Link>>,
}

/// A cell.
#[derive(Share, Clone, Copy, Default, Debug)]
pub struct Cell {
    /// A molecule in it, which leads to the others, in no order.
    pub first: Option<Ref<Link>>,
}

/// The roots of the shared data.
#[derive(Share, Clone, Copy)]
struct Shared {
    links: Refs<Link>,
    cells: Refs<Cell>,
    findings: Refs<Finding>,
}

fn create(w: &mut Worker<'_>, problem: &Problem) -> Shared {
    let system = System::of(problem);
    let (grid, nodes) = (Grid::of(&system), w.nodes());
    let motions = lattice::model(problem, &system);
    let link = |number| Link {
        molecule: Molecule::new(number, motions[number]),
        next: None,
    };
    let shared = Shared {
        links: w.alloc_range(motions.len(), link),
        cells: w.alloc_range(grid.cells(), |_| Cell::default()),
        findings: w.alloc_range(nodes, |_| Finding::default()),
    };
    for (number, motion) in motions.iter().enumerate().rev() {
        shared.put(w, shared.links.at(number), grid.cell(motion.terms[0][0]));
    }
    shared
}

impl Shared {
    /// Puts a molecule into the list of a cell.
    fn put(&self, w: &mut Worker<'_>, link: Ref<Link>, cell: usize) {
        let cell = self.cells.at(cell);
        let first = cell.get(w).first;
        link.get_mut(w).next = first;
        cell.get_mut(w).first = Some(link);
    }

    /// Removes a molecule from the list of a cell.
    fn take(&self, w: &mut Worker<'_>, link: Ref<Link>, cell: usize) {
        let next = link.get(w).next;
        let cell = self.cells.at(cell);
        if cell.get(w).first == Some(link) {
            cell.get_mut(w).first = next;
            return;
        }
        let mut list = std::iter::successors(cell.get(w).first, |one| one.get(w).next);
        if let Some(before) = list.find(|one| one.get(w).next == Some(link)) {
            before.get_mut(w).next = next;
        }
    }

    /// The molecules in a cell, in the order of their numbers.
    fn members(&self, w: &Worker<'_>, cell: usize) -> Vec<Ref<Link>> {
        let first = self.cells.at(cell).get(w).first;
        let mut members: Vec<_> = std::iter::successors(first, |one| one.get(w).next).collect();
        members.sort_unstable_by_key(|one| one.get(w).molecule.number);
        members
    }
}

/// One node's part in the run.
struct Part {
    shared: Shared,
    block: Block,
    /// By the block's cells: the molecules in them.
    members: Vec<Vec<Ref<Link>>>,
    /// The cells of other nodes that touch the block,
    around: Vec<usize>,
    /// and the molecules that were in them when they were last looked at.
    neighbours: Vec<Ref<Link>>,
    prefetches: bool,
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
    let shared = w.once(|w| Ok(create(w, problem)))?;
    let mut part = Part::new(w, problem, shared);
    let system = part.block.system;
    let mut found = Finding::default();
    part.list(w);
    part.each(w, |molecule, _| molecule.act_within());
    w.barrier()?;
    let (energy, _) = part.look(w)?;
    w.barrier()?;
    part.each(w, |molecule, forces| {
        molecule.motion.start(forces, &system);
    });
    found.start = part.kinetic(w).with_potential(&energy);
    w.barrier()?;
    w.begin_measuring()?;
    let began = w.now();
    for step in 0..problem.steps {
        part.each(w, |molecule, _| {
            molecule.motion.predict();
            molecule.act_within();
        });
        w.barrier()?;
        let (_, pairs) = part.look(w)?;
        w.work(pairs.units() + part.molecules() * UNITS_PER_MOLECULE);
        found.count(pairs);
        part.each(w, |molecule, forces| molecule.forces = *forces);
        w.barrier()?;
        part.each(w, |molecule, _| molecule.correct(&system));
        part.move_on(w)?;
        found.end = part.kinetic(w);
        w.barrier()?;
        part.list(w);
        let (potential, pairs) = part.look(w)?;
        w.work(pairs.units());
        found.end = found.end.with_potential(&potential);
        w.barrier()?;
        after_step(step + 1);
    }
    let steps = w.now().saturating_sub(began);
    w.end_measuring()?;
    if let Some(alone) = solution {
        for link in part.members.iter().flatten() {
            let molecule = &link.get(w).molecule;
            let expected = &alone.atoms[molecule.number as usize];
            found.compare(&system, molecule.atoms(), expected);
        }
    }
    let all = found.gather(w, shared.findings)?;
    Ok(all.outcome(problem, solution, steps))
}

impl Part {
    fn new(w: &Worker<'_>, problem: &Problem, shared: Shared) -> Part {
        let node = w.node().index();
        let grid = Grid::of(&System::of(problem));
        let owners = grid.splash_owners(w.nodes());
        let own = (0..grid.cells()).filter(|&cell| owners[cell] == node);
        Part {
            shared,
            members: Vec::new(),
            around: grid.around(&owners, node),
            neighbours: Vec::new(),
            prefetches: problem.prefetch,
            block: Block::of_cells(problem, own),
        }
    }

    /// How many molecules are in the block.
    fn molecules(&self) -> u64 {
        self.members.iter().map(|cell| cell.len() as u64).sum()
    }

    /// Reads the lists of the block's cells.
    fn list(&mut self, w: &Worker<'_>) {
        let cells = self.block.cells.iter();
        let members = cells.map(|cell| self.shared.members(w, cell.number));
        self.members = members.collect();
    }

    /// Changes each of the node's molecules, on which these forces were found last.
    fn each(&self, w: &mut Worker<'_>, mut change: impl FnMut(&mut Molecule, &Atoms)) {
        for (cell, members) in self.block.cells.iter().zip(&self.members) {
            let none = Atoms::default();
            let forces = cell.forces().iter().chain(std::iter::repeat(&none));
            for (link, forces) in members.iter().zip(forces) {
                change(&mut link.get_mut(w).molecule, forces);
            }
        }
    }

    /// The kinetic energy of the node's molecules.
    fn kinetic(&self, w: &Worker<'_>) -> Energy {
        let mut energy = Energy::default();
        for link in self.members.iter().flatten() {
            link.get(w).molecule.motion.count(&mut energy);
        }
        energy
    }

    /// Looks at the molecules in and around the block: the forces on those in it are the block's
    /// then, and their potential energy is returned.
    fn look(&mut self, w: &Worker<'_>) -> dhole::Result<(Energy, Pairs)> {
        let mut within = 0.0;
        for (place, members) in self.members.iter().enumerate() {
            let molecules = || members.iter().map(|link| &link.get(w).molecule);
            let sites = molecules().map(|one| Sites::new(one.atoms())).collect();
            let forces = molecules().map(|one| one.forces).collect();
            within += molecules()
                .map(|one| intra::act(one.atoms()).1)
                .sum::<f64>();
            self.block.show(place, sites, forces);
        }
        if self.prefetches {
            let cells = self.shared.cells;
            let around: Vec<Ref<Cell>> = self.around.iter().map(|&cell| cells.at(cell)).collect();
            w.prefetch((&around, &self.neighbours))?;
        }
        self.neighbours.clear();
        for &cell in &self.around {
            let members = self.shared.members(w, cell);
            let sites = members
                .iter()
                .map(|link| Sites::new(link.get(w).molecule.atoms()));
            self.block.view[cell] = sites.collect();
            self.neighbours.extend(members);
        }
        let (between, pairs) = self.block.act_between();
        let energy = Energy {
            within,
            between,
            ..Energy::default()
        };
        Ok((energy, pairs))
    }

    /// Takes molecules that have left their cells to those in which they are now.
    fn move_on(&self, w: &mut Worker<'_>) -> dhole::Result<()> {
        let (shared, grid) = (self.shared, self.block.grid);
        let lock = |cell: usize| Lock::numbered(cell as u32);
        for (cell, members) in self.block.cells.iter().zip(&self.members) {
            for &link in members {
                let now = grid.cell(link.get(w).molecule.atoms()[0]);
                if now != cell.number {
                    lock(cell.number).with(w, |w| {
                        shared.take(w, link, cell.number);
                        Ok(())
                    })?;
                    lock(now).with(w, |w| {
                        shared.put(w, link, now);
                        Ok(())
                    })?;
                }
            }
        }
        Ok(())
    }
}
