//! The search on all nodes.

use dhole::{JobQueue, Object, ObjectError, Result, Worker, replicated};
use serde::{Deserialize, Serialize};

use super::search::{Known, Search, Tour};
use super::stop::Stop;
use super::{Found, Problem};
use crate::mistake::Mistake;
use crate::solve::{Steps, result_counts};

/// The shortest tour so far.
#[derive(Serialize, Deserialize)]
struct Bound {
    tour: Tour,
    /// Nobody is to look for a shorter one.
    stopped: bool,
}

#[dhole::object]
impl Bound {
    /// What a tour must be shorter than: none is, once all are to stop.
    pub fn length(&self) -> u64 {
        if self.stopped { 0 } else { self.tour.length }
    }

    pub fn best(&self) -> (Tour, bool) {
        (self.tour.clone(), self.stopped)
    }

    pub fn set(&mut self, tour: Tour) {
        self.tour = tour;
    }

    pub fn shorten(&mut self, tour: Tour) {
        if tour.length < self.tour.length {
            self.tour = tour;
        }
    }

    pub fn stop(&mut self) {
        self.stopped = true;
    }
}

struct Shared<'a, 'id> {
    w: &'a mut Worker<'id>,
    bound: Object<Bound>,
    queue: JobQueue<Vec<u32>, u64>,
    mistake: Mistake,
    /// The length of the shortest tour that was seen in this job, or of the first.
    seen: u64,
    stop: &'a mut Stop,
}

impl Known for Shared<'_, '_> {
    type Error = ObjectError;

    fn shortest(&self) -> u64 {
        self.seen
    }

    /// The shortest only ever gets shorter: what was none before is none now, whatever others have
    /// found meanwhile, and most beginnings are given up for that.
    fn is_shorter(&mut self, length: u64) -> Result<bool, ObjectError> {
        if self.seen > 0 && self.stop.is_due(|| self.w.now()) {
            self.seen = 0;
            self.bound.stop(self.w)?;
            self.queue.stop(self.w)?;
        }
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
pub fn solve(w: &mut Worker<'_>, problem: &Problem, steps: &mut Steps) -> Result<Found> {
    solve_with(w, problem, steps, Mistake::Nothing)
}

/// As the program does, but for a mistake.
pub fn solve_with(
    w: &mut Worker<'_>,
    problem: &Problem,
    steps: &mut Steps,
    mistake: Mistake,
) -> Result<Found> {
    let mut search = Search::with_bound(&problem.instance, problem.bound);
    let first = problem.first_tour(&search);
    let seen = first.length;
    let bound = Bound {
        tour: first,
        stopped: false,
    };
    let (queue, bound) = w.once(|w| {
        let queue = JobQueue::<Vec<u32>, u64>::of(w, search.jobs())?;
        Ok((queue, w.new_object(replicated(), bound)?))
    })?;
    steps.begin(w)?;
    let mut stop = Stop::after(problem.time_limit, w.now());
    queue.work(w, |w, job| {
        let before = search.expanded;
        let mut shared = Shared {
            w,
            bound,
            queue,
            mistake,
            seen,
            stop: &mut stop,
        };
        search.run(&job, &mut shared)?;
        Ok(search.expanded - before)
    })?;
    steps.end(w)?;
    let expanded = if result_counts(w) {
        queue.results(w)?
    } else {
        Vec::new()
    };
    let (tour, stopped) = bound.best(w)?;
    Ok(Found {
        tour,
        nodes_expanded: expanded.into_iter().sum(),
        stopped,
        raw: None,
    })
}
