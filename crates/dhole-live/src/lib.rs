//! Live machines: what runs the nodes of a cluster in real time.
//!
//! | module | knows |
//! |---|---|
//! | `threads` | [`Threads`]: each node a thread of this process; who sends runs the receiver's handler |
//! | `processes` | [`Processes`]: this process has one node, and a port to the others |
//! | `crowd` | whether other threads want the cores of those that wait |
//! | `fibers` | threads for the processes that are started on a node during the run |
//! | `processor` | the processor's clock |
//! | `random` | a node's stream of random numbers |
//!
//! ```
//! use dhole_live::Threads;
//! use dhole_node::{Settings, run_on};
//!
//! let (machine, settings) = (Threads::new(2, 0), Settings::nodes(2));
//! let outcome = run_on(&machine, &settings, |w| {
//!     let node = w.node();
//!     let numbers = w.once(|w| Ok(w.alloc_range(2, |_| 0_u16)))?;
//!     *numbers.at(node.index()).get_mut(w) = node.0 + 1;
//!     w.barrier()?;
//!     Ok(numbers.iter().map(|n| n.read(w)).sum::<u16>())
//! })?;
//! assert_eq!(outcome.value, 3);
//! # Ok::<(), dhole_node::RunError>(())
//! ```
#![forbid(unsafe_code)]

mod crowd;
mod fibers;
mod processes;
mod processor;
mod random;
mod threads;

pub use processes::{ProcessLimits, Processes};
pub use threads::Threads;
