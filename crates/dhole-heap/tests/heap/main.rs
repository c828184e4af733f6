//! The heap without an engine: who may touch which bytes, and what it costs.

mod access;
mod around;
mod arrays;
mod beside;
mod borrow;
mod diff;
mod expected;
mod faults;
mod free;
mod layout;
mod nursery;
mod pages;
mod presence;
mod space;
mod threads;
mod vm;

/// A cluster whose accesses are checked.
fn cluster(nodes: usize) -> std::sync::Arc<dhole_heap::Cluster> {
    dhole_heap::Cluster::new(nodes).expect("room for the nodes")
}
