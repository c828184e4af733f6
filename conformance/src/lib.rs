//! The suites that every protocol, machine and port of dhole must pass.
//!
//! - [`model`], of the crate `dhole-check`, explores *every* run of small programs on two and three
//!   nodes. It runs the [`Protocol`](dhole_protocol::Protocol) machines of live nodes, over a
//!   network that delivers in any order, with workers that compute while messages arrive.
//! - [`litmus`](mod@litmus), of the same crate, runs the classic programs of a few lines over
//!   thousands of seeds in the simulator. An outcome that synchronisation forbids never occurs,
//!   and one that release consistency allows without it does.
//! - [`oracle`] generates programs free of races, and compares their results with a plain
//!   sequential run.
//! - [`mod@suite`] is a list of checks for every machine.
//! - [`ports`] is a list of checks for every port.
//! - [`Bug`]s are planted in the model and between live nodes ([`Tampered`]). The checks must catch
//!   them.
//!
//! Fast checks run with `cargo test -p conformance`. The large explorations and the long litmus
//! runs are ignored tests, each marked with its reason. `docs/testing.md` has their commands; some
//! need a process of their own. A failing test prints its seed: `DHOLE_SEED=<seed> cargo test -p
//! conformance <test>` runs that one alone.
#![forbid(unsafe_code)]

pub mod decoders;
pub mod mail;
pub mod maps;
pub mod names;
pub mod oracle;
mod platform;
pub mod ports;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod raw_memory;
pub mod sections;
pub mod suite;
pub mod survivors;

pub use dhole_check::{
    Bug, Fate, OnThreads, Platform, Simulated, Under, litmus, model, objects, run, run_processes,
};
pub use dhole_testkit::seeds;
pub use platform::{
    ByMessage, Deaf, Detected, Impatient, Meeting, OverPorts, OverTcp, Placed, ReachingProcesses,
    Remote, SeeingProcesses, Tampered, Unwoken,
};
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
pub use raw_memory::InDomains;
