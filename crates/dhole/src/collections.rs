//! Containers that all nodes share: a graph, a map, a set and a vector.
//!
//! They are made of arrays, objects with operations and collectives, and promise what those do. So
//! what they cost is said in messages at each call.

mod combine;
mod error;
mod exchange;
mod graph;
mod key;
mod map;
mod set;
mod vec;

pub use combine::Combine;
#[doc(hidden)]
pub use combine::combines;
pub use dhole_macros::DistHash;
pub use error::{GraphError, GraphFileError, MapError, VecError};
pub use graph::{DistGraph, FileWeight, GraphArc, GraphWeight, LocalGraph};
pub use key::DistHash;
pub use map::{DistMap, FrozenMap};
pub use set::DistSet;
pub use vec::DistVec;
