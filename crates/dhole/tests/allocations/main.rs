//! What is allocated, by an allocator that counts for each thread: so these tests have a program of
//! their own.

mod flat;
mod warm;
