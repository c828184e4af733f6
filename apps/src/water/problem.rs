//! The parameters of a run, and the box that follows from them.

use super::model::{
    CUTOFF, DENSITY, LARGEST_CUTOFF, MASSES, MOLECULE_MASS, TIME_STEP, UNIT_MASS_G,
};
pub use crate::options::Record;
use crate::raw::{Cut, Reads};
use crate::share::Construct;
use crate::vector::Vector;

/// The parameters of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Problem {
    /// Molecules, at least 1.
    pub molecules: usize,
    /// Steps, of [`TIME_STEP`] each.
    pub steps: usize,
    /// Chooses the initial velocities.
    pub seed: u64,
    /// The cut-off radius that is asked for, in angstrom; at 0 the largest that there may be.
    pub cutoff: f64,
    /// Whether molecules are asked for all at once before they are read, and not one by one or, by
    /// read aggregation, page by page.
    pub prefetch: bool,
    /// What of a molecule is shared: where its atoms are, or all of it, as in SPLASH, which then
    /// does not add up the potential energy with the forces, but by a second walk over all pairs
    /// once the molecules have moved.
    pub record: Record,
    /// How records are cut into minipages of raw memory, if they lie there.
    pub cut: Option<Cut>,
    /// How records of other nodes are read there.
    pub reads: Reads,
    /// How the positions of molecules go from node to node.
    pub way: Way,
}

/// How the positions of molecules go from node to node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Way {
    /// As the program's own record says.
    #[default]
    Own,
    /// As objects at home at the molecules' nodes, with barriers of sections.
    Sections {
        /// Where they are allocated.
        construct: Construct,
        /// Whether a molecule has its vectors, and not references to them.
        inlined: bool,
    },
    /// By calls.
    Calls,
}

impl Problem {
    /// The problem with the cut-off radius of SPLASH-2's inputs.
    pub const fn new(molecules: usize, steps: usize, seed: u64) -> Problem {
        Problem {
            molecules,
            steps,
            seed,
            cutoff: CUTOFF,
            prefetch: true,
            record: Record::Split,
            cut: None,
            reads: Reads::Each,
            way: Way::Own,
        }
    }
}

/// The box, a cube that repeats itself in all directions, and what acts in it (`syscns`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct System {
    /// The side of the box, in angstrom.
    pub side: f64,
    /// The cut-off radius, in angstrom.
    pub cutoff: f64,
    /// For each atom of a molecule, what makes of a force the second term of its motion:
    /// half the squared time step over the mass.
    pub kick: [f64; 3],
}

impl System {
    /// The box that `problem`'s molecules fill at the density of water. The cut-off radius is at
    /// most half its side, so that an atom meets only the nearest of another's images.
    pub fn of(problem: &Problem) -> System {
        let volume = problem.molecules as f64 * MOLECULE_MASS * UNIT_MASS_G / DENSITY * 1e24;
        let side = volume.cbrt();
        let asked = match problem.cutoff {
            0.0 => LARGEST_CUTOFF,
            cutoff => cutoff,
        };
        System {
            side,
            cutoff: asked.min(0.5 * side),
            kick: MASSES.map(|mass| 0.5 * TIME_STEP * TIME_STEP / mass),
        }
    }

    /// What takes a difference of two coordinates to the nearest image.
    #[inline(always)]
    pub fn shift(&self, difference: f64) -> f64 {
        let half = 0.5 * self.side;
        let down = if difference > half { -self.side } else { 0.0 };
        if difference < -half { self.side } else { down }
    }

    /// The difference of two coordinates to the nearest image.
    #[inline(always)]
    pub fn nearest(&self, difference: f64) -> f64 {
        difference + self.shift(difference)
    }

    /// The largest coordinate, without its sign, of what lies between two points.
    pub fn distance(&self, a: Vector, b: Vector) -> f64 {
        let along = |axis: usize| self.nearest(a[axis] - b[axis]).abs();
        along(0).max(along(1)).max(along(2))
    }
}

/// The cost of a pair of molecules in a simulation, in units of `Worker::work`. A unit stands for
/// about a nanosecond of a modern processor.
pub const UNITS_PER_PAIR: u64 = 3;

/// The further cost if the molecules act on each other, in the same units.
pub const UNITS_PER_INTERACTION: u64 = 130;

/// The cost of everything else in a step for each molecule, in the same units.
pub const UNITS_PER_MOLECULE: u64 = 500;

/// How many pairs of molecules were looked at, and at how many they act on each other.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pairs {
    /// Pairs that were looked at.
    pub seen: u64,
    /// Pairs with sites that are not further from each other than the cut-off radius.
    pub near: u64,
}

impl Pairs {
    /// Counts what another sum counted.
    pub fn add(&mut self, other: Pairs) {
        self.seen += other.seen;
        self.near += other.near;
    }

    /// The cost of these pairs in units of `Worker::work`.
    pub fn units(&self) -> u64 {
        self.seen * UNITS_PER_PAIR + self.near * UNITS_PER_INTERACTION
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(molecules: usize, cutoff: f64) -> System {
        System::of(&Problem {
            cutoff,
            ..Problem::new(molecules, 1, 1)
        })
    }

    #[test]
    fn the_box_of_512_molecules_is_four_cutoffs_of_the_published_input_wide() {
        let system = system(512, CUTOFF);
        assert_eq!(system.cutoff, CUTOFF);
        assert!((system.side / CUTOFF - 4.0).abs() < 1e-5, "{}", system.side);
    }

    #[test]
    fn without_a_radius_it_is_half_the_box_or_11() {
        assert_eq!(system(64, 0.0).cutoff, 0.5 * system(64, 0.0).side);
        assert_eq!(system(512, 0.0).cutoff, 11.0);
        assert_eq!(system(8, CUTOFF).cutoff, 0.5 * system(8, 0.0).side);
    }

    #[test]
    fn the_nearest_image_is_at_most_half_a_box_away() {
        let system = system(64, 0.0);
        let side = system.side;
        assert!((system.nearest(0.75 * side) + 0.25 * side).abs() < 1e-12);
        assert!((system.nearest(-0.75 * side) - 0.25 * side).abs() < 1e-12);
        assert_eq!(system.nearest(0.4 * side), 0.4 * side);
    }
}
