//! The motion of a molecule: Gear's predictor-corrector method of order 6 (`predic`, `correc`), the
//! walls of the box (`bndry`) and the kinetic energy (`kineti`).

use dhole::Share;

use super::energy::Energy;
use super::model::{MASSES, TIME_STEP};
use super::problem::System;
use crate::vector::{Vector, plus, times};

/// Something for each atom of a molecule: the oxygen atom, then the hydrogen atoms.
pub type Atoms = [Vector; 3];

/// Positions and their derivatives up to this order are followed.
pub const ORDER: usize = 6;

/// What of the error of the second term each term is corrected by, for equations of second order
/// (Gear 1971).
const CORRECTION: [f64; ORDER + 1] = [
    863.0 / 6048.0,
    665.0 / 1008.0,
    1.0,
    25.0 / 36.0,
    35.0 / 144.0,
    1.0 / 24.0,
    1.0 / 360.0,
];

/// Where a molecule's atoms are and how they move: term `k` is the derivative of order `k` of the
/// positions by the time, times the `k`-th power of the time step, over `k!`.
#[derive(Share, Clone, Copy, PartialEq, Default, Debug)]
#[repr(C)]
pub struct Motion {
    /// The terms of the Taylor series; the first are the positions, in angstrom.
    pub terms: [Atoms; ORDER + 1],
}

impl Motion {
    /// Follows the series for one step.
    pub fn predict(&mut self) {
        // Each round adds every term's successor to it, from the highest on; what has been added
        // after all rounds are the binomial coefficients.
        for first in 0..ORDER {
            for term in (first..ORDER).rev() {
                let next = self.terms[term + 1];
                for (sum, next) in self.terms[term].iter_mut().zip(next) {
                    *sum = plus(*sum, next);
                }
            }
        }
    }

    /// Corrects the series by what `force` says of its second term.
    pub fn correct(&mut self, force: &Atoms, system: &System) {
        for (atom, kick) in system.kick.into_iter().enumerate() {
            let error = plus(times(force[atom], kick), times(self.terms[2][atom], -1.0));
            for (term, correction) in self.terms.iter_mut().zip(CORRECTION) {
                term[atom] = plus(term[atom], times(error, correction));
            }
        }
    }

    /// Sets the second term, which is all that is known of the forces before the first step.
    pub fn start(&mut self, force: &Atoms, system: &System) {
        for (atom, kick) in system.kick.into_iter().enumerate() {
            self.terms[2][atom] = times(force[atom], kick);
        }
    }

    /// Takes a molecule whose oxygen atom has left the box to the other side of it.
    pub fn wrap(&mut self, system: &System) {
        for axis in 0..3 {
            let oxygen = self.terms[0][0][axis];
            let shift = if oxygen >= system.side {
                -system.side
            } else if oxygen < 0.0 {
                system.side
            } else {
                continue;
            };
            for atom in &mut self.terms[0] {
                atom[axis] += shift;
            }
        }
    }

    /// Counts kinetic energy and momentum.
    pub fn count(&self, energy: &mut Energy) {
        for (mass, moved) in MASSES.into_iter().zip(self.terms[1]) {
            energy.count(mass, times(moved, 1.0 / TIME_STEP));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::water::problem::Problem;

    #[test]
    fn a_polynomial_of_degree_six_is_predicted_exactly() {
        let mut motion = Motion::default();
        for (k, term) in motion.terms.iter_mut().enumerate() {
            term[1][2] = 1.0 + k as f64;
        }
        motion.predict();
        // Of p(t) = 1 + 2t + .. + 7t^6 at t = 1: its value, and p'(1), p''(1) / 2, ..
        let expected = [28.0, 112.0, 210.0, 224.0, 140.0, 48.0, 7.0];
        assert_eq!(motion.terms.map(|term| term[1][2]), expected);
    }

    #[test]
    fn an_oscillator_keeps_its_energy() {
        let system = System::of(&Problem::new(8, 1, 1));
        let stiffness = 0.5;
        let force = |motion: &Motion| motion.terms[0].map(|atom| times(atom, -stiffness));
        let mut motion = Motion::default();
        motion.terms[0][1] = [0.1, 0.0, 0.0];
        motion.start(&force(&motion), &system);
        let energy = |motion: &Motion| {
            let mut kinetic = Energy::default();
            motion.count(&mut kinetic);
            kinetic.kinetic + 0.5 * stiffness * motion.terms[0][1][0].powi(2)
        };
        let start = energy(&motion);
        for _ in 0..1000 {
            motion.predict();
            motion.correct(&force(&motion), &system);
        }
        let drift = (energy(&motion) - start) / start;
        assert!(drift.abs() < 1e-5, "{drift:e}");
    }

    #[test]
    fn a_molecule_that_leaves_the_box_comes_back_on_the_other_side() {
        let system = System::of(&Problem::new(64, 1, 1));
        let mut motion = Motion::default();
        motion.terms[0] = [[-0.5, 1.0, system.side], [0.3, 1.0, 1.0], [0.0; 3]];
        motion.wrap(&system);
        let [x, y, z] = motion.terms[0][0];
        assert_eq!([x, y, z], [system.side - 0.5, 1.0, 0.0]);
        assert_eq!(motion.terms[0][1][0], system.side + 0.3);
    }
}
