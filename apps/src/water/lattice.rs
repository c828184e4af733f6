//! The initial state (`initia`): molecules side by side on a cubic lattice, all turned alike, with
//! random velocities.

use super::model::{ANGLE, BOND, MASSES, THERMAL, TIME_STEP};
use super::motion::{Atoms, Motion};
use super::problem::{Problem, System};
use crate::random::SplitMix;
use crate::vector::{minus, plus, times};

/// The molecules of `problem` before the first step: at rest as a whole, and along each axis as
/// warm as [`super::model::TEMPERATURE`] says. Their accelerations are not known yet.
///
/// Where their number is no cube, which SPLASH asks for, some of the lattice's places stay free,
/// evenly distributed.
pub fn model(problem: &Problem, system: &System) -> Vec<Motion> {
    let mut motions = vec![Motion::default(); problem.molecules];
    let per_side = (1..).find(|n: &usize| n.pow(3) >= problem.molecules);
    let per_side = per_side.unwrap_or(1);
    for (number, motion) in motions.iter_mut().enumerate() {
        let place = number * per_side.pow(3) / problem.molecules;
        motion.terms[0] = atoms_at(place, per_side, system.side);
    }
    warm(&mut motions, problem.seed);
    motions
}

fn atoms_at(place: usize, per_side: usize, side: f64) -> Atoms {
    let along = |index: usize| (index as f64 + 0.5) * side / per_side as f64;
    let oxygen = [
        along(place / per_side.pow(2)),
        along(place / per_side % per_side),
        along(place % per_side),
    ];
    let (sin, cos) = (0.5 * ANGLE).sin_cos();
    let hydrogen = |y: f64| plus(oxygen, [BOND * cos, y, 0.0]);
    [oxygen, hydrogen(BOND * sin), hydrogen(-BOND * sin)]
}

/// Gives the atoms momenta, which are evenly distributed before they are made to add up to none
/// and to half of kT for each atom and axis.
fn warm(motions: &mut [Motion], seed: u64) {
    let mut random = SplitMix::new(seed);
    let mut sum = [0.0; 3];
    for momentum in motions.iter_mut().flat_map(|motion| &mut motion.terms[1]) {
        *momentum = [(); 3].map(|()| random.between(-4.0, 4.0));
        sum = plus(sum, *momentum);
    }
    let atoms = 3.0 * motions.len() as f64;
    let mean = times(sum, 1.0 / atoms);
    let mut doubled = [0.0; 3];
    for motion in &mut *motions {
        for (momentum, mass) in motion.terms[1].iter_mut().zip(MASSES) {
            *momentum = minus(*momentum, mean);
            doubled = plus(doubled, momentum.map(|along| along * along / mass));
        }
    }
    let scale = doubled.map(|doubled| (THERMAL * atoms / doubled).sqrt() * TIME_STEP);
    for motion in motions {
        for (momentum, mass) in motion.terms[1].iter_mut().zip(MASSES) {
            *momentum = [0, 1, 2].map(|axis| momentum[axis] * scale[axis] / mass);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::water::energy::{Energy, thermal_per_atom};

    fn model_of(molecules: usize, seed: u64) -> (System, Vec<Motion>) {
        let problem = Problem::new(molecules, 1, seed);
        let system = System::of(&problem);
        (system, model(&problem, &system))
    }

    #[test]
    fn the_water_rests_and_is_as_warm_as_the_temperature_says() {
        let (_, motions) = model_of(100, 3);
        let mut energy = Energy::default();
        motions.iter().for_each(|motion| motion.count(&mut energy));
        assert!(energy.momentum.iter().all(|p| p.abs() < 1e-12));
        let thermal = energy.kinetic * thermal_per_atom(100);
        assert!((thermal - 1.5).abs() < 1e-12, "{thermal}");
    }

    #[test]
    fn every_molecule_has_a_place_of_its_own() {
        for molecules in [1, 8, 27, 30] {
            let (system, motions) = model_of(molecules, 3);
            for (n, motion) in motions.iter().enumerate() {
                let oxygen = motion.terms[0][0];
                assert!(oxygen.iter().all(|x| (0.0..system.side).contains(x)));
                for other in &motions[..n] {
                    assert!(system.distance(oxygen, other.terms[0][0]) > 2.0);
                }
            }
        }
    }

    #[test]
    fn the_seed_chooses_the_velocities() {
        assert_eq!(model_of(8, 1).1, model_of(8, 1).1);
        assert_ne!(model_of(8, 1).1, model_of(8, 2).1);
    }
}
