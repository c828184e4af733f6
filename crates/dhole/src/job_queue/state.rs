//! The state of a queue and its operations.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dhole_model::NodeId;
use serde::{Deserialize, Serialize};

use super::ByValue;

/// The jobs and the results, as one object.
#[derive(Serialize, Deserialize)]
#[serde(bound = "J: ByValue, R: ByValue")]
pub(super) struct JobQueue<J: ByValue, R: ByValue> {
    /// The jobs that wait, each with its number, in the order in which they go out.
    waiting: VecDeque<(u64, J)>,
    /// The jobs that were taken and have no result.
    leased: BTreeMap<u64, Leased<J>>,
    /// The result of each job by its number, once it is there.
    results: Vec<Option<R>>,
    /// The most jobs that may wait, if there is a limit.
    limit: Option<u64>,
    closed: bool,
    /// Whether the queue was stopped: it gives out no more jobs.
    stopped: bool,
    /// Whether nodes may be lost: then what a job pushes waits until the job is completed.
    survives: bool,
    /// How many nodes there are.
    nodes: u64,
    /// The nodes whose program has begun to work until the end, and runs nothing beside it.
    workers: BTreeSet<NodeId>,
}

/// A job that was taken.
#[derive(Serialize, Deserialize)]
#[serde(bound = "J: ByValue")]
struct Leased<J: ByValue> {
    taker: NodeId,
    /// It is kept, to give out again if the taker is lost.
    job: J,
    /// The jobs that it has pushed, if they wait for its completion: when the taker is lost they
    /// are dropped, for whoever takes the job next pushes them again.
    pushed: Vec<(u64, J)>,
}

/// Why a queue does not take a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Shut {
    Closed,
    Stopped,
}

impl<J: ByValue, R: ByValue> Default for JobQueue<J, R> {
    fn default() -> JobQueue<J, R> {
        JobQueue {
            waiting: VecDeque::new(),
            leased: BTreeMap::new(),
            results: Vec::new(),
            limit: None,
            closed: false,
            stopped: false,
            survives: false,
            nodes: u64::MAX,
            workers: BTreeSet::new(),
        }
    }
}

impl<J: ByValue, R: ByValue> JobQueue<J, R> {
    /// The same in a run of so many nodes, of which some may be lost.
    pub(super) fn on(self, nodes: usize, survives: bool) -> JobQueue<J, R> {
        JobQueue {
            nodes: nodes as u64,
            survives,
            ..self
        }
    }
}

#[dhole_macros::object(crate = "dhole_node")]
impl<J: ByValue, R: ByValue> JobQueue<J, R> {
    /// Appends a job; its number. Of a queue that is closed only a node that has a job does, for
    /// the queue cannot end before that. `of` is the job that it belongs to, if the node says so.
    #[when(self.has_room(*node))]
    pub fn push(&mut self, node: NodeId, of: Option<u64>, job: J) -> Result<u64, Shut> {
        if self.stopped {
            return Err(Shut::Stopped);
        }
        let (survives, closed) = (self.survives, self.closed);
        let id = self.results.len() as u64;
        match self.lease_of(node, of) {
            None if closed => return Err(Shut::Closed),
            Some(lease) if survives => lease.pushed.push((id, job)),
            _ => self.waiting.push_back((id, job)),
        }
        self.results.push(None);
        Ok(id)
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    pub fn stop(&mut self) {
        (self.closed, self.stopped) = (true, true);
        self.waiting.clear();
        self.leased.values_mut().for_each(|it| it.pushed.clear());
    }

    #[when(!self.waiting.is_empty() || self.has_ended())]
    pub fn take(&mut self, node: NodeId) -> Option<(u64, J)> {
        let (id, job) = self.waiting.pop_front()?;
        let leased = Leased {
            taker: node,
            job: job.clone(),
            pushed: Vec::new(),
        };
        self.leased.insert(id, leased);
        Some((id, job))
    }

    /// Keeps a result, and returns whether it counts: it does if this node has the lease.
    pub fn complete(&mut self, node: NodeId, id: u64, result: R) -> bool {
        let is_its = self.leased.get(&id).is_some_and(|it| it.taker == node);
        let place = self.results.get_mut(id as usize).filter(|_| is_its);
        let Some(place) = place else {
            return false;
        };
        *place = Some(result);
        let pushed = self.leased.remove(&id).map(|it| it.pushed);
        self.waiting.extend(pushed.into_iter().flatten());
        self.close_if_all_work();
        true
    }

    /// Keeps results and gives out more jobs: a `parts`th of those that wait, and at least one. The
    /// part is empty if no job waits, and `None` at the end. `alone` says whether the node's
    /// program does nothing else before the end, and nothing runs there beside it.
    pub fn complete_and_share(
        &mut self,
        node: NodeId,
        done: Vec<(u64, R)>,
        parts: u64,
        alone: bool,
    ) -> Option<Vec<(u64, J)>> {
        if alone {
            self.workers.insert(node);
        }
        for (id, result) in done {
            self.complete(node, id, result);
        }
        self.close_if_all_work();
        let waiting = self.waiting.len() as u64;
        let most = (waiting / parts.max(1)).max(1);
        let part: Vec<_> = (0..most).map_while(|_| self.take(node)).collect();
        (!part.is_empty() || !self.has_ended()).then_some(part)
    }

    pub fn results(&self) -> Vec<R> {
        self.results.iter().flatten().cloned().collect()
    }

    /// Puts the jobs that the lost node had taken back at the head of the queue.
    #[on_loss]
    fn take_back(&mut self, node: NodeId) {
        let (lost, kept) = std::mem::take(&mut self.leased)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(_, it)| it.taker == node);
        self.leased = kept;
        let again = lost.into_iter().rev().filter(|_| !self.stopped);
        for (id, it) in again {
            self.waiting.push_front((id, it.job));
        }
    }

    /// An empty queue of at most `limit` jobs.
    pub(super) fn bounded(limit: u64) -> JobQueue<J, R> {
        JobQueue {
            limit: Some(limit),
            ..JobQueue::default()
        }
    }

    /// A closed queue of these jobs.
    pub(super) fn of(jobs: impl IntoIterator<Item = J>) -> JobQueue<J, R> {
        let waiting: VecDeque<_> = (0..).zip(jobs).collect();
        JobQueue {
            results: waiting.iter().map(|_| None).collect(),
            waiting,
            closed: true,
            ..JobQueue::default()
        }
    }

    /// What a node has taken: this job, or the last one.
    fn lease_of(&mut self, node: NodeId, job: Option<u64>) -> Option<&mut Leased<J>> {
        let is_it = |id: &u64| job.is_none_or(|job| job == *id);
        let mut leases = self.leased.iter_mut().rev();
        let lease = leases.find(|(id, it)| it.taker == node && is_it(id));
        lease.map(|(_, it)| it)
    }

    /// Whether a node need not wait to push: there is room, or the queue takes no job of its.
    fn has_room(&self, node: NodeId) -> bool {
        let waiting = self.waiting.len() as u64;
        let is_taken = !self.closed || self.leased.values().any(|it| it.taker == node);
        self.stopped || !is_taken || self.limit.is_none_or(|limit| waiting < limit)
    }

    /// Closes the queue when nobody is left to push: every node works until the end, and none has a
    /// job.
    fn close_if_all_work(&mut self) {
        let all_work = self.workers.len() as u64 == self.nodes;
        self.closed |= all_work && self.waiting.is_empty() && self.leased.is_empty();
    }

    fn has_ended(&self) -> bool {
        self.closed && self.waiting.is_empty() && self.leased.is_empty()
    }
}

#[cfg(test)]
mod tests;
