//! What a node knows of one object.

use std::collections::VecDeque;
use std::sync::Arc;

use dhole_model::{NodeId, ObjectCounters};

use super::call::{Call, CallId, Waiting};
use super::message::Ordered;

/// Where an object is, as far as a node knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// The node has a handle and has heard nothing yet: its creator knows.
    Unknown,
    /// The only copy is here.
    Here,
    /// The only copy is here, and has a monitor.
    Monitored,
    /// The only copy is on that node.
    At(NodeId),
    /// Every node has a replica.
    Replicated,
    /// The only copy is to be here, and is on its way.
    Coming,
    /// Every node is to have a replica: that node, which had the only copy, multicasts its state.
    Spreading(NodeId),
    /// The only copy was on that node, which is lost.
    Lost(NodeId),
}

/// Something that was ordered while an object's state was on its way.
#[derive(Clone, Debug)]
pub(super) enum Deferred {
    /// A multicast.
    Ordered(Arc<Ordered>),
    /// These nodes are lost.
    Gone(Vec<NodeId>),
    /// This call is withdrawn.
    Withdraw(CallId),
}

/// One object, as a node knows it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub place: Place,
    /// The ordered message since which it is there.
    pub since: u64,
    /// The node that is to send the only copy, while it is to come.
    pub comes_from: Option<NodeId>,
    /// Whether nobody had told where it was when it began to spread: then it is not known from
    /// where.
    pub guessed: bool,
    pub accesses: ObjectCounters,
    /// Calls whose guards were false, in the order of coming.
    pub blocked: VecDeque<Waiting>,
    /// Requests of other nodes that came before the copy.
    pub requests: Vec<Call>,
    /// Calls of this node's worker, until there is a place to make them.
    pub postponed: Vec<Call>,
    /// What was ordered while the object's state was on its way.
    pub deferred: VecDeque<(u64, Deferred)>,
    /// The last operations that were ordered, each with the digest of what it left behind.
    pub digests: VecDeque<(u64, u16, u64)>,
}

impl Entry {
    pub fn new(place: Place, since: u64) -> Entry {
        Entry {
            place,
            since,
            comes_from: None,
            guessed: false,
            accesses: ObjectCounters::default(),
            blocked: VecDeque::new(),
            requests: Vec::new(),
            postponed: Vec::new(),
            deferred: VecDeque::new(),
            digests: VecDeque::new(),
        }
    }

    pub fn unknown() -> Entry {
        Entry::new(Place::Unknown, 0)
    }

    /// How many calls wait that write, or that only read: of a replica the latter are the own
    /// worker's alone, and must not count in what all replicas decide alike.
    pub fn waiting(&self, writes: bool) -> usize {
        let alike = |waiting: &&Waiting| waiting.call.writes == writes;
        self.blocked.iter().filter(alike).count()
    }

    /// Whether the worker may execute an operation on the copy here without telling anyone.
    #[inline]
    pub fn is_local(&self, writes: bool) -> bool {
        match self.place {
            Place::Here => true,
            Place::Replicated => !writes,
            _ => false,
        }
    }
}
