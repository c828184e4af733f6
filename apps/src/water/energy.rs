//! The energy and momentum that the molecules conserve.

use dhole::Share;

use super::model::THERMAL;
use crate::vector::{Vector, dot, plus, times};

/// Sums over molecules at one time, in the model's units.
#[derive(Share, Clone, Copy, PartialEq, Default, Debug)]
pub struct Energy {
    /// Kinetic energy.
    pub kinetic: f64,
    /// Potential energy within molecules.
    pub within: f64,
    /// Potential energy between molecules.
    pub between: f64,
    /// Momentum.
    pub momentum: Vector,
}

impl Energy {
    /// Counts an atom of this mass and velocity.
    pub fn count(&mut self, mass: f64, velocity: Vector) {
        self.kinetic += 0.5 * mass * dot(velocity, velocity);
        self.momentum = plus(self.momentum, times(velocity, mass));
    }

    /// Counts what another sum counted.
    pub fn add(&mut self, other: &Energy) {
        self.kinetic += other.kinetic;
        self.within += other.within;
        self.between += other.between;
        self.momentum = plus(self.momentum, other.momentum);
    }

    /// The same motion, with the potential energy of `other`.
    pub fn with_potential(self, other: &Energy) -> Energy {
        Energy {
            within: other.within,
            between: other.between,
            ..self
        }
    }

    /// Potential energy.
    pub fn potential(&self) -> f64 {
        self.within + self.between
    }

    /// Kinetic and potential energy, which stays the same but for the errors of the method.
    pub fn total(&self) -> f64 {
        self.kinetic + self.potential()
    }
}

/// What makes of an energy of `molecules` molecules one for each atom in units of the thermal
/// energy kT at 298 K, in which SPLASH prints energies (`FPOT`, `FKIN`).
pub fn thermal_per_atom(molecules: usize) -> f64 {
    1.0 / (THERMAL * 3.0 * molecules as f64)
}
