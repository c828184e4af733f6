//! The state of a queue and its operations.

use std::collections::{BTreeMap, VecDeque};

use dhole_model::NodeId;
use serde::{Deserialize, Serialize};

use super::ByValue;

/// The jobs and the results, as one object.
#[derive(Serialize, Deserialize)]
#[serde(bound = "J: ByValue, R: ByValue")]
pub(super) struct JobQueue<J: ByValue, R: ByValue> {
    /// The jobs that wait, in the order of their numbers.
    waiting: VecDeque<(u64, J)>,
    /// The jobs that were taken and have no result, each with its taker. The job is kept, to give
    /// out again if the taker is lost.
    leased: BTreeMap<u64, (NodeId, J)>,
    /// The result of each job by its number, once it is there.
    results: Vec<Option<R>>,
    /// The most jobs that may wait, if there is a limit.
    limit: Option<u64>,
    closed: bool,
    /// Whether the queue was stopped: it gives out no more jobs.
    stopped: bool,
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
        }
    }
}

#[dhole_macros::object(crate = "dhole_node")]
impl<J: ByValue, R: ByValue> JobQueue<J, R> {
    #[when(self.has_room())]
    pub fn push(&mut self, job: J) -> Option<u64> {
        (!self.closed).then(|| self.append(job))
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    pub fn stop(&mut self) {
        (self.closed, self.stopped) = (true, true);
        self.waiting.clear();
    }

    #[when(!self.waiting.is_empty() || self.has_ended())]
    pub fn take(&mut self, node: NodeId) -> Option<(u64, J)> {
        let (id, job) = self.waiting.pop_front()?;
        self.leased.insert(id, (node, job.clone()));
        Some((id, job))
    }

    /// Keeps a result, and returns whether it counts: it does if this node has the lease.
    pub fn complete(&mut self, node: NodeId, id: u64, result: R) -> bool {
        let is_its = matches!(self.leased.get(&id), Some((taker, _)) if *taker == node);
        let place = self.results.get_mut(id as usize).filter(|_| is_its);
        let Some(place) = place else {
            return false;
        };
        *place = Some(result);
        self.leased.remove(&id);
        true
    }

    /// Keeps results and gives out more jobs: a `parts`th of those that wait, and at least one. The
    /// part is empty if no job waits, and `None` at the end.
    pub fn complete_and_share(
        &mut self,
        node: NodeId,
        done: Vec<(u64, R)>,
        parts: u64,
    ) -> Option<Vec<(u64, J)>> {
        for (id, result) in done {
            self.complete(node, id, result);
        }
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
            .partition::<BTreeMap<_, _>, _>(|(_, (taker, _))| *taker == node);
        self.leased = kept;
        let again = lost.into_iter().rev().filter(|_| !self.stopped);
        for (id, (_, job)) in again {
            self.waiting.push_front((id, job));
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
        let mut queue = JobQueue::default();
        for job in jobs {
            queue.append(job);
        }
        queue.closed = true;
        queue
    }

    fn append(&mut self, job: J) -> u64 {
        let id = self.results.len() as u64;
        self.waiting.push_back((id, job));
        self.results.push(None);
        id
    }

    fn has_room(&self) -> bool {
        let waiting = self.waiting.len() as u64;
        self.closed || self.limit.is_none_or(|limit| waiting < limit)
    }

    fn has_ended(&self) -> bool {
        self.closed && self.waiting.is_empty() && self.leased.is_empty()
    }
}

#[cfg(test)]
mod tests;
