//! Iterative deepening on all nodes.

use dhole::tasks::Tasks;
use dhole::{JobQueue, Result, Worker};

use super::search::{Job, Seen, UNITS};
use super::{Found, Position};
use crate::mistake::Mistake;
use crate::solve::Steps;

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
    let tasks = w.once(|w| Ok(Tasks::<Job>::new(w)?))?;
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
        let own: Vec<Job> = own.collect();
        own.iter().try_for_each(|job| tasks.push(w, *job))?;
        tasks.join(w, |w, job, _| {
            let before = seen.expanded;
            seen.look(job, bound);
            if mistake == Mistake::StolenJobsStay && !own.contains(&job) {
                seen.look(job, bound); // as its first owner does too
            }
            w.work((seen.expanded - before) * UNITS);
            Ok(())
        })?;
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
