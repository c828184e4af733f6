use std::time::Duration;

use dhole_model::{NodeId, Notify};
use thiserror::Error;

use crate::{Envelope, Outbox};

/// Whoever takes messages for one node.
pub trait Receiver<M>: Sync {
    /// Takes one message; what the node wants sent in answer goes to `out`. Does not block for
    /// longer than it takes to get the node's lock.
    fn deliver(&self, envelope: Envelope<M>, out: &mut Outbox<M>) -> Wake;

    /// Takes a message by its bytes and those of its payload, if the node can do that at once. What
    /// it says in turn goes to `out`, or to `at_once` where `out` is empty: two parts of a message,
    /// one behind the other, and its payload. `at_once` says whether it was sent. `None` where the
    /// node cannot take the message so: then nothing has happened, and it is to be
    /// [delivered](Receiver::deliver), if it is a message at all. `at_once` may wait for no lock of
    /// a node, nor for a thread that has one.
    #[expect(
        clippy::type_complexity,
        reason = "who, what and how, in the order of a send"
    )]
    fn deliver_bytes(
        &self,
        _from: NodeId,
        _message: &[u8],
        _payload: &[u8],
        _out: &mut Outbox<M>,
        _at_once: &mut dyn FnMut(NodeId, [&[u8]; 3], Notify) -> bool,
    ) -> Option<Wake> {
        None
    }

    /// What the node does, holds and waits for, for somebody who wonders why nothing happens, when
    /// its worker has begun no call for so long. `None` while its lock is taken: this does not wait
    /// for it.
    fn describe(&self, _quiet_for: Duration) -> Option<String> {
        None
    }

    /// How many calls of the runtime its worker has begun. `None` while its lock is taken.
    fn calls(&self) -> Option<u64> {
        None
    }
}

/// Whether a delivery let the node's waiting worker go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Wake {
    /// The worker's wait is over.
    Yes,
    /// It goes on computing, or waiting.
    No,
}

/// Why a message could not be posted.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PostError {
    /// The receiver is not in the cluster.
    #[error("posting a message from {from} to {to}: the cluster has only {nodes} nodes")]
    NoSuchNode {
        /// The sender.
        from: NodeId,
        /// The receiver that does not exist.
        to: NodeId,
        /// Nodes in the cluster.
        nodes: usize,
    },
}
