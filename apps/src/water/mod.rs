//! Water: molecular dynamics of liquid water (SPLASH's Water, which SPLASH-2 calls Water-nsquared,
//! and SPLASH-2's Water-spatial; DOSA, section 7).
//!
//! The physics is SPLASH's:
//!
//! - A polynomial holds the three atoms of a molecule together ([`intra`]).
//! - Molecules act on each other by charges and exponentials up to a cut-off radius ([`inter`]).
//! - The box repeats itself.
//! - Gear's predictor-corrector method of order 6 moves the molecules ([`motion`]).
//! - The initial state is a lattice ([`lattice`]).
//! - Forces are computed once in each step, and once before the first.
//!
//! The two programs differ in how they find the pairs of molecules that act on each other.
//!
//! They differ from SPLASH in this. They add up potential energies while they compute forces, which
//! need the same roots and exponentials. So these energies are those of the predicted positions.
//! SPLASH takes a second walk over all pairs for them. So do these programs if they share SPLASH's
//! whole record of a [`Molecule`]. Velocities come from a seeded generator, not from a file. The
//! virial is left out.

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
