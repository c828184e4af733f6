//! Coherence and synchronisation as pure state machines.
#![forbid(unsafe_code)]

mod message;

pub use message::{BarrierId, Interval, LockId, Message, News, Sent, Waiter, WaitingFor, Wanted};
