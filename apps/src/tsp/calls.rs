//! The search by message passing, as Jackal's paper does with RMI (section 7): nodes call a queue
//! at node 0, which passes beginnings of tours by value, with the length of the shortest tour.

use std::collections::VecDeque;

use dhole::{Error, NodeId, Object, Result, Worker, on};
use serde::{Deserialize, Serialize};

use super::search::{Known, Search, Tour};
use super::{Found, Instance, Problem};
use crate::solve::Steps;

#[derive(Serialize, Deserialize)]
struct Queue {
    jobs: VecDeque<Vec<u32>>,
    best: Tour,
    table: Vec<u32>,
}

#[dhole::object]
impl Queue {
    /// A job, and what a tour must be shorter than.
    pub fn take(&mut self) -> Option<(Vec<u32>, u64)> {
        let job = self.jobs.pop_front()?;
        Some((job, self.best.length))
    }

    /// Keeps the shorter of the tours, and tells its length.
    pub fn shorten(&mut self, tour: Tour) -> u64 {
        if tour.length < self.best.length {
            self.best = tour;
        }
        self.best.length
    }

    pub fn best(&self) -> Tour {
        self.best.clone()
    }

    pub fn table(&self) -> Vec<u32> {
        self.table.clone()
    }
}

struct Shared<'a, 'id> {
    w: &'a mut Worker<'id>,
    queue: Object<Queue>,
    seen: u64,
}

impl Known for Shared<'_, '_> {
    type Error = Error;

    fn shortest(&self) -> u64 {
        self.seen
    }

    fn is_shorter(&mut self, length: u64) -> Result<bool> {
        Ok(length < self.seen)
    }

    fn found(&mut self, tour: Tour) -> Result<()> {
        self.seen = self.queue.shorten(self.w, tour)?;
        Ok(())
    }

    fn worked(&mut self, units: u64) {
        self.w.work(units);
    }
}

/// The shortest tour.
///
/// # Errors
/// Those of the runtime.
pub fn solve(w: &mut Worker<'_>, problem: &Problem, steps: &mut Steps) -> Result<Found> {
    let queue = w.once(|w| {
        let search = Search::with_bound(&problem.instance, problem.bound);
        let queue = Queue {
            jobs: search.jobs().into(),
            best: problem.first_tour(&search),
            table: problem.instance.distances().to_vec(),
        };
        Ok(w.new_object(on(NodeId(0)), queue)?)
    })?;
    steps.begin(w)?;
    let table = queue.table(w)?;
    let instance = Instance::of(&problem.instance.name, problem.instance.cities(), table);
    let instance = instance.with_fixed(problem.instance.fixed().clone());
    let mut search = Search::with_bound(&instance, problem.bound);
    while let Some((job, seen)) = queue.take(w)? {
        let mut shared = Shared { w, queue, seen };
        search.run(&job, &mut shared)?;
    }
    steps.end(w)?;
    let expanded = w.all_reduce(search.expanded, |sum, more| sum + more)?;
    Ok(Found {
        tour: queue.best(w)?,
        nodes_expanded: expanded,
        stopped: false,
        raw: None,
    })
}
