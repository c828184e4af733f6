//! Barnes-Hut: gravity among many bodies by a tree of cells (SPLASH-2's Barnes; DOSA, section 7).
//!
//! The algorithm is SPLASH-2's:
//!
//! - The initial state is a Plummer model; or two of them, or two disks that collide ([`Galaxy`]).
//! - Leaves of the octree hold up to ten bodies.
//! - A cell far enough away counts as one mass at its centre. There are no quadrupole moments,
//!   which SPLASH-2 leaves out too unless it is compiled with them.
//! - The opening angle is 1, the softening 0.05, and the leapfrog step 0.025.
//! - Cost zones divide the work: each body costs the interactions of its previous step, and each
//!   processor takes an equal share of the tree.
//!
//! It is stricter than SPLASH-2 in two things, so that every division of the work among nodes gives
//! the same bits. First, the tree depends on the positions alone: the root is a cube around the
//! origin whose side is a power of two ([`place::Root`]), a cube is divided exactly if it holds
//! more bodies than a leaf may, and the bodies of a leaf are in the order of their places. Second,
//! masses are added in that order.
//!
//! There are two versions over shared objects: [`shared`], written for them, and [`splash`], which
//! shares bodies and cells as the papers' programs did.

pub mod body;
pub mod encounter;
pub mod glow;
pub mod gravity;
pub mod initial;
pub mod leapfrog;
pub mod moment;
pub mod options;
pub mod picture;
pub mod place;
pub mod plummer;
pub mod sequential;
pub mod shared;
pub mod splash;
pub mod tree;

pub use body::{Body, Galaxy, Problem};
