//! SPLASH's record of a molecule (`mol_dummy`), which is shared as a whole.

use dhole::Share;

use super::intra;
use super::motion::{Atoms, Motion};
use super::problem::System;
use crate::vector::Vector;

/// A molecule: 672 bytes, so that a page holds six.
#[derive(Share, Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct Molecule {
    /// The point M, from which the oxygen atom's charge acts (`VM`).
    pub centre: Vector,
    /// How it moves (the first seven of the nine arrays of `F`).
    pub motion: Motion,
    /// The forces on its atoms (the eighth).
    pub forces: Atoms,
    /// Its number, in what SPLASH reserves and does not use (the ninth).
    pub number: u64,
    /// The rest of that.
    pub unused: [f64; 8],
}

const _: () = assert!(size_of::<Molecule>() == 672);

impl Molecule {
    /// The molecule of this number that moves like this.
    pub fn new(number: usize, motion: Motion) -> Molecule {
        Molecule {
            motion,
            number: number as u64,
            ..Molecule::default()
        }
    }

    /// Where its atoms are.
    pub fn atoms(&self) -> &Atoms {
        &self.motion.terms[0]
    }

    /// Begins with the forces anew: with those within it (`intraf`).
    pub fn act_within(&mut self) {
        (self.forces, _) = intra::act(self.atoms());
        self.centre = intra::centre(self.atoms());
    }

    /// Corrects how it moves by the forces on it (`correc`, `bndry`).
    pub fn correct(&mut self, system: &System) {
        self.motion.correct(&self.forces, system);
        self.motion.wrap(system);
    }
}
