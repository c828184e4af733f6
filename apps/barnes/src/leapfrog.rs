//! Moves the bodies, and sums the energy and momentum that they conserve.

use dhole::Share;
use serde::Serialize;

use super::Body;
use apps_common::vector::{Vector, dot, plus, times};

/// Takes a body's velocity from half a step ago to half a step ahead, and returns what it is now.
/// In the first step the body's velocity is already that of now.
#[inline]
pub fn kick(body: &mut Body, acc: Vector, first: bool, time_step: f64) -> Vector {
    let half = times(acc, 0.5 * time_step);
    let now = if first {
        body.vel
    } else {
        plus(body.vel, half)
    };
    body.vel = plus(now, half);
    now
}

/// Moves a body for a whole step with the velocity of half a step ahead.
#[inline]
pub fn drift(body: &mut Body, time_step: f64) {
    body.pos = plus(body.pos, times(body.vel, time_step));
}

/// Sums over bodies at one time, in the model's units.
#[derive(Share, Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct Energy {
    /// Kinetic energy.
    pub kinetic: f64,
    /// Potential energy, negative.
    pub potential: f64,
    /// Momentum.
    pub momentum: Vector,
}

impl Energy {
    /// Counts a body of this mass, its velocity now, and its potential.
    #[inline]
    pub fn count(&mut self, mass: f64, vel: Vector, phi: f64) {
        self.kinetic += 0.5 * mass * dot(vel, vel);
        self.potential += 0.5 * mass * phi;
        self.momentum = plus(self.momentum, times(vel, mass));
    }

    /// Counts the bodies that another sum counted.
    pub fn add(&mut self, other: &Energy) {
        self.kinetic += other.kinetic;
        self.potential += other.potential;
        self.momentum = plus(self.momentum, other.momentum);
    }

    /// Kinetic and potential energy, which stays the same but for the errors of the method.
    pub fn total(&self) -> f64 {
        self.kinetic + self.potential
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circular_orbit_stays_circular() {
        // Around a unit mass at distance 1; period 2 pi.
        let (pos, vel) = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]);
        let mut body = Body {
            pos,
            mass: 1e-9,
            vel,
            cost: 1,
        };
        let step = 0.01;
        for n in 0..2000 {
            let distance = dot(body.pos, body.pos).sqrt();
            let acc = times(body.pos, -1.0 / distance.powi(3));
            let now = kick(&mut body, acc, n == 0, step);
            assert!((distance - 1.0).abs() < 1e-4, "at step {n}: {distance}");
            assert!((dot(now, now) - 1.0).abs() < 2e-4);
            drift(&mut body, step);
        }
    }
}
