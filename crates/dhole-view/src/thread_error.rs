//! Why threads of nodes cannot begin, wait or end.

use dhole_node::IntoError;
use dhole_protocol::memory::sync::ThreadRefusal;

use crate::context::MemoryWaitError;
use crate::shared::MemoryError;

/// Why threads of a node cannot begin, wait or end.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ThreadError {
    /// The run has no memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// It cannot be waited for: the run has ended, say.
    #[error("waiting in a thread of a node: {0}")]
    Wait(#[from] MemoryWaitError),
    /// The system gives no thread.
    #[error("beginning a thread of a node: {0}")]
    Refused(String),
    /// The thread does not get what it asks for.
    #[error(transparent)]
    Sync(#[from] ThreadRefusal),
    /// Dhole knows of no node to which the thread belongs.
    #[error("this thread is none that a node runs (dhole::memory::threads)")]
    NoNode,
    /// The program has said already what begins threads on this node.
    #[error("threads that are started on this node begin already")]
    Begins,
}

dhole_model::debug_in_words!(ThreadError);

impl ThreadError {
    /// Whether the run has failed, which no thread survives. Otherwise this call alone has.
    pub fn has_failed_run(&self) -> bool {
        matches!(self, ThreadError::Wait(cause) if cause.has_failed_run())
    }
}

impl IntoError for ThreadError {}
