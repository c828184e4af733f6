//! Bodies, and the parameters of a run.

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
    /// The bodies are two models side by side, alike body for body, as in SPLASH-2.
    pub pair: bool,
    /// Node 0 asks where the bodies are in the end, after all that is measured.
    pub drawn: bool,
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
            pair: false,
            drawn: false,
        }
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
