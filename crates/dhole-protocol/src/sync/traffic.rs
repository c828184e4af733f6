//! How many messages that may end a wait a node has sent and received: by these the probe of the
//! wait-for graph knows whether one is under way (Mattern's four counters).

use dhole_model::NodeId;

/// How many messages that may end a wait this node has sent and received.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Traffic {
    sent: u64,
    received: u64,
    /// As much to each node and from it, where nodes may be lost: what a lost one has not received
    /// it never will.
    with: Vec<[u64; 2]>,
    /// The nodes that are lost, by number.
    lost: Vec<NodeId>,
}

impl Traffic {
    /// Counts for each node, from the beginning on.
    pub fn of_each(nodes: usize) -> Traffic {
        Traffic {
            with: vec![[0; 2]; nodes],
            ..Traffic::default()
        }
    }

    pub fn sent_to(&mut self, to: NodeId) {
        if self.counts(to, 0) {
            self.sent += 1;
        }
    }

    pub fn received_from(&mut self, from: NodeId) {
        if self.counts(from, 1) {
            self.received += 1;
        }
    }

    fn counts(&mut self, with: NodeId, which: usize) -> bool {
        if let Some(with) = self.with.get_mut(with.index()) {
            with[which] += 1;
        }
        !self.lost.contains(&with)
    }

    /// Nothing more goes to these nodes, or comes from them, nor has ever gone.
    pub fn lose(&mut self, nodes: &[NodeId]) {
        for node in nodes {
            if let (Some(with), false) = (self.with.get(node.index()), self.lost.contains(node)) {
                self.sent -= with[0];
                self.received -= with[1];
                self.lost.push(*node);
            }
        }
        self.lost.sort_unstable();
    }

    /// How many were sent, and received.
    pub fn totals(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    /// The nodes that are lost.
    pub fn lost(&self) -> &[NodeId] {
        &self.lost
    }

    /// The first node from this one on that is left.
    pub fn next_left(&self, from: usize) -> NodeId {
        let mut all = (from..).map(NodeId::at);
        let left = all.find(|node| !self.lost.contains(node));
        left.unwrap_or(NodeId::at(from))
    }
}
