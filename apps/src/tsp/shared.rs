//! The search on all nodes.

use std::collections::VecDeque;

use dhole::{NodeId, Object, ObjectError, Result, Worker, on, replicated};
use serde::{Deserialize, Serialize};

use super::search::{Known, Search, Tour};
use super::{Found, Instance};
use crate::mistake::Mistake;
use crate::solve::Steps;

/// Jobs, which the master makes and everybody takes.
#[derive(Serialize, Deserialize, Default)]
struct JobQueue {
    jobs: VecDeque<Vec<u32>>,
    closed: bool,
}

#[dhole::object]
impl JobQueue {
    pub fn push(&mut self, job: Vec<u32>) {
        self.jobs.push_back(job);
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    #[when(!self.jobs.is_empty() || self.closed)]
    pub fn pop(&mut self) -> Option<Vec<u32>> {
        self.jobs.pop_front()
    }
}

/// The shortest tour so far.
#[derive(Serialize, Deserialize)]
struct Bound(Tour);

#[dhole::object]
impl Bound {
    pub fn length(&self) -> u64 {
        self.0.length
    }

    pub fn tour(&self) -> Tour {
        self.0.clone()
    }

    pub fn set(&mut self, tour: Tour) {
        self.0 = tour;
    }

    pub fn shorten(&mut self, tour: Tour) {
        if tour.length < self.0.length {
            self.0 = tour;
        }
    }
}

/// What all nodes did together.
#[derive(Serialize, Deserialize, Default)]
struct Sum(u64);

#[dhole::object]
impl Sum {
    pub fn add(&mut self, n: u64) {
        self.0 += n;
    }

    pub fn get(&self) -> u64 {
        self.0
    }
}

struct Shared<'a, 'id> {
    w: &'a mut Worker<'id>,
    bound: Object<Bound>,
    mistake: Mistake,
    /// The length of the shortest tour that was seen in this job, or of the first.
    seen: u64,
}

impl Known for Shared<'_, '_> {
    type Error = ObjectError;

    /// The shortest only ever gets shorter: what was none before is none now, whatever others have
    /// found meanwhile, and most beginnings are given up for that.
    fn is_shorter(&mut self, length: u64) -> Result<bool, ObjectError> {
        if length < self.seen && self.mistake != Mistake::BoundUnseen {
            self.seen = self.bound.length(self.w)?;
        }
        Ok(length < self.seen)
    }

    fn found(&mut self, tour: Tour) -> Result<(), ObjectError> {
        match self.mistake {
            Mistake::BoundUnseen if tour.length < self.seen => {
                self.seen = tour.length;
                self.bound.set(self.w, tour)
            }
            Mistake::BoundUnseen => Ok(()),
            _ => self.bound.shorten(self.w, tour),
        }
    }

    fn worked(&mut self, units: u64) {
        self.w.work(units);
    }
}

/// The shortest tour.
pub fn solve(w: &mut Worker<'_>, instance: &Instance, steps: &mut Steps) -> Result<Found> {
    solve_with(w, instance, steps, Mistake::Nothing)
}

/// As the program does, but for a mistake.
pub fn solve_with(
    w: &mut Worker<'_>,
    instance: &Instance,
    steps: &mut Steps,
    mistake: Mistake,
) -> Result<Found> {
    const MASTER: NodeId = NodeId(0);
    let mut search = Search::new(instance);
    let greedy = search.greedy();
    let seen = greedy.length;
    let (queue, bound, sum) = w.once(|w| {
        let queue = w.new_object(on(MASTER), JobQueue::default())?;
        let bound = w.new_object(replicated(), Bound(greedy))?;
        Ok((queue, bound, w.new_object(on(MASTER), Sum::default())?))
    })?;
    steps.begin(w)?;
    if w.node() == MASTER {
        for job in search.jobs() {
            queue.push(w, job)?;
        }
        queue.close(w)?;
    }
    while let Some(job) = queue.pop(w)? {
        let mut shared = Shared {
            w,
            bound,
            mistake,
            seen,
        };
        search.run(&job, &mut shared)?;
    }
    sum.add(w, search.expanded)?;
    steps.end(w)?;
    Ok(Found {
        tour: bound.tour(w)?,
        nodes_expanded: sum.get(w)?,
    })
}
