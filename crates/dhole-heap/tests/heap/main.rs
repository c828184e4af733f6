//! The heap without an engine: who may touch which bytes, and what it costs.

mod access;
mod arrays;
mod borrow;
mod diff;
mod free;
mod layout;
mod presence;
mod space;
mod threads;
