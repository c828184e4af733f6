//! Shared objects with operations, through the public interface.

mod queue;
