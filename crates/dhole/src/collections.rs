//! Containers that all nodes share: a graph.
//!
//! They are made of arrays, objects with operations and collectives, and promise what those do. So
//! what they cost is said in messages at each call.

mod error;
mod exchange;
mod graph;

pub use error::{GraphError, GraphFileError};
pub use graph::{DistGraph, FileWeight, GraphArc, GraphWeight, LocalGraph};
