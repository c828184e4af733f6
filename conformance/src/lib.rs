//! The suites that every protocol, machine and port of dhole must pass.
//!
//! - [`model`] explores *every* run of small programs on two and three nodes: the very
//!   [`Protocol`](dhole_protocol::Protocol) machines that run live, over a network that delivers
//!   in any order, with workers that compute while messages come.
//!
//! - [`litmus`] runs the classic few-line programs over thousands of seeds in the simulator: what
//!   synchronisation forbids never happens, what release consistency allows without it does.
//! - [`oracle`] makes up programs free of races and compares what they compute with a plain
//!   sequential run.
//! - [`mod@suite`] is a list of checks for whatever nodes can run on.
//! - [`ports`] is a list of checks for whatever carries frames between processes.
//! - [`Bug`]s are planted, in the model and between live nodes ([`Tampered`]), and must be caught.
//!
//! Fast checks run with `cargo test -p conformance`. The large explorations and the long litmus
//! runs are ignored tests, each marked with its reason; docs/testing.md has their commands, some of
//! which need a process of their own. A seed that fails is printed;
//! `DHOLE_SEED=<seed> cargo test -p conformance <test>` runs that one alone.
#![forbid(unsafe_code)]

mod bug;
pub mod decoders;
pub mod litmus;
pub mod model;
pub mod objects;
pub mod oracle;
mod platform;
pub mod ports;
mod seeds;
pub mod suite;
pub mod survivors;

pub use bug::{Bug, Fate};
pub use platform::{
    Detected, Impatient, Meeting, OnThreads, OverPorts, OverTcp, Placed, Platform, Simulated,
    Tampered, Under, run,
};
pub use seeds::seeds;
