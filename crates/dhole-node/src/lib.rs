//! The engine: what joins a node's heap, its protocol and the messages between nodes.
//!
//! A [`Node`] is a heap and a protocol under one lock; a [`Worker`] is what a program on it holds.
//! [`run_on`] runs a program on a [`Machine`], of which the engine knows no more than that trait:
//! `dhole-live` runs nodes as threads of one process or as processes, `dhole-sim` simulates a
//! cluster.
//!
//! | module | event or command |
//! |---|---|
//! | `access` | a miss, a first write, an allocation |
//! | `in_place` | allocations of objects that are larger than a stack |
//! | `passes` | walks that fetch what many items miss in one round |
//! | `reachable` | prefetching what references lead to |
//! | `lock`, `sync_object`, `object_lock` | locks and conditions; read-write locks and semaphores; locks of objects |
//! | `section` | calling sections |
//! | `losses`, `membership` | nodes that are lost, and which are left |
//! | `sync` | the barrier, `once` |
//! | `collective` | values of all nodes, combined or shared along a tree |
//! | `spawn` | processes that are started on nodes during the run, which take turns |
//! | `names` | values that are bound to names |
//! | `measure` | which part of a program is measured |
//! | `worker` | calls of the worker, and its waits |
//! | `by_time` | waits that end only because a timer or a probe came |
//! | `node` | messages that come; carrying out commands |
//! | `parts`, `router` | the parts of a node beside the protocol, and which message goes to which |
//! | `freeing` | freeing objects |
//! | `gates` | exclusive objects that neighbours read |
//! | `faults` | accesses that ask or write first, for machines that charge them |
//! | `region_commands`, `object_commands`, `array_commands` | carrying out commands on objects and on elements of arrays |
//! | `protocol_choice` | which protocol keeps an object consistent |
//! | `race` | what a program is told of its races |
//! | `launch` | the beginning and the end of a run |
//! | `into_error` | what `?` turns into an error of a program |
#![forbid(unsafe_code)]

mod access;
mod aggregation;
mod along;
mod array;
mod array_commands;
mod array_phases;
mod blocks;
mod by_itself;
mod by_time;
mod collective;
mod collective_error;
mod collective_values;
mod combine;
mod count;
mod describe;
mod direct;
mod domain;
mod ended;
mod error;
mod failure;
mod part_waits;
mod parts;
mod router;

mod faults;
mod fingerprint;
mod freeing;
mod gates;
mod gathered;
mod graphs;
mod guards;
mod hints;
mod holding;
mod ids;
mod in_place;
mod install;
mod into_error;
mod last_call;
mod launch;
mod lock;
mod losses;
mod machine;
mod measure;
mod measured;
mod membership;
pub mod names;
mod node;
mod notice_check;
pub mod object;
mod object_commands;
mod object_error;
mod object_lock;
mod one_sided;
mod optimisations;
mod outcome;
mod paged;
mod passes;
mod payload_check;
mod phases;
mod process_error;
mod protocol_choice;
mod put;
mod race;
mod raw_memory;
mod reachable;
mod read_ahead;
mod rounds;
mod run_handshake;
mod section;
mod seen_blocks;
mod seen_elements;
mod set_by;
mod settings;
#[cfg(feature = "tracing")]
mod spans;
mod spawn;
mod step;
mod sync;
mod sync_error;
mod sync_object;
mod timeline;
mod units;
mod waits;
mod withdrawal;
mod within;
mod worker;
mod written_alone;

pub use access::Cursor;
pub use by_itself::ByItself;
pub use collective::MOST_COLLECTIVE_BYTES;
pub use collective_error::CollectiveError;
pub use count::MessageSizes;
pub use dhole_protocol::group::Ending;
pub use dhole_protocol::objects::chain::ChainLink;
pub use dhole_protocol::objects::{Refusal, Strategy};
pub use dhole_protocol::{
    AbortReason, BarrierId, CollectiveKind, CollectiveWait, ConditionId, Freed, LockId, Operation,
    ProtocolError, Races, RacingWrite, RwLockId, SemaphoreId, Started, SyncObject, Unbegun, Waiter,
    WaitingFor, Way,
};
pub use domain::{Domain, Domains};
pub use error::{AccessError, ConfigError, Error, MixedProtocols, ProtocolLacks, Result, RunError};
pub use failure::panic_words;
pub use holding::Holding;
pub use into_error::IntoError;
pub use launch::{Program, keep_values, run_nodes, run_on};
pub use lock::{Condvar, Held, Lock};
pub use machine::{
    Fiber, Judge, LostNode, Machine, Multiprocess, Receivers, StartError, Verdict, Woken,
};
pub use node::Node;
pub use object::InSection;
pub use object::section::{Section, SectionOp};
pub use object::{Clerk, Concurrency};
pub use object_lock::{Lockable, ObjectLock};
pub use optimisations::{Optimisations, WriteDetection};
pub use outcome::Outcome;
pub use parts::{
    NodeParts, PartsLink, PartsMaker, PartsOutbox, PartsPlace, PartsStep, PartsWait,
    PartsWaitError, PartsWaiter,
};
pub use passes::Pass;
pub use process_error::ProcessError;
pub use protocol_choice::Under;
pub use race::RaceReport;
pub use raw_memory::{
    MOST_MANAGERS, ManagerNodes, MemoryConsistency, MemoryLayout, MemoryManagers,
};
pub use set_by::{By, Said, SetBy};
pub use settings::{Settings, check_nodes};
pub use spawn::{Op, Spawned, Where, anywhere};
pub use sync_error::{OutOfMemory, RunEnded, SyncError};
pub use sync_object::{HeldExclusive, HeldShared, RwLock, Semaphore};
pub use worker::Worker;

/// A map whose order is the same on every node: for the state of shared objects.
pub type HashMap<K, V> = rustc_hash::FxHashMap<K, V>;

/// A set whose order is the same on every node: for the state of shared objects.
pub type HashSet<K> = rustc_hash::FxHashSet<K>;

/// What the code that `#[dhole::object]` writes refers to; no part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use dhole_heap::__private::*;
    pub use dhole_heap::{Share as DeriveShare, Tag};
    pub use dhole_model::NodeId;
    pub use dhole_protocol::objects::Bytes;

    pub use dhole_registry::Stateless;

    pub use crate::Strategy;
    pub use crate::Worker;
    pub use crate::error::Result as Ran;
    pub use crate::object::section::section_function;
    pub use crate::object::*;
    pub use crate::spawn::function;
}
