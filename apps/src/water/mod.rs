//! Water: molecular dynamics of liquid water (SPLASH's Water, which SPLASH-2 calls Water-nsquared,
//! and SPLASH-2's Water-spatial; DOSA, section 7).
//!
//! The physics is SPLASH's: molecules of three atoms, held together by a polynomial ([`intra`]),
//! that act on each other by charges and exponentials up to a cut-off radius ([`inter`]), in a box
//! that repeats itself; Gear's predictor-corrector method of order 6 ([`motion`]); a lattice as the
//! initial state ([`lattice`]); one force computation for each step and one before the first. The
//! two programs differ in how they find the pairs of molecules that act on each other.
//!
//! Where they differ from SPLASH: potential energies are added up while forces are computed, whose
//! roots and exponentials they share, and so are those of the predicted positions; SPLASH computes
//! them by a second walk over all pairs, and so do these where they share SPLASH's whole record of
//! a [`Molecule`]. Velocities are drawn from a seeded
//! generator, not read from a file. The virial is left out.

pub mod energy;
pub mod inter;
pub mod intra;
pub mod lattice;
pub mod model;
pub mod molecule;
pub mod motion;
pub mod nsquared;
pub mod options;
pub mod outcome;
pub mod problem;
pub mod solve;
pub mod spatial;

pub use energy::Energy;
pub use molecule::Molecule;
pub use motion::{Atoms, Motion};
pub use outcome::{Alone, Outcome};
pub use problem::{Pairs, Problem, Record, System};
