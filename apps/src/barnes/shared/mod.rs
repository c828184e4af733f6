//! Barnes-Hut over shared bodies and cells.
//!
//! What lazy release consistency suits best is that each object is written by one node in an
//! interval and that nobody takes locks in the inner loops, so the tree is not built by inserting
//! bodies under locks, as SPLASH-2 does, but by space (Shan and Singh 1998, their SPACE). A step:
//!
//! 1. [`grow`]: each node builds the subtrees over the cubes that lie wholly in its part of space,
//!    and lists them. Barrier.
//! 2. [`crown`]: node 0 builds the few cells above them, and divides space anew by cost. Barrier.
//! 3. [`zone`], [`walk`]: each node finds its zone of equal cost in the tree, and computes the
//!    forces on the bodies in it. Barrier.
//! 4. [`mod@run`], [`exchange`]: it moves these bodies, and hands on those that are now in another
//!    node's part, under one lock for each such node. Barrier.
//!
//! A part of space is a range of keys, so a zone, which is a range of the tree's order, has
//! nearly the same bodies, and most bodies stay where they are for many steps. Cells are taken
//! from a pool of the node that writes them and are used again in the next step.

pub mod crown;
pub mod exchange;
pub mod grow;
pub mod objects;
pub mod parts;
pub mod run;
pub mod walk;
pub mod zone;

pub use run::{Outcome, run};
