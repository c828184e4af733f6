//! The force law: when a cell counts as one mass, and how a mass pulls.

use super::Problem;
use apps_common::vector::{Vector, dot, minus, plus, times};

/// The constants of the force law, squared, as the inner loop wants them.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    theta_squared: f64,
    softening_squared: f64,
}

impl Law {
    /// The law of `problem`.
    pub fn of(problem: &Problem) -> Law {
        Law {
            theta_squared: problem.theta * problem.theta,
            softening_squared: problem.softening * problem.softening,
        }
    }
}

/// The pull of others on a body.
#[derive(Clone, Copy, Default, Debug)]
pub struct Pull {
    /// Acceleration.
    pub acc: Vector,
    /// Potential, negative; a body's potential energy is half its mass times this.
    pub phi: f64,
    /// Interactions with bodies and cells.
    pub interactions: u64,
}

impl Pull {
    /// The expected cost of the body in the next step, in interactions: its cost in this step, and
    /// at least 1.
    pub fn cost(&self) -> u64 {
        self.interactions.max(1)
    }
}

/// A place at which the pull of others adds up.
#[derive(Clone, Debug)]
pub struct Target {
    law: Law,
    at: Vector,
    /// The pull so far.
    pub pull: Pull,
}

impl Target {
    /// A body at `at`, not yet pulled.
    #[inline]
    pub fn new(law: Law, at: Vector) -> Target {
        Target {
            law,
            at,
            pull: Pull::default(),
        }
    }

    /// From here to `pos`, and the square of the distance.
    #[inline(always)]
    pub fn reach(&self, pos: Vector) -> (Vector, f64) {
        let way = minus(pos, self.at);
        (way, dot(way, way))
    }

    /// Whether a cell at this distance is too near to count as one mass (SPLASH-2's `subdivp`).
    #[inline(always)]
    pub fn opens(&self, distance_squared: f64, side_squared: f64) -> bool {
        self.law.theta_squared * distance_squared < side_squared
    }

    /// Adds the pull of `mass` at the end of `way`.
    #[inline(always)]
    pub fn add(&mut self, (way, distance_squared): (Vector, f64), mass: f64) {
        let squared = distance_squared + self.law.softening_squared;
        let inverse = 1.0 / squared.sqrt();
        let phi = mass * inverse;
        self.pull.phi -= phi;
        self.pull.acc = plus(self.pull.acc, times(way, phi * (inverse * inverse)));
        self.pull.interactions += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mass_pulls_by_the_inverse_square() {
        let problem = Problem {
            softening: 0.0,
            ..Problem::new(1, 1, 1)
        };
        let mut target = Target::new(Law::of(&problem), [1.0, 0.0, 0.0]);
        target.add(target.reach([1.0, 2.0, 0.0]), 8.0);
        assert_eq!(
            (target.pull.acc, target.pull.phi, target.pull.interactions),
            ([0.0, 2.0, 0.0], -4.0, 1)
        );
    }

    #[test]
    fn softening_keeps_the_pull_finite() {
        let mut target = Target::new(Law::of(&Problem::new(1, 1, 1)), [0.0; 3]);
        target.add(target.reach([0.0; 3]), 1.0);
        assert_eq!(target.pull.acc, [0.0; 3]);
        assert!((target.pull.phi + 1.0 / 0.05).abs() < 1e-9);
    }

    #[test]
    fn a_cell_opens_when_it_is_nearer_than_its_side() {
        let target = Target::new(Law::of(&Problem::new(1, 1, 1)), [0.0; 3]);
        assert!(target.opens(0.99, 1.0) && !target.opens(1.0, 1.0));
    }
}
