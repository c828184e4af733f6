//! Barnes-Hut: gravity among many bodies by a tree of cells (SPLASH-2's Barnes; DOSA, section 7).
//!
//! The algorithm is SPLASH-2's: a Plummer model as the initial state, an octree whose leaves hold
//! up to ten bodies, a cell far enough away taken as one mass at its centre (no quadrupole
//! moments, which SPLASH-2 leaves out too unless it is compiled with them), opening angle 1,
//! softening 0.05, leapfrog with steps of 0.025, and cost zones: every body is paid for with the
//! interactions of its previous step, and each processor takes an equal share of the tree.
//!
//! In two things it is stricter than SPLASH-2, so that every division of the work among nodes
//! gives the same bits. The tree is a function of the positions alone: the root is a cube around
//! the origin whose side is a power of two ([`place::Root`]), a cube is divided exactly where it
//! holds more bodies than a leaf may, and the bodies of a leaf are in the order of their places.
//! And masses are added in that order.
//!
//! Over shared objects there are two: [`shared`], as one would write it for them, and [`splash`],
//! as the papers' programs shared their bodies and cells.

pub mod body;
pub mod gravity;
pub mod leapfrog;
pub mod moment;
pub mod place;
pub mod plummer;
pub mod sequential;
pub mod shared;
pub mod splash;
pub mod tree;

pub use body::{Body, Problem};
