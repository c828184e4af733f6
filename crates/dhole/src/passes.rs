//! Walks that fetch what many of their items miss in one round: [`Worker::in_passes`].
//!
//! [`Worker::in_passes`]: crate::Worker::in_passes

pub use dhole_node::Pass;
