//! The tasks of a run that survives the loss of nodes: which wait, which node has which, and the
//! results that count.
//!
//! One object, replicated on every node. A node takes tasks on *lease*. It runs them, and what they
//! make, and then ends the lease in one step: it hands in the tasks that are left of it, and its
//! result so far, into which it has combined those of all its leases. If it is lost before, its
//! tasks wait again as they were taken, and its result stays that of the leases before. So whatever
//! it did in between counts nowhere, and each task counts once.

use dhole_model::NodeId;
use serde::{Deserialize, Serialize};

use super::pile::Pile;
use crate::job_queue::ByValue;

/// What a node gets that has nothing to do.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) enum Leased<T> {
    /// Tasks, on lease.
    Tasks(Pile<T>),
    /// All tasks are done.
    Over,
}

/// The tasks of all nodes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(bound = "T: ByValue")]
pub(super) struct Ledger<T> {
    /// The tasks that no node has.
    waiting: Pile<T>,
    /// As many may wait, with those that wait for the end of a lease.
    most: u64,
    members: Vec<Member<T>>,
    /// How often all nodes have left.
    rounds: u64,
    /// The round that the results are of.
    results_of: u64,
}

/// What is known of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(bound = "T: ByValue")]
struct Member<T> {
    takes_part: TakesPart,
    /// Whether it ever joined.
    has_joined: bool,
    /// The tasks that it has, as it took them.
    lease: Option<Pile<T>>,
    /// Tasks that wait when its lease ends.
    handed_in: Pile<T>,
    /// Its result of all leases that have ended.
    result: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum TakesPart {
    NotYet,
    Joined,
    /// It has heard that all tasks are done.
    Left,
    Lost,
}

impl<T> Ledger<T> {
    pub fn new(nodes: usize, most: u64) -> Ledger<T> {
        let member = |_| Member {
            takes_part: TakesPart::NotYet,
            has_joined: false,
            lease: None,
            handed_in: Pile::default(),
            result: Vec::new(),
        };
        Ledger {
            waiting: Pile::default(),
            most,
            members: (0..nodes).map(member).collect(),
            rounds: 0,
            results_of: 0,
        }
    }
}

#[dhole_macros::object(crate = "dhole_node")]
impl<T: ByValue> Ledger<T> {
    /// Puts a task in that was made on the node. What the node makes while it has a lease waits for
    /// its end. If as many wait as may, it is not made: how many.
    pub fn push(&mut self, node: NodeId, priority: i64, task: T) -> Option<u64> {
        let handed_in = self.members.iter().map(|it| it.handed_in.len());
        if self.waiting.len() + handed_in.sum::<u64>() >= self.most {
            return Some(self.most);
        }
        match self.members.get_mut(node.index()) {
            Some(member) if member.lease.is_some() => member.handed_in.push(priority, task),
            _ => self.waiting.push(priority, task),
        }
        None
    }

    /// The node begins to take part. It hears how many tasks it may have.
    pub fn join(&mut self, node: NodeId) -> u64 {
        if self.results_of != self.rounds {
            self.results_of = self.rounds;
            self.members.iter_mut().for_each(|it| it.result.clear());
        }
        if let Some(member) = self.members.get_mut(node.index()) {
            (member.takes_part, member.has_joined) = (TakesPart::Joined, true);
        }
        self.most
    }

    /// Waits for tasks, or until all are done.
    #[when(self.can_lease())]
    pub fn lease(&mut self, node: NodeId) -> Leased<T> {
        match self.take(node) {
            Some(tasks) => Leased::Tasks(tasks),
            None => {
                self.leave(node);
                Leased::Over
            }
        }
    }

    /// Tasks that wait again once the node's lease ends. They do not all fit the message that ends
    /// it.
    pub fn hand_in(&mut self, node: NodeId, tasks: Pile<T>) {
        if let Some(member) = self.members.get_mut(node.index()) {
            member.handed_in.add(tasks);
        }
    }

    /// Ends the node's lease: the last tasks that are left of it, and the node's result so far. It
    /// gets the next tasks, if any wait.
    pub fn end_lease(&mut self, node: NodeId, tasks: Pile<T>, result: Vec<u8>) -> Option<Pile<T>> {
        let member = self.members.get_mut(node.index())?;
        member.lease = None;
        member.result = result;
        let handed_in = std::mem::take(&mut member.handed_in);
        self.waiting.add(handed_in);
        self.waiting.add(tasks);
        self.take(node)
    }

    /// Whether a node waits for tasks, and none are there.
    pub fn is_awaited(&self) -> bool {
        let mut members = self.members.iter();
        let waits = |it: &Member<T>| it.takes_part == TakesPart::Joined && it.lease.is_none();
        self.waiting.is_empty() && members.any(waits)
    }

    /// The results of the nodes, the lost ones too. A node without a lease has none.
    pub fn results(&self) -> Vec<Vec<u8>> {
        let results = self.members.iter().map(|it| it.result.clone());
        results.filter(|result| !result.is_empty()).collect()
    }

    /// A node that was lost before it ever joined.
    pub fn lost_early(&self) -> Option<NodeId> {
        let is_early = |it: &Member<T>| it.takes_part == TakesPart::Lost && !it.has_joined;
        self.members.iter().position(is_early).map(NodeId::at)
    }

    #[on_loss]
    fn lost(&mut self, node: NodeId) {
        let Some(member) = self.members.get_mut(node.index()) else {
            return;
        };
        member.takes_part = TakesPart::Lost;
        member.handed_in = Pile::default();
        if let Some(lease) = member.lease.take() {
            self.waiting.add(lease);
        }
        self.end_round();
    }

    /// Says what was never run.
    #[on_end]
    fn left(&self) -> Option<String> {
        super::state::never_run(self.waiting.len())
    }

    pub(super) fn can_lease(&self) -> bool {
        !self.waiting.is_empty() || self.is_over()
    }

    pub(super) fn is_over(&self) -> bool {
        let mut members = self.members.iter();
        let is_done = |it: &Member<T>| it.lease.is_none() && it.takes_part != TakesPart::NotYet;
        self.waiting.is_empty() && members.all(is_done)
    }

    /// Gives the node tasks, if any wait.
    fn take(&mut self, node: NodeId) -> Option<Pile<T>> {
        let member = self.members.get_mut(node.index())?;
        if self.waiting.is_empty() {
            return None;
        }
        let tasks = self.waiting.share();
        member.lease = Some(tasks.clone());
        Some(tasks)
    }

    /// The node has heard that all tasks are done.
    fn leave(&mut self, node: NodeId) {
        if let Some(member) = self.members.get_mut(node.index()) {
            member.takes_part = TakesPart::Left;
        }
        self.end_round();
    }

    /// When all nodes have left, they may join again.
    fn end_round(&mut self) {
        let is_done = |it: &Member<T>| matches!(it.takes_part, TakesPart::Left | TakesPart::Lost);
        if self.members.iter().all(is_done) {
            self.rounds += 1;
            let left = self.members.iter_mut();
            let left = left.filter(|it| it.takes_part == TakesPart::Left);
            left.for_each(|it| it.takes_part = TakesPart::NotYet);
        }
    }
}

#[cfg(test)]
mod tests;
