//! The tasks of one node that others may take, and what says that all tasks are done.
//!
//! A node counts the tasks that it has *made* and those that it has *done*. It tells its deque both
//! before a task leaves the node, and before it waits. So of a task that was done somewhere it is
//! known that it was made.
//!
//! Whoever has nothing to do reports its counts to node 0. If all nodes have reported, and as many
//! tasks were done as made, it may be over: the counts are of different times. So the one whose
//! report it was asks all nodes a second time. If no more were made by then than were done before,
//! there was a moment at which all were done, and no task is left that could make others (Mattern,
//! "Algorithms for distributed termination detection", 1987: the four counters).

use dhole_model::NodeId;
use serde::{Deserialize, Serialize};

use super::pile::Pile;
use crate::job_queue::ByValue;

/// How many tasks a node has made and done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
pub(super) struct Counts {
    pub made: u64,
    pub done: u64,
}

/// What the worker gets from its own deque.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) enum Next<T> {
    /// Tasks.
    Tasks(Pile<T>),
    /// A process has made tasks here, and others have taken them: node 0 has to hear of it.
    Made,
    /// All tasks of all nodes are done.
    Over,
}

/// The tasks of one node that others may take.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(bound = "T: ByValue")]
pub(super) struct Deque<T> {
    shared: Pile<T>,
    /// The nodes that asked and got nothing. They get some when there are some.
    hungry: Vec<NodeId>,
    counts: Counts,
    is_over: bool,
    /// As many tasks may wait here.
    most: u64,
    /// On node 0: what each node has said last when it had nothing to do.
    idle: Vec<Option<Counts>>,
}

impl<T> Deque<T> {
    pub fn new(nodes: usize, most: u64) -> Deque<T> {
        Deque {
            shared: Pile::default(),
            hungry: Vec::new(),
            counts: Counts::default(),
            is_over: false,
            most,
            idle: vec![None; nodes],
        }
    }
}

/// What a run's report says of so many tasks that are left at its end.
pub(super) fn never_run(tasks: u64) -> Option<String> {
    let tasks = match tasks {
        0 => return None,
        1 => "1 task was".to_owned(),
        more => format!("{more} tasks were"),
    };
    Some(format!("{tasks} never run: every node calls `Tasks::join`"))
}

#[dhole_macros::object(crate = "dhole_node")]
impl<T: ByValue> Deque<T> {
    /// Puts a task in that was made here. If as many wait as may, it is not made: how many.
    pub fn push(&mut self, priority: i64, task: T) -> Option<u64> {
        if self.shared.len() >= self.most {
            return Some(self.most);
        }
        self.counts.made += 1;
        self.shared.push(priority, task);
        None
    }

    /// The worker begins to take part, after all have heard that it was over before. It hears how
    /// many tasks it may have.
    pub fn begin(&mut self) -> u64 {
        self.is_over = false;
        self.most
    }

    /// The worker tells what it has made and done since it told that last. It hears the highest
    /// priority of the tasks that others may take here, and which nodes have got none, so many of
    /// them at most. They are not named again.
    pub fn look(&mut self, untold: Counts, most: u64) -> (Option<i64>, Vec<NodeId>) {
        self.tell(untold);
        let named = self.hungry.len().min(most as usize);
        (self.shared.top(), self.hungry.drain(..named).collect())
    }

    /// Puts tasks in that are counted: the worker's own, or what another node gives.
    pub fn give(&mut self, tasks: Pile<T>) {
        self.shared.add(tasks);
    }

    /// Half of the tasks, for a node that has none. If there are none and it `hangs` on, it gets
    /// some when there are.
    pub fn steal(&mut self, thief: NodeId, hangs: bool) -> Pile<T> {
        let half = self.shared.gift();
        let is_known = self.hungry.contains(&thief) || thief.index() >= self.idle.len();
        if hangs && half.is_empty() && !is_known {
            self.hungry.push(thief);
        }
        half
    }

    /// Tasks for the worker, which tells what it has made and done.
    pub fn take(&mut self, untold: Counts) -> (Pile<T>, Counts) {
        self.tell(untold);
        (self.part(), self.counts)
    }

    /// The worker waits for tasks, or until it is over. It has told node 0 these counts.
    #[when(self.has_next(*told))]
    pub fn await_next(&mut self, told: Counts) -> Next<T> {
        match (self.shared.is_empty(), self.is_over) {
            (false, _) => Next::Tasks(self.part()),
            (true, true) => Next::Over,
            (true, false) => {
                debug_assert_ne!(self.counts, told);
                Next::Made
            }
        }
    }

    /// On node 0: a node has nothing to do. If it may be over it hears how many were done.
    pub fn report(&mut self, node: NodeId, counts: Counts) -> Option<u64> {
        *self.idle.get_mut(node.index())? = Some(counts);
        let all: Option<Vec<Counts>> = self.idle.iter().copied().collect();
        let sum = |of: fn(&Counts) -> u64| all.as_ref().map(|all| all.iter().map(of).sum::<u64>());
        let done = sum(|it| it.done);
        done.filter(|_| sum(|it| it.made) == done)
    }

    /// How many tasks the node has made, as far as any can have left it.
    pub fn made(&self) -> u64 {
        self.counts.made
    }

    /// It is over.
    pub fn end(&mut self) {
        self.is_over = true;
        self.hungry.clear();
        self.idle.fill(None);
    }

    /// Says what was never run.
    #[on_end]
    fn left(&self) -> Option<String> {
        never_run(self.shared.len())
    }

    pub(super) fn has_next(&self, told: Counts) -> bool {
        self.is_over || !self.shared.is_empty() || self.counts != told
    }

    /// What the own worker gets: the better half, or all where nobody else could take the rest.
    fn part(&mut self) -> Pile<T> {
        match self.idle.len() {
            1 => std::mem::take(&mut self.shared),
            _ => self.shared.better_half(),
        }
    }

    fn tell(&mut self, untold: Counts) {
        self.counts.made += untold.made;
        self.counts.done += untold.done;
    }
}

#[cfg(test)]
mod tests;
