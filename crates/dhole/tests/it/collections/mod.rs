//! Containers beside those of the standard library.

mod graph;
mod map;
mod vec;
