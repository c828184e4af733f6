//! The facade on threads and simulated, what the compiler says of programs, and the examples.

mod collections;
mod compiler;
mod examples;
mod objects;
mod space;
mod spawn;
