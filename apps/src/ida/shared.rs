//! Iterative deepening on all nodes.

use dhole::{JobQueue, Object, Result, Worker, on};
use serde::{Deserialize, Serialize};

use super::search::{Job, Seen, UNITS};
use super::{Found, Position};
use crate::mistake::Mistake;
use crate::solve::Steps;

/// The jobs of one node, which others take from when they have none.
#[derive(Serialize, Deserialize, Default)]
struct OwnJobs {
    jobs: Vec<Job>,
}

#[dhole::object]
impl OwnJobs {
    pub fn fill(&mut self, jobs: Vec<Job>) {
        self.jobs = jobs;
    }

    pub fn pop(&mut self) -> Option<Job> {
        self.jobs.pop()
    }

    /// Gives half of the jobs away, the first ones.
    pub fn steal(&mut self) -> Vec<Job> {
        let half = self.jobs.len().div_ceil(2);
        self.jobs.drain(..half).collect()
    }

    /// Gives the jobs to a node that asks, and keeps them.
    pub fn copy(&self) -> Vec<Job> {
        self.jobs[..self.jobs.len().div_ceil(2)].to_vec()
    }

    pub fn put(&mut self, jobs: Vec<Job>) {
        self.jobs.extend(jobs);
    }
}

/// The fewest moves.
pub fn solve(w: &mut Worker<'_>, position: &Position, steps: &mut Steps) -> Result<Found> {
    if w.survives() {
        return solve_surviving(w, position, steps);
    }
    solve_with(w, position, steps, Mistake::Nothing)
}

/// Where nodes may be lost, with one queue of jobs in each round, which every node has: a queue of
/// one node's own would be lost with that node.
fn solve_surviving(w: &mut Worker<'_>, position: &Position, steps: &mut Steps) -> Result<Found> {
    steps.begin(w)?;
    let mut bound = position.distance();
    let mut nodes_expanded = 0;
    loop {
        let mut all = Seen::default();
        let jobs = all.jobs(*position, bound);
        w.work(all.expanded * UNITS);
        let queue = w.once(|w| Ok(JobQueue::<Job, Seen>::of(w, jobs)?))?;
        queue.work(w, |w, job| {
            let mut seen = Seen::default();
            seen.look(job, bound);
            w.work(seen.expanded * UNITS);
            Ok(seen)
        })?;
        queue.results(w)?.into_iter().for_each(|seen| all.add(seen));
        nodes_expanded += all.expanded;
        if all.solutions > 0 {
            steps.end(w)?;
            return Ok(Found {
                moves: bound,
                solutions: all.solutions,
                nodes_expanded,
            });
        }
        bound = all.next;
    }
}

/// As the program does, but for a mistake.
pub fn solve_with(
    w: &mut Worker<'_>,
    position: &Position,
    steps: &mut Steps,
    mistake: Mistake,
) -> Result<Found> {
    let (me, nodes) = (w.node(), w.nodes());
    // Each node keeps its own queue, and knows those of the others.
    let mine = w.new_object(on(me), OwnJobs::default())?;
    let queues: Vec<Object<OwnJobs>> = w.all_gather(mine)?;
    steps.begin(w)?;
    let mut bound = position.distance();
    let mut nodes_expanded = 0;
    loop {
        let mut seen = Seen::default();
        // All make the same jobs, and each keeps its own.
        let mut near = Seen::default();
        let jobs = near.jobs(*position, bound);
        w.work(near.expanded * UNITS);
        if me.index() == 0 {
            seen.add(near);
        }
        let own = jobs.into_iter().skip(me.index()).step_by(nodes);
        mine.fill(w, own.collect())?;
        w.barrier()?;
        while let Some(job) = next_job(w, &queues, mine, mistake)? {
            let before = seen.expanded;
            seen.look(job, bound);
            w.work((seen.expanded - before) * UNITS);
        }
        let all = w.all_reduce(seen, |mut all, seen| {
            all.add(seen);
            all
        })?;
        nodes_expanded += all.expanded;
        if all.solutions > 0 {
            steps.end(w)?;
            return Ok(Found {
                moves: bound,
                solutions: all.solutions,
                nodes_expanded,
            });
        }
        bound = all.next;
    }
}

/// A job of the own queue, or else of another's, beginning with the next node's.
fn next_job(
    w: &mut Worker<'_>,
    queues: &[Object<OwnJobs>],
    mine: Object<OwnJobs>,
    mistake: Mistake,
) -> Result<Option<Job>> {
    if let Some(job) = mine.pop(w)? {
        return Ok(Some(job));
    }
    let me = w.node().index();
    for other in (1..queues.len()).map(|step| (me + step) % queues.len()) {
        let mut stolen = match mistake {
            Mistake::StolenJobsStay => queues[other].copy(w)?,
            _ => queues[other].steal(w)?,
        };
        if let Some(job) = stolen.pop() {
            if !stolen.is_empty() {
                mine.put(w, stolen)?;
            }
            return Ok(Some(job));
        }
    }
    Ok(None)
}
