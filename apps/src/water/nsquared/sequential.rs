//! Water-nsquared for one processor.

use std::time::Instant;

use super::section::Section;
use crate::water::{Alone, Energy, Pairs, Problem, Record};

/// All molecules, and the forces on them.
struct Water {
    section: Section,
    units: u64,
    record: Record,
}

impl Water {
    /// Computes all forces and returns the potential energy.
    fn act(&mut self) -> (Energy, Pairs) {
        let within = self.section.act_within();
        let (between, pairs) = self.section.act_between();
        let energy = Energy {
            within,
            between,
            ..Energy::default()
        };
        (energy, pairs)
    }

    fn start(&mut self) -> Energy {
        let (mut energy, _) = self.act();
        let forces = std::mem::take(&mut self.section.forces);
        energy.add(&self.section.start(&forces));
        self.section.forces = forces;
        energy
    }

    fn step(&mut self) -> Energy {
        self.section.predict();
        let (mut energy, pairs) = self.act();
        let forces = std::mem::take(&mut self.section.forces);
        energy.add(&self.section.correct(&forces));
        self.section.forces = forces;
        self.units += self.section.units(pairs);
        if self.record == Record::Splash {
            let (potential, pairs) = self.act();
            energy = energy.with_potential(&potential);
            self.units += pairs.units();
        }
        energy
    }
}

/// Solves `problem`; `after_step` is called with the number of steps done after each.
pub fn run(problem: Problem, mut after_step: impl FnMut(usize)) -> Alone {
    let section = Section::new(&problem, 0..problem.molecules);
    let mut water = Water {
        section,
        units: 0,
        record: problem.record,
    };
    let mut energies = vec![water.start()];
    let stepped_from = Instant::now();
    for step in 0..problem.steps {
        energies.push(water.step());
        after_step(step + 1);
    }
    Alone {
        step_seconds: stepped_from.elapsed().as_secs_f64(),
        atoms: water.section.motions.iter().map(|m| m.terms[0]).collect(),
        energies,
        units: water.units,
    }
}
