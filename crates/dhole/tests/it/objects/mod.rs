//! Shared objects with operations, through the public interface.

mod batches;
mod borrowed;
mod changes;
mod constructors;
mod dual;
mod failing;
mod freeing;
mod guards;
mod handover;
mod jobs;
mod losses;
mod orders;
mod queue;
mod surviving;
mod tasks;
mod updates;
