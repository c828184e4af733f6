//! Barnes-Hut as the papers' programs shared it: the first SPLASH's, whose tree is one array of
//! cells that are used anew in each step, and whose leaves are the bodies themselves.
//!
//! Which program DOSA's authors took can be read out of their Table 6. Without write aggregation
//! 582,533 objects were written in 3 steps, which is 131,072 bodies and 63,106 cells in each: 0.481
//! cells to a body, and 1 / ln 8 is what an octree has whose leaves are single bodies. Only 6,906
//! of the messages were not requests and replies, too few for the locks under which the parallel
//! versions insert bodies: one processor built the tree, as Rice's own comparisons with message
//! passing had it. A step:
//!
//! 1. [`grow`]: node 0 reads all bodies, in the order of their numbers, and writes the tree. All
//!    others wait.
//! 2. [`zone`], [`walk`]: each node finds its zone of equal cost in the tree, computes the forces
//!    on the bodies in it, and writes them there. Barrier.
//! 3. [`mod@run`]: it moves these bodies. Barrier.
//!
//! So a body is written twice in a step, as SPLASH writes it, and as TreadMarks' messages in the
//! paper say; the barrier between is that of Rice's version for TreadMarks.
//!
//! A cell is where its number puts it, and numbers are given in the order in which bodies make
//! cells necessary. So from step to step another place in space has it: what lies together on a
//! node's pages was together once, and is read ahead all the same.

pub mod grow;
pub mod objects;
pub mod run;
pub mod walk;
pub mod zone;

pub use run::run;
