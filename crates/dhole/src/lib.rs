//! One object space for a pack of machines.
//!
//! A program written over dhole's shared objects runs unchanged on threads, on processes of one or
//! several machines, and in a simulated cluster. [`run`] starts it once on every node and lends
//! each a [`Worker`], the token that references need: `r.get(w)` borrows the worker, `r.get_mut(w)`
//! borrows it mutably, and every call that synchronises takes it mutably.
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
//! # Where to find what
//!
//! | to | see |
//! |---|---|
//! | learn by programs | [`guide`], [`guide::objects`] for objects with operations, [`guide::mpi`] for users of MPI |
//! | start a run | [`Config`], [`run`]; the command `dhole` starts processes and simulations |
//! | allocate, synchronise, start processes | [`Worker`] |
//! | name shared data | [`Ref`], [`Refs`], [`Own`], [`Array`], [`Array2`], [`Rows`]; [`Share`] says which types |
//! | exclude and wait | [`Lock`], [`Condvar`], [`RwLock`], [`Semaphore`]; the lock of an object, [`Lockable`] |
//! | send messages between nodes that share objects | [`mailbox`] |
//! | run tasks that make tasks | [`tasks`] |
//! | find a value by a name | [`names`] |
//! | share a type by its operations | [`object`](macro@object), [`Object`], [`Client`], [`replicated`], [`on`] |
//! | read how a run went | [`Run`], [`Report`], [`Counters`] |
//! | handle a failure | [`RunError`], [`Error`], [`AccessError`], [`SyncError`], [`ObjectError`] |
//! | simulate | the module `sim` (feature `sim`) |
//! | share raw memory in units of any size | the module `memory` (Linux on x86-64) |
//! | send messages without shared objects | [`net`] |
//! | keep objects consistent by a protocol of your own | [`protocol`] |
//!
//! # Features
//!
//! | feature | what it brings |
//! |---|---|
//! | `processes` | nodes that are processes: shared memory, TCP, UDP, `dhole run` |
//! | `tls` | encryption between machines; implies `processes` |
//! | `sim` | the simulated cluster: the module `sim`, `Config::simulate`, `dhole sim` |
//! | `mpi` | nodes that `mpirun` starts; implies `processes`, needs an MPI library |
//!
//! All but `mpi` are on by default. Without any, nodes are threads of one process. A program that
//! is started with a feature it was built without ends with a [`MissingFeature`], which names the
//! feature.
//!
//! # Consistency
//!
//! Between two synchronisations a node sees no write of another node (lazy release consistency:
//! DOSA, section 2.2). A reference held across a synchronisation does not compile:
//!
//! ```compile_fail,E0502
//! # dhole::Config::nodes(2).run(|w| {
//! let number = w.once(|w| Ok(w.alloc(1_u64)))?;
//! let seen = number.get(w);
//! w.barrier()?; // error[E0502]: cannot borrow `*w` as mutable
//! Ok(*seen)
//! # }).unwrap();
//! ```
//!
//! Two nodes that write one object between two synchronisations race; [`Races`] says whether a run
//! ignores races, reports them, or ends. A reader that forgets to synchronise reads the old value,
//! without an error.
//!
//! # Errors
//!
//! Every wait ends. A deadlock, a panic, a lost process or a bad reference ends the run on all
//! nodes with a [`RunError`], which names objects, nodes and source lines. Its `Debug`, which is
//! what a `main` that returns it prints, says the same as its `Display`.
#![forbid(unsafe_code)]

mod advice;
pub mod collections;
mod config;
mod cost_report;
mod counters_table;
mod job_queue;
pub mod mailbox;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
pub mod memory;
pub mod names;
pub mod net;
pub mod passes;
mod process;
pub mod protocol;
mod report;
mod screen;
pub mod settings;
pub mod tasks;
mod timeline;
mod uses;
mod words;

pub use config::{Config, run};
pub use cost_report::Lines;
pub use counters_table::CountersTable;
pub use dhole_heap::{
    Absent, Access, AllocError, Array, Array2, ArrayError, ArrayRange, BadIndices, BindError, Bits,
    Borrow, BorrowError, Combinable, Combines, Foreign, Link, Names, NotRows, OutOfBounds, Own,
    PutError, Read, Readers, Ref, Refs, ReserveError, Row, Rows, Scalar, Share, Write,
};
pub use dhole_macros::object;
pub use dhole_model::{
    Barriers, CallSite, Coherence, Counters, Detector, KindCounters, LineCost, LineCosts,
    MAX_NODES, MessageKind, MissingFeature, NodeId, ObjectCounters, ObjectId, Oid, Phase,
    PhaseTimes, Placement, TypeCounters, Uneven, UnknownValue, WaitCause, WaitCost,
};
pub use dhole_net::Waiting;
pub use dhole_node::object::{
    Clerk, Client, ClientType, Concurrency, Object, ObjectError, ObjectType, Pending, on,
    replicated,
};
pub use dhole_node::{
    AccessError, CollectiveError, CollectiveKind, Condvar, ConfigError, Cursor, Domains, Error,
    Held, HeldExclusive, HeldShared, Holding, InSection, IntoError, Lock, Lockable, LostNode,
    MOST_COLLECTIVE_BYTES, MOST_MANAGERS, ManagerNodes, MemoryConsistency, MemoryLayout,
    MemoryManagers, MixedProtocols, ObjectLock, Op, Optimisations, OutOfMemory, ProcessError,
    ProtocolLacks, RaceReport, Races, RacingWrite, Result, RunEnded, RunError, RwLock, Section,
    SectionOp, Semaphore, Spawned, StartError, SyncError, Under, Waiter, Where, Worker,
    WriteDetection,
};
pub use dhole_node::{
    ChainLink, Ending, HashMap, HashSet, ProtocolError, Refusal, Strategy, anywhere, op, section,
};
pub use job_queue::{ByValue, JobQueue, JobQueueError, Lease};
pub use process::{Process, process};
pub use report::{Report, Run, Simulated};
pub use screen::Screen;
pub use settings::{Defaults, ReportForm, TraceFile};
pub use uses::Uses;

#[cfg(doctest)]
mod refused;

/// The README's programs.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

#[doc = include_str!("../docs/guide.md")]
pub mod guide {
    #[doc = include_str!("../docs/objects.md")]
    pub mod objects {}

    #[doc = include_str!("../docs/mpi.md")]
    pub mod mpi {}

    #[doc = include_str!("../docs/coming-from.md")]
    pub mod coming_from {}
}

/// The types that name objects, nodes and waits in errors, counters and reports.
pub mod ids {
    pub use dhole_heap::{ArrayMiss, ForeignKind, Miss, Presence};
    pub use dhole_model::{
        Elements, IntervalIndex, ObjectId, Oid, OidRange, PageId, VectorTime, Version,
    };
    pub use dhole_node::{
        AbortReason, BarrierId, ConditionId, Freed, LockId, Operation, RwLockId, SemaphoreId,
        Started, SyncObject, Unbegun, WaitingFor,
    };
}

/// The simulated cluster and its settings. Needs the feature `sim`.
#[cfg(feature = "sim")]
pub mod sim {
    pub use dhole_sim::{
        Computation, Crash, Description, ENVIRONMENT_VARIABLE, Medium, Network, NetworkError,
        NoCrash, Primitive, Published, Report, Settings, SettingsError, round_trip_ns,
    };
    // The machine itself, for measurements beside others; its methods are the engine's.
    #[doc(hidden)]
    pub use dhole_sim::Sim;
}

/// Items that the derives refer to; no part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use dhole_node::__private::*;
    pub use dhole_wire as wire;
}
