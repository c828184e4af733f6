//! What keeps something consistent beside a node's objects, by messages of its own: raw memory. It
//! needs nothing of intervals, write notices and the token, and takes its messages without the
//! node lock.

use std::any::Any;
use std::fmt::Debug;
use std::io;

use dhole_model::{NodeId, Work};
use dhole_net::{Payload, PayloadPool};
use dhole_protocol::ProtocolError;
use dhole_protocol::memory::MemoryMessage;
use thiserror::Error;

/// One node's annex.
pub trait Annex: Any + Send + Sync {
    /// Takes a message. Whether a thread of the node that waits may go on.
    ///
    /// # Errors
    /// [`ProtocolError`], which ends the run on all nodes.
    fn deliver(
        &self,
        from: NodeId,
        message: MemoryMessage,
        payload: &[u8],
        out: &mut AnnexOutbox<'_>,
    ) -> Result<bool, ProtocolError>;

    /// Runs a body of the node on this thread. Until it is over the thread may wait by `link`.
    fn around(&self, link: &dyn AnnexLink, body: &mut dyn FnMut());

    /// What the node's threads wait for, for somebody who wonders why nothing happens.
    fn describe(&self) -> String;
}

/// Makes the annexes of a run. Its `Debug` must say all on which the nodes have to agree.
pub trait AnnexMaker: Debug + Send + Sync {
    /// The annex of node `node` of `nodes`, `here` of which are in this process.
    ///
    /// # Errors
    /// What the system refuses, in its own words.
    fn make(&self, node: NodeId, nodes: usize, here: usize) -> io::Result<Box<dyn Annex>>;
}

/// What an annex sends, and what happened, in one step.
pub struct AnnexOutbox<'a> {
    pool: &'a PayloadPool,
    pub(crate) messages: Vec<(NodeId, MemoryMessage, Payload)>,
    /// Accesses of the program that faulted to read.
    pub read_faults: u64,
    /// Accesses that faulted to write.
    pub write_faults: u64,
    /// What a simulation charges.
    pub work: Work,
}

impl<'a> AnnexOutbox<'a> {
    pub(crate) fn new(pool: &'a PayloadPool) -> AnnexOutbox<'a> {
        AnnexOutbox {
            pool,
            messages: Vec::new(),
            read_faults: 0,
            write_faults: 0,
            work: Work::default(),
        }
    }

    /// Whether the step sends nothing so far.
    pub fn is_silent(&self) -> bool {
        self.messages.is_empty()
    }

    /// Sends a message without bytes.
    pub fn send(&mut self, to: NodeId, message: MemoryMessage) {
        self.messages.push((to, message, Payload::NONE));
    }

    /// Sends a message with the bytes that `gather` appends.
    pub fn send_bytes(
        &mut self,
        to: NodeId,
        message: MemoryMessage,
        gather: impl FnOnce(&mut Vec<u8>),
    ) {
        let mut payload = self.pool.take();
        gather(payload.buffer());
        self.messages.push((to, message, payload));
    }
}

/// Whether a thread that waits may go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnnexStep {
    /// It may.
    Over,
    /// It waits for messages.
    Waits,
}

/// Why a thread cannot wait.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum AnnexWaitError {
    /// The run has ended early.
    #[error("the run has ended: {0}")]
    Ended(String),
    /// The node's worker is in a call.
    #[error(
        "it was made within a call of the runtime (an operation, an initialiser), where nothing \
         can be waited for: read it before the call"
    )]
    InCall,
}

/// How a thread of the program that computes sends messages of the annex, and waits.
pub trait AnnexLink: Sync {
    /// Takes a step, sends what it wants sent, and takes another one whenever messages may have
    /// come, until it is over. The thread is one that runs a body of the node, and computes.
    ///
    /// # Errors
    /// [`AnnexWaitError`]
    fn wait(
        &self,
        step: &mut dyn FnMut(&mut AnnexOutbox<'_>) -> AnnexStep,
    ) -> Result<(), AnnexWaitError>;
}
