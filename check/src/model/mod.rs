//! The model: explores every run of a small program, and checks it.
//!
//! A [`Program`] gives each node a list of [`Op`]s. A [`Cluster`] runs it on the protocol machines
//! of live nodes, over a network that delivers messages in any order. Each machine has an abstract
//! heap, which carries out the protocol's commands as the engine does with the real heap. An
//! [`Action`] is a step that can come next. [`explore`] takes all actions from every state.
//!
//! Ghosts check the properties, and know nothing of the protocol: a vector clock for each node and
//! each write ([`History`]), the holder of each lock, the arrivals at each barrier, the true
//! wait-for graph. The first property that fails is a [`Fault`]. The exploration prints the path to
//! it.
//!
//! Objects with operations ([`Op::Call`]) use the state machines of live nodes too. Multicasts have
//! one order, which each node follows at its own pace.
//!
//! Four models stand by themselves: totally ordered groups ([`groups`]), raw memory ([`memory`]),
//! minipages that nodes write together ([`release`]), and threads that wait for each other
//! ([`threads`]).
//!
//! The checks must catch each [`Bug`](crate::Bug) that is planted in messages or commands. A
//! checker that finds nothing has to show that it would.

mod calls;
mod clerks;
mod cluster;
mod collecting;
pub(crate) mod elements;
mod explore;
mod family;
mod fault;
mod gates;
pub mod groups;
mod heap;
mod history;
pub mod memory;
mod minipages;
mod network;
mod node;
mod order;
mod pages;
mod program;
pub mod programs;
mod properties;
pub mod random;
mod regions;
pub mod release;
mod sealed;
mod sections;
mod seen;
mod seen_blocks;
pub mod threads;
mod waiting;
mod waits;
mod worker;
mod world;

pub use clerks::{ClerkProgram, Clerked, Does, Mistake};
pub use cluster::{Action, Cluster, State};
pub use explore::{Explored, explore, hunt};
pub use fault::{Fault, Sight};
pub use heap::{Heap, Presence};
pub use history::{Clock, History, WriteId};
pub use network::{Network, Parcel};
pub use node::{Node, Phase, Wait};
pub use order::explains;
pub use program::{MOST_NODES, Objects, Op, Part, Program, Writes};
pub use sealed::Sealed;
pub use sections::Section;
pub use world::{Finding, Found};
