//! Finding that every node waits and none can ever be woken.
//!
//! Whoever waits for a permit or on a condition can be woken by any node, so no cycle of the
//! wait-for graph shows that it never will be. But when all nodes wait and no message that could
//! end a wait is on its way, nothing will happen any more. A *quiescence probe* visits the nodes in
//! order and is dropped by one that computes. It adds up how many messages the nodes have sent and
//! received; a second round follows. Numbers that have not changed belong to one moment, between
//! the rounds, at which all waited; if as much was received as sent, nothing was in flight then
//! (Mattern's four counters).

use std::sync::Arc;

use dhole_model::{CallSite, NodeId, ObjectId};

use crate::sync::probes::SendProbes;
use crate::sync::quiescence_probe::{QuiescenceProbe, Round};
use crate::waiting::Waiter;

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

    /// The first node from this one on that is left.
    pub fn next_left(&self, from: usize) -> NodeId {
        let mut all = (from..).map(NodeId::at);
        let left = all.find(|node| !self.lost.contains(node));
        left.unwrap_or(NodeId::at(from))
    }
}

impl QuiescenceProbe {
    /// The first step of the first round: a probe that goes to the first node.
    pub fn begin(asker: NodeId) -> QuiescenceProbe {
        QuiescenceProbe {
            asker,
            round: Round::default(),
            first: None,
            made: Vec::new(),
        }
    }

    /// Before a node is visited in the second round: says where objects were made that nodes wait
    /// for, those of which `made` knows it.
    pub fn say_made(&mut self, made: impl Fn(ObjectId) -> Option<CallSite>) {
        let Some(first) = &self.first else {
            return;
        };
        for wait in first.waiters.iter().chain(&first.beside) {
            let object = wait.waiting_for.object();
            let known = object.and_then(|object| Some((object, made(object)?)));
            self.made.extend(known.filter(|it| !self.made.contains(it)));
        }
    }

    /// Visits a node, one of `nodes`, whose worker is in the wait `me`, and other processes in
    /// those that are `beside` it.
    pub(crate) fn visit(
        mut self,
        me: Waiter,
        beside: &[Waiter],
        traffic: &Traffic,
        nodes: usize,
        out: &mut impl SendProbes,
    ) {
        let mut waits = [me].into_iter().chain(beside.iter().copied());
        let asks = waits.any(|wait| wait.waiting_for.any_node_may_end_it());
        let asks_itself = asks && me.node < self.asker;
        let last = self.round.waiters.last();
        let expected = traffic.next_left(last.map_or(0, |last| last.node.index() + 1));
        if asks_itself || expected != me.node {
            return;
        }
        if self.round.waiters.is_empty() {
            self.round.without.clone_from(&traffic.lost);
        }
        if self.round.without != traffic.lost {
            return;
        }
        self.round.waiters.push(me);
        self.round.beside.extend(beside);
        self.round.sent = self.round.sent.wrapping_add(traffic.sent);
        self.round.received = self.round.received.wrapping_add(traffic.received);
        let to = traffic.next_left(me.node.index() + 1);
        if to.index() < nodes {
            out.quiescence_probe(to, self);
            return;
        }
        match &self.first {
            None => {
                let second = QuiescenceProbe {
                    asker: self.asker,
                    round: Round::default(),
                    first: Some(self.round),
                    made: Vec::new(),
                };
                out.quiescence_probe(traffic.next_left(0), second);
            }
            Some(first) if *first == self.round && first.sent == first.received => {
                tell(self.round, &self.made, out);
            }
            Some(_) => {}
        }
    }
}

/// Tells all that none of them will go on.
fn tell(round: Round, made: &[(ObjectId, CallSite)], out: &mut impl SendProbes) {
    let Round {
        waiters, beside, ..
    } = round;
    let in_words = |mut wait: Waiter| {
        for &(object, site) in made {
            wait.waiting_for = wait.waiting_for.made(object, site);
        }
        wait
    };
    let all = waiters.iter().copied().chain(beside);
    let cycle: Arc<[Waiter]> = all.map(in_words).collect();
    for waiter in &waiters {
        out.deadlock(waiter.node, Arc::clone(&cycle));
    }
}
