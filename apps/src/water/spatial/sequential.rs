//! Water-spatial for one processor.

use std::time::Instant;

use super::block::Block;
use super::grid::Grid;
use crate::water::{Alone, Atoms, Energy, Pairs, Problem, Record, System};

/// Computes all forces and returns the potential energy.
fn act(water: &mut Block) -> (Energy, Pairs) {
    let within = water.act_within();
    let (between, pairs) = water.act_between();
    let energy = Energy {
        within,
        between,
        ..Energy::default()
    };
    (energy, pairs)
}

/// Solves `problem`; `after_step` is called with the number of steps done after each.
pub fn run(problem: Problem, mut after_step: impl FnMut(usize)) -> Alone {
    let cells = Grid::of(&System::of(&problem)).cells();
    let mut water = Block::new(&problem, 0..cells);
    let (mut energy, _) = act(&mut water);
    energy.add(&water.start());
    let mut energies = vec![energy];
    let mut units = 0;
    let stepped_from = Instant::now();
    for step in 0..problem.steps {
        water.predict();
        let (mut energy, pairs) = act(&mut water);
        energy.add(&water.correct());
        units += water.units(pairs);
        let strangers = water.move_on();
        debug_assert!(strangers.is_empty(), "all cells are here");
        if problem.record == Record::Splash {
            let (potential, pairs) = act(&mut water);
            energy = energy.with_potential(&potential);
            units += pairs.units();
        }
        energies.push(energy);
        after_step(step + 1);
    }
    let step_seconds = stepped_from.elapsed().as_secs_f64();
    let mut atoms = vec![Atoms::default(); problem.molecules];
    for resident in water.residents() {
        atoms[resident.number as usize] = resident.motion.terms[0];
    }
    Alone {
        atoms,
        energies,
        step_seconds,
        units,
    }
}
