//! Shared objects with operations, through the public interface.

mod changes;
mod failing;
mod guards;
mod handover;
mod queue;
mod surviving;
