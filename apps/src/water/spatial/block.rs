//! A block: some cells, the molecules in them, and the sums over pairs with the cells around them.

use super::grid::Grid;
use crate::water::inter::Sites;
use crate::water::problem::UNITS_PER_MOLECULE;
use crate::water::{Atoms, Energy, Motion, Pairs, Problem, System, inter, intra, lattice};

/// A molecule.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Resident {
    /// Its number.
    pub number: u32,
    /// How it moves.
    pub motion: Motion,
}

/// One of a block's cells.
#[derive(Clone, Default, Debug)]
pub struct Cell {
    /// Its number.
    pub number: usize,
    /// The molecules in it, by their numbers.
    pub residents: Vec<Resident>,
    /// The forces on them.
    forces: Vec<Atoms>,
}

impl Cell {
    /// The forces on the molecules in it.
    pub fn forces(&self) -> &[Atoms] {
        &self.forces
    }
}

/// Cells, and what one can see from them.
#[derive(Debug)]
pub struct Block {
    /// The box.
    pub system: System,
    /// The cells of the box.
    pub grid: Grid,
    /// The cells of the block, by their numbers.
    pub cells: Vec<Cell>,
    /// For all cells of the box: the sites of the molecules in them, in the molecules' order. Those
    /// of cells that do not touch the block are never looked at.
    pub view: Vec<Vec<Sites>>,
    /// For all cells of the box: which of `cells` it is.
    place: Vec<Option<usize>>,
}

impl Block {
    /// The molecules of `problem` before the first step that are in the cells `own`.
    pub fn new(problem: &Problem, own: impl Iterator<Item = usize>) -> Block {
        let mut block = Block::of_cells(problem, own);
        let motions = lattice::model(problem, &block.system);
        for (motion, number) in motions.into_iter().zip(0..) {
            block.take(Resident { number, motion });
        }
        block
    }

    /// The cells `own` without molecules.
    pub fn of_cells(problem: &Problem, own: impl Iterator<Item = usize>) -> Block {
        let system = System::of(problem);
        let grid = Grid::of(&system);
        let mut block = Block {
            system,
            grid,
            cells: Vec::new(),
            view: vec![Vec::new(); grid.cells()],
            place: vec![None; grid.cells()],
        };
        for number in own {
            block.place[number] = Some(block.cells.len());
            block.cells.push(Cell {
                number,
                ..Cell::default()
            });
        }
        block
    }

    /// The molecules in the block's cell at `place` have these sites, and these forces on them to
    /// begin with; both in one order.
    pub fn show(&mut self, place: usize, sites: Vec<Sites>, forces: Vec<Atoms>) {
        let cell = &mut self.cells[place];
        cell.forces = forces;
        self.view[cell.number] = sites;
    }

    /// Puts a molecule into its cell, if that is in the block.
    fn take(&mut self, resident: Resident) -> Option<Resident> {
        let cell = self.grid.cell(resident.motion.terms[0][0]);
        let Some(place) = self.place[cell] else {
            return Some(resident);
        };
        let residents = &mut self.cells[place].residents;
        let at = residents.partition_point(|other| other.number < resident.number);
        residents.insert(at, resident);
        None
    }

    /// Puts molecules into their cells, all of which are in the block.
    pub fn admit(&mut self, residents: impl Iterator<Item = Resident>) {
        for resident in residents {
            let stranger = self.take(resident);
            debug_assert_eq!(stranger, None, "handed on to the node that has its cell");
        }
    }

    /// Takes molecules that have left their cells to those in which they are now. Those that have
    /// left the block are returned, by their cells.
    pub fn move_on(&mut self) -> Vec<(usize, Resident)> {
        let grid = self.grid;
        let mut leaving = Vec::new();
        for cell in &mut self.cells {
            let number = cell.number;
            let left = cell
                .residents
                .extract_if(.., |r| grid.cell(r.motion.terms[0][0]) != number);
            leaving.extend(left);
        }
        leaving
            .into_iter()
            .filter_map(|resident| self.take(resident))
            .map(|resident| (grid.cell(resident.motion.terms[0][0]), resident))
            .collect()
    }

    /// How many molecules there are.
    pub fn len(&self) -> usize {
        self.cells.iter().map(|cell| cell.residents.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All molecules of the block.
    pub fn residents(&self) -> impl Iterator<Item = &Resident> {
        self.cells.iter().flat_map(|cell| &cell.residents)
    }

    /// Predicts where the molecules will be.
    pub fn predict(&mut self) {
        let residents = self.cells.iter_mut().flat_map(|cell| &mut cell.residents);
        residents.for_each(|resident| resident.motion.predict());
    }

    /// Begins with the forces anew: with those within the molecules. Returns the energy.
    pub fn act_within(&mut self) -> f64 {
        let mut sum = 0.0;
        for Cell {
            number,
            residents,
            forces,
        } in &mut self.cells
        {
            let view = &mut self.view[*number];
            view.clear();
            forces.clear();
            for resident in residents {
                let atoms = &resident.motion.terms[0];
                let (force, energy) = intra::act(atoms);
                view.push(Sites::new(atoms));
                forces.push(force);
                sum += energy;
            }
        }
        sum
    }

    /// Adds the forces of all molecules in the cells around on those in the block. Returns the
    /// energy, of which a pair has one half on either side.
    pub fn act_between(&mut self) -> (f64, Pairs) {
        let mut energy = 0.0;
        let mut pairs = Pairs::default();
        for Cell { number, forces, .. } in &mut self.cells {
            for other in self.grid.neighbours(*number) {
                for (index, (one, force)) in self.view[*number].iter().zip(&mut *forces).enumerate()
                {
                    let others = &self.view[other];
                    let itself = if other == *number {
                        index
                    } else {
                        others.len()
                    };
                    for (index, other) in others.iter().enumerate() {
                        if index == itself {
                            continue;
                        }
                        pairs.seen += 1;
                        if let Some(exchange) = inter::act(&self.system, one, other) {
                            inter::add(force, &exchange.on_one());
                            energy += 0.5 * exchange.energy;
                            pairs.near += 1;
                        }
                    }
                }
            }
        }
        (energy, pairs)
    }

    /// Takes the forces as what the motion starts with.
    pub fn start(&mut self) -> Energy {
        let mut energy = Energy::default();
        for cell in &mut self.cells {
            for (resident, force) in cell.residents.iter_mut().zip(&cell.forces) {
                resident.motion.start(force, &self.system);
                resident.motion.count(&mut energy);
            }
        }
        energy
    }

    /// Corrects where the molecules are by the forces.
    pub fn correct(&mut self) -> Energy {
        let mut energy = Energy::default();
        for cell in &mut self.cells {
            for (resident, force) in cell.residents.iter_mut().zip(&cell.forces) {
                resident.motion.correct(force, &self.system);
                resident.motion.wrap(&self.system);
                resident.motion.count(&mut energy);
            }
        }
        energy
    }

    /// The cost of a step with these pairs in units of `Worker::work`.
    pub fn units(&self, pairs: Pairs) -> u64 {
        pairs.units() + self.len() as u64 * UNITS_PER_MOLECULE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn molecules_that_leave_are_found_where_they_went() {
        let problem = Problem::new(64, 1, 1);
        let mut low = Block::new(&problem, 0..4);
        let mut high = Block::new(&problem, 4..8);
        assert_eq!((low.len(), high.len()), (32, 32));
        let half = 0.5 * low.system.side;
        let mut first = low.cells[0].residents[0];
        low.cells[0].residents[0].motion.terms[0][0][0] += half;
        low.cells[0].residents[1].motion.terms[0][0][2] += half;
        first.motion.terms[0][0][0] += half;
        assert_eq!(low.move_on(), [(4, first)]);
        assert_eq!((low.len(), low.cells[1].residents.len()), (31, 9));
        high.admit([first].into_iter());
        assert_eq!(high.cells[0].residents[0], first);
        assert!(low.move_on().is_empty());
    }
}
