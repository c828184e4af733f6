//! Barnes-Hut with the sharing of the papers' programs, that of the first SPLASH: the tree is one
//! array of cells that every step reuses, and the leaves are the bodies themselves.
//!
//! Table 6 of DOSA shows which program its authors took. Without write aggregation 582,533 objects
//! were written in 3 steps. That is 131,072 bodies and 63,106 cells in each step: 0.481 cells a
//! body. An octree whose leaves are single bodies has 1 / ln 8. Only 6,906 of the messages were no
//! requests and replies, too few for the locks under which the parallel versions insert bodies. So
//! one processor built the tree, as in Rice's own comparisons with message passing. A step:
//!
//! 1. [`grow`]: node 0 reads all bodies, in the order of their numbers, and writes the tree. All
//!    others wait.
//! 2. [`zone`], [`walk`]: each node finds its zone of equal cost in the tree, computes the forces
//!    on the bodies in it, and writes them there. Barrier.
//! 3. [`mod@run`]: it moves these bodies. Barrier.
//!
//! So a step writes a body twice, as SPLASH does, and as TreadMarks' messages in the paper show.
//! The barrier between is that of Rice's version for TreadMarks.
//!
//! The place of a cell follows from its number, and numbers are given in the order in which bodies
//! need cells. So a number stands for another place in space from step to step. Cells together on a
//! node's pages were together in some earlier step, and are read ahead all the same.

pub mod grow;
pub mod objects;
pub mod run;
pub mod walk;
pub mod zone;

pub use run::run;
