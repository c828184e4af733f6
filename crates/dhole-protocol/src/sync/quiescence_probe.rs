//! The quiescence probe, which visits all nodes that wait, as a message carries it.

use dhole_model::{CallSite, NodeId, ObjectId};
use dhole_wire::Wire;

use crate::waiting::Waiter;

/// A quiescence probe.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct QuiescenceProbe {
    /// The node that has waited for long.
    pub asker: NodeId,
    /// This round, as far as it has come.
    pub round: Round,
    /// The first round, in the second.
    pub first: Option<Round>,
    /// Where objects were made for whose operations nodes wait, as far as the nodes that made them
    /// were visited in the second round.
    pub made: Vec<(ObjectId, CallSite)>,
}

/// What a round has found so far.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Wire)]
pub struct Round {
    /// The nodes visited, in order, each in a wait.
    pub waiters: Vec<Waiter>,
    /// The nodes that are lost: who knows of others has no part in it.
    pub without: Vec<NodeId>,
    /// Other processes of these nodes, each in a wait.
    pub beside: Vec<Waiter>,
    /// Messages that they sent.
    pub sent: u64,
    /// Messages that they received.
    pub received: u64,
}
