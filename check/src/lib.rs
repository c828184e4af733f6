//! Checks of coherence protocols, those that dhole brings and those of its users.
//!
//! A protocol of your own ([`dhole::protocol`]) is checked from `cargo test`, with this crate
//! among the dev-dependencies:
//!
//! ```
//! # fn checks<P: dhole::protocol::CoherenceProtocol>() {
//! // Every run of small programs on two nodes, in which messages arrive in any order.
//! dhole_check::explore::<P>(2).assert_sound();
//! // The classic litmus tests, in the simulator, once with each seed.
//! dhole_check::litmus::<P>(0..100);
//! # }
//! ```
//!
//! The exploration runs the protocol itself, over a model of the heap and of the network. It
//! stops at the first [`Fault`], and says which steps lead to it. It shows that a protocol is
//! right in these programs, on these numbers of nodes. [`hunt`] is for the tests of the tests: a
//! protocol with a mistake must show a fault.
//!
//! The parts can be used by themselves: [`model`] with programs of one's own, and
//! [`litmus`](mod@litmus) on other machines. dhole's own protocols are checked by the same ones.
#![forbid(unsafe_code)]

mod bug;
pub mod history;
pub mod litmus;
pub mod model;
pub mod objects;
mod platform;
mod protocol;

pub use bug::{Bug, Fate};
pub use model::Fault;
pub use platform::{Changed, OnThreads, Platform, Simulated, Under, run, run_processes};
pub use protocol::{Checked, explore, hunt, litmus};
