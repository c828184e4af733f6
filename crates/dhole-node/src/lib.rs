//! The engine.
#![forbid(unsafe_code)]

mod machine;

pub use machine::{Machine, Receivers, StartError, Woken};
