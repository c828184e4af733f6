//! One object space for a pack of machines.
//!
//! A program written over dhole's shared objects runs unchanged on threads and in a simulated
//! cluster. [`run`] starts it once on every node and lends each a [`Worker`], the token that
//! references need: `r.get(w)` borrows it, `r.get_mut(w)` borrows it mutably, and whatever
//! synchronises takes it mutably. So the borrow checker proves that no reference outlives the
//! interval in which what it shows is consistent.
//!
//! ```
//! use dhole::{Config, Lock};
//!
//! let run = Config::nodes(4).run(|w| {
//!     let sum = w.once(|w| Ok(w.alloc(0_u64)))?; // node 0 allocates, all get the reference
//!     let lock = Lock::numbered(1);
//!     for _ in 0..10 {
//!         lock.with(w, |w| {
//!             *sum.get_mut(w) += 1;
//!             Ok(())
//!         })?;
//!     }
//!     w.barrier()?; // what was written before is visible after
//!     Ok(sum.read(w))
//! })?;
//! assert_eq!(run.value, 40);
//! assert!(run.report.total().messages > 0);
//! # Ok::<(), dhole::RunError>(())
//! ```
//!
//! Between two synchronisations nothing that another node does becomes visible (lazy release
//! consistency: DOSA, section 2.2). A reference held across one does not compile:
//!
//! ```compile_fail,E0502
//! # dhole::Config::nodes(2).run(|w| {
//! let number = w.once(|w| Ok(w.alloc(1_u64)))?;
//! let seen = number.get(w);
//! w.barrier()?; // error[E0502]: cannot borrow `*w` as mutable
//! Ok(*seen)
//! # }).unwrap();
//! ```
#![forbid(unsafe_code)]

mod config;
pub mod net;
mod process;
mod report;

pub use config::{Config, run};
pub use dhole_heap::{
    Absent, AllocError, Array, Array2, ArrayError, ArrayRange, BindError, Borrow, BorrowError,
    Foreign, Link, Names, NotRows, OutOfBounds, Own, Read, Readers, Ref, Refs, Row, Rows, Scalar,
    Share, Write,
};
pub use dhole_macros::object;
pub use dhole_model::{
    CallSite, Coherence, Counters, Detector, KindCounters, MAX_NODES, MessageKind, NodeId,
    Placement, TypeCounters, UnknownCoherence, UnknownDetector,
};
pub use dhole_net::Waiting;
pub use dhole_node::object::{Object, ObjectError, ObjectType, Pending, on, replicated};
pub use dhole_node::{
    AccessError, Condvar, ConfigError, Cursor, Error, Held, HeldExclusive, HeldShared, Holding,
    Lock, LostNode, MixedProtocols, Op, Optimisations, OutOfMemory, ProcessError, RaceReport,
    Races, RacingWrite, Result, RunEnded, RunError, RwLock, Semaphore, Spawned, StartError,
    SyncError, Under, Where, Worker, WriteDetection,
};
pub use dhole_node::{Ending, HashMap, HashSet, ProtocolError, Refusal, Strategy, anywhere, op};
pub use process::{Process, process};
pub use report::{Report, Run, Simulated};

/// The guide's programs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide.md")]
mod guide {}

#[cfg(doctest)]
mod refused;

/// The page on objects.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/objects.md")]
mod objects {}

/// The simulated cluster and its settings.
pub mod sim {
    pub use dhole_sim::*;
}

/// What derives refer to; no part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use dhole_node::__private::*;
}
