//! Bodies, and the parameters of a run.

use clap::ValueEnum;
use dhole::Share;

use apps_common::vector::Vector;

/// A body: 64 bytes, a line of the cache. While forces are computed everybody reads the first
/// half; only its owner writes it.
#[derive(Share, Clone, Copy, PartialEq, Debug)]
#[repr(C)]
pub struct Body {
    /// Position, in units of length of the model.
    pub pos: Vector,
    /// Mass; the model's total is 1.
    pub mass: f64,
    /// Velocity, half a step ahead of the position once the first step was taken.
    pub vel: Vector,
    /// Interactions of the previous step, at least 1: what the body will presumably cost.
    pub cost: u64,
}

/// The parameters of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Problem {
    /// Bodies, at least 1.
    pub bodies: usize,
    /// Steps: each builds a tree, computes all forces and moves all bodies once.
    pub steps: usize,
    /// Chooses the initial state.
    pub seed: u64,
    /// Opening angle: a cell of side `l` at distance `d` counts as one mass where `l <= theta * d`.
    pub theta: f64,
    /// Softening length: distances are taken as `sqrt(d^2 + softening^2)`.
    pub softening: f64,
    /// Time from one step to the next, in the model's units.
    pub time_step: f64,
    /// The most bodies in a leaf of the tree, at most [`LEAF_BODIES`].
    pub leaf_bodies: usize,
    /// Steps before the measured ones, because the first steps fetch all bodies.
    pub untimed: usize,
    /// How the bodies are laid out at time 0.
    pub galaxy: Galaxy,
    /// Pictures: after how many of the measured steps, evenly spread, node 0 asks where the bodies
    /// are. The last of them is after all that is measured.
    pub frames: usize,
    /// Whether the walks fetch in passes what many bodies miss.
    pub passes: bool,
}

/// How the bodies are laid out at time 0.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Galaxy {
    /// One sphere, Plummer's model.
    #[default]
    Plummer,
    /// Two of them side by side, alike body for body, as in SPLASH-2.
    Pair,
    /// Two disks that have just passed each other.
    Collision,
}

impl Problem {
    /// SPLASH-2's parameters.
    pub const fn new(bodies: usize, steps: usize, seed: u64) -> Problem {
        Problem {
            bodies,
            steps,
            seed,
            theta: 1.0,
            softening: 0.05,
            time_step: 0.025,
            leaf_bodies: LEAF_BODIES,
            untimed: 0,
            galaxy: Galaxy::Plummer,
            frames: 0,
            passes: false,
        }
    }

    /// Whether a picture is taken when so many of the measured steps are done.
    pub fn draws_after(&self, steps: usize) -> bool {
        let taken = |steps: usize| steps * self.frames / self.steps.max(1);
        steps > 0 && taken(steps) > taken(steps - 1)
    }

    /// All steps.
    pub const fn all_steps(&self) -> usize {
        self.untimed + self.steps
    }
}

/// The most bodies in a leaf, as in SPLASH-2.
pub const LEAF_BODIES: usize = 10;

/// The cost of one interaction in a simulation, in units of `Worker::work`. A unit stands for about
/// a nanosecond of a modern processor; the walk to the interaction is part of it.
pub const UNITS_PER_INTERACTION: u64 = 10;

/// The cost of building the tree for each body, in the same units.
pub const UNITS_PER_PLACED_BODY: u64 = 100;

/// The cost of moving a body, in the same units.
pub const UNITS_PER_MOVED_BODY: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_spread_over_the_steps_and_the_last_is_at_the_end() {
        let drawn = |frames| {
            let problem = Problem {
                frames,
                ..Problem::new(10, 6, 1)
            };
            let steps = 0..=problem.steps;
            steps
                .filter(|step| problem.draws_after(*step))
                .collect::<Vec<_>>()
        };
        assert!(drawn(0).is_empty());
        assert_eq!(drawn(1), [6]);
        assert_eq!(drawn(3), [2, 4, 6]);
        assert_eq!(drawn(4), [2, 3, 5, 6]);
        assert_eq!(drawn(6), [1, 2, 3, 4, 5, 6]);
    }
}
