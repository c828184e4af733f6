//! Collecting interval records without a barrier, by gossip.
//!
//! Time is cut into *epochs*. In each epoch every node reports once what it has seen: its vector
//! time. Who has reported, and the minimum of what they reported, travel on messages that are
//! sent anyway; two such states merge by union and minimum, so it does not matter how often or in
//! which order they meet. When all have reported, the minimum is the new *floor*: every node has
//! seen the intervals below it, so nobody will ever have to be told of them. (TreadMarks collects
//! at barriers only; Keleher's thesis, section 4.6.)
//!
//! The floor is never above the time of any node: it is at most what the node reported, and a
//! node's time never goes back. So whoever is told what follows on an old time of its own, out of
//! a log that has been cut at the floor, lacks nothing when it applies it.

use std::sync::Arc;

use dhole_model::{NodeId, VectorTime};

use crate::node_set::NodeSet;
use dhole_wire::Wire;

/// What nodes tell each other of an epoch.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Wire)]
pub struct Gossip {
    /// Which epoch.
    pub epoch: u64,
    /// The nodes that have reported in it.
    pub reported: NodeSet,
    /// The minimum of the times that they reported; meaningless while there are none.
    pub minimum: VectorTime,
    /// What every node has seen, by the epochs before.
    pub floor: VectorTime,
}

impl Gossip {
    /// What makes no sense in a cluster of `nodes`.
    pub(crate) fn check(&self, nodes: usize) -> Result<(), &'static str> {
        if self.minimum.nodes() != nodes || self.floor.nodes() != nodes {
            return Err("a floor of a cluster of another size");
        }
        match self.reported.is_within(nodes) {
            true => Ok(()),
            false => Err("a report of a node that is not in the cluster"),
        }
    }
}

/// One node's part in the gossip.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Collector {
    me: NodeId,
    known: Gossip,
    /// How often `known` has changed, and how often it had when each node was told last.
    changes: u64,
    told: Vec<u64>,
}

impl Collector {
    pub fn new(me: NodeId, nodes: usize) -> Collector {
        let known = Gossip {
            epoch: 0,
            reported: NodeSet::default(),
            minimum: VectorTime::zero(nodes),
            floor: VectorTime::zero(nodes),
        };
        Collector {
            me,
            known,
            changes: 0,
            told: vec![0; nodes],
        }
    }

    /// What every node has seen.
    pub fn floor(&self) -> &VectorTime {
        &self.known.floor
    }

    /// This node has something to collect and has seen `time`.
    pub fn report(&mut self, time: &VectorTime) {
        if self.known.reported.contains(self.me) {
            return;
        }
        match self.known.reported.is_empty() {
            true => self.known.minimum = time.clone(),
            false => self.known.minimum.meet(time),
        }
        self.known.reported.insert(self.me);
        self.changes += 1;
        self.finish_if_all();
    }

    /// What to tell a node, if it has not been told.
    pub fn gossip_for(&mut self, to: NodeId) -> Option<Arc<Gossip>> {
        let told = &mut self.told[to.index()];
        if *told == self.changes {
            return None;
        }
        *told = self.changes;
        Some(Arc::new(self.known.clone()))
    }

    /// Whether another node's gossip can be true, given that this one has seen `time`.
    pub fn check(&self, gossip: &Gossip, time: &VectorTime) -> Result<(), &'static str> {
        if !time.covers(&gossip.floor) {
            return Err("a floor above what this node has seen");
        }
        let epoch = self.known.epoch;
        let reported = self.known.reported.contains(self.me);
        if gossip.epoch > epoch && !(reported && gossip.epoch - epoch == 1) {
            return Err("an epoch that ended without this node's report");
        }
        let reports = gossip.reported.contains(self.me);
        if reports && (gossip.epoch > epoch || gossip.epoch == epoch && !reported) {
            return Err("a report that this node has not made");
        }
        match reports && !time.covers(&gossip.minimum) {
            true => Err("a minimum above what this node has reported"),
            false => Ok(()),
        }
    }

    /// Takes another node's gossip, which was [checked](Collector::check), and reports `time`
    /// where that is called for.
    pub fn hear(&mut self, gossip: &Gossip, time: &VectorTime) {
        if gossip.epoch > self.known.epoch {
            self.known = gossip.clone();
            self.changes += 1;
        } else if gossip.epoch == self.known.epoch {
            self.merge(gossip);
        }
        self.known.floor.merge(&gossip.floor);
        if !self.known.reported.is_empty() {
            self.report(time);
        }
    }

    fn merge(&mut self, gossip: &Gossip) {
        if gossip.reported.is_empty() {
            return;
        }
        match self.known.reported.is_empty() {
            true => self.known.minimum = gossip.minimum.clone(),
            false => self.known.minimum.meet(&gossip.minimum),
        }
        if self.known.reported.unite(&gossip.reported) {
            self.changes += 1;
        }
        self.finish_if_all();
    }

    fn finish_if_all(&mut self) {
        if self.known.reported.len() < self.told.len() {
            return;
        }
        self.known.floor.merge(&self.known.minimum);
        self.known.epoch += 1;
        self.known.reported = NodeSet::default();
        self.changes += 1;
    }
}
