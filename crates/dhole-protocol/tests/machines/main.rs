//! The machines beside those of coherence: objects with operations, and raw memory.

mod combining;
mod domains;
mod memory;
mod objects;
mod threads;
