//! Barnes-Hut over shared bodies and cells.
//!
//! Lazy release consistency works best if one node writes each object in an interval, and the inner
//! loops take no locks. So the tree is built by space (Shan and Singh 1998, their SPACE), and not
//! by inserting bodies under locks as in SPLASH-2. A step:
//!
//! 1. [`grow`]: each node builds the subtrees over the cubes that lie wholly in its part of space,
//!    and lists them. Barrier.
//! 2. [`crown`]: node 0 builds the few cells above them, and divides space anew by cost. Barrier.
//! 3. [`zone`], [`walk`]: each node finds its zone of equal cost in the tree, and computes the
//!    forces on the bodies in it. Barrier.
//! 4. [`mod@run`], [`exchange`]: it moves these bodies, and hands on those that are now in another
//!    node's part, under one lock for each such node. Barrier.
//!
//! A part of space is a range of keys, and a zone is a range of the tree's order. So the two have
//! nearly the same bodies, and most bodies stay in their part for many steps. Each node takes the
//! cells that it writes from a pool of its own, and reuses them in the next step.

pub mod crown;
pub mod exchange;
pub mod grow;
pub mod objects;
pub mod parts;
pub mod run;
pub mod walk;
pub mod zone;

pub use run::{Outcome, run};
