//! Every run of a small program, checked.
//!
//! A [`Program`] gives each node a list of [`Op`]s. A [`Cluster`] runs it on real protocol
//! machines, each with an abstract heap that is driven by the protocol's commands just as the
//! engine drives the real one, over a network that delivers messages in any order. Everything
//! that can happen next is an [`Action`]; [`explore`] takes all of them from every state.
//!
//! What must hold is watched by ghosts that know nothing of the protocol: a vector clock for
//! each node and each write ([`History`]), the holder of each lock, the arrivals at each barrier,
//! the true wait-for graph. The first thing that goes wrong is a [`Fault`], the name of a
//! property; the path to it is printed.
//!
//! Objects with operations ([`Op::Call`]) are the machines that run, too; what is multicast has one
//! order, which each node follows at its own pace.
//!
//! Pages, under TreadMarks, have a model of their own: [`pages`]; so have totally ordered groups:
//! [`groups`].
//!
//! A [`Bug`](crate::Bug) planted in the messages or commands must be caught: a checker that finds
//! nothing has to show that it would.

mod calls;
mod cluster;
mod collecting;
pub(crate) mod elements;
mod explore;
mod family;
mod fault;
pub mod groups;
mod heap;
mod history;
mod in_place;
mod network;
mod node;
mod order;
pub mod pages;
mod program;
pub mod programs;
pub mod random;
mod sealed;
mod waiting;
mod waits;
mod worker;

pub use cluster::{Action, Cluster, State};
pub use explore::{Explored, explore, hunt};
pub use fault::{Fault, Sight};
pub use heap::{Heap, Presence};
pub use history::{Clock, History, WriteId};
pub use network::{Network, Parcel};
pub use node::{Node, Phase, Wait};
pub use program::{MOST_NODES, Objects, Op, Part, Program};
pub use sealed::Sealed;
