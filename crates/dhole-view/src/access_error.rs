//! Why an access to memory cannot be made.

use std::cell::RefCell;

use dhole_model::NodeId;
use dhole_node::IntoError;

use crate::context::MemoryWaitError;

/// An access to raw memory that cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "{} memory at {address:#x} on {node}: {cause}{}",
    doing(*.writes),
    known(.allocation)
)]
pub struct MemoryAccessError {
    /// The address, by the protocol's count of addresses: the view, and the offset within it. In a
    /// memory that is at the same addresses on all nodes it is that of the access.
    pub address: u64,
    /// Whether it was a write.
    pub writes: bool,
    /// The node that made the access.
    pub node: NodeId,
    /// Why.
    pub cause: MemoryAccessFailure,
    /// What is known of the allocation that is there, or was: the file and line that allocated it,
    /// how many minipages of how many bytes, and the node, file and line that freed it.
    pub allocation: Option<String>,
}

/// Why an access to raw memory cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MemoryAccessFailure {
    /// Nothing is allocated there, or it was freed.
    #[error("nothing is allocated there")]
    Gone,
    /// The place is in no view of the node.
    #[error("the address is in no view")]
    NoView,
    /// Faults are handled on the alternate stack of the thread, which is too small.
    #[error(
        "faults are handled on the alternate stack of the thread (sigaltstack), which has {bytes} \
         bytes and needs {needed}"
    )]
    SmallStack {
        /// Its bytes.
        bytes: usize,
        /// How many a handler needs.
        needed: usize,
    },
    /// It cannot be waited for: the run has ended because a node is lost, say.
    #[error(transparent)]
    Wait(#[from] MemoryWaitError),
}

impl IntoError for MemoryAccessError {}

fn doing(writes: bool) -> &'static str {
    match writes {
        true => "writing",
        false => "reading",
    }
}

pub(crate) fn known(allocation: &Option<String>) -> String {
    let words = allocation.as_ref().map(|words| format!("; {words}"));
    words.unwrap_or_default()
}

thread_local! {
    /// The error of the last access of this thread that failed and could say so.
    static LAST: RefCell<Option<MemoryAccessError>> = const { RefCell::new(None) };
}

/// Keeps an error for the thread whose access it is.
pub(crate) fn keep(error: MemoryAccessError) {
    LAST.set(Some(error));
}

/// The error of the access that this thread has just made.
pub(crate) fn take() -> MemoryAccessError {
    let last = LAST.take();
    last.expect("whoever lets an access fail keeps its error")
}
