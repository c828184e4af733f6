//! Processes that workers start on nodes during a run (Orca, section 2.1).
//!
//! A node runs one of its processes at a time, the one that has the *turn*. It gives the turn away
//! where it waits for an operation, for the end of a process or, if it is the program, at a
//! barrier; and where it pauses. Whoever holds a lock keeps the turn, and so does whoever waits for
//! one: then it is certain who waits for whom.
//!
//! | module | what |
//! |---|---|
//! | `op` | functions that travel |
//! | `child` | starting a process, and waiting for its end |
//! | `children` | what a worker has started and not waited for |
//! | `process` | what a process runs |
//! | `body` | a process, from its beginning to its end |
//! | `scheduler` | whose turn it is on a node |
//! | `hand_over` | giving the turn away, and having it again |

mod body;
mod child;
mod children;
mod hand_over;
mod op;
mod process;
mod scheduler;

pub(crate) use body::run_processes;
pub(crate) use child::NO_PROCESSES;
pub use child::{Spawned, Where, anywhere};
pub(crate) use children::Children;
pub use op::{Op, function};
pub(crate) use process::Process;
pub(crate) use scheduler::Scheduler;
