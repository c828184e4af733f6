//! Shared objects with operations, through the public interface.

mod failing;
mod handover;
mod queue;
