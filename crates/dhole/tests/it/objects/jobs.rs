//! Queues of jobs, on runs of which nodes crash at times that the seed chooses: every job has one
//! result in the end.

use std::collections::VecDeque;

use dhole::sim::{Crash, Settings};
use dhole::{
    Config, JobQueue, JobQueueError, MessageKind, NodeId, Object, Result, Run, RunError, Worker,
    op, replicated,
};
use serde::{Deserialize, Serialize};

const JOBS: u64 = 40;
const SEEDS: u64 = 80;

/// What a job comes to.
fn square(job: u64) -> u64 {
    job * job
}

/// The results when all jobs have one.
fn all() -> Vec<u64> {
    (0..JOBS).map(square).collect()
}

/// A cluster of three nodes of which one crashes while jobs are done.
fn crashing(seed: u64) -> Settings {
    let mut settings = Settings::fixed_cost(3);
    settings.seed = seed;
    settings.network.jitter = 1.0;
    settings.notice_ns = 20_000 << (seed % 4);
    settings.crashes = vec![Crash {
        node: NodeId((seed % 3) as u16),
        at_ns: 40_000 + seed * 11_700,
    }];
    settings
}

/// Does jobs on a cluster that survives a crash; the results, as the first node that is left has
/// them.
fn on_crash(
    seed: u64,
    program: impl Fn(&mut Worker<'_>) -> Result<Vec<u64>> + Sync,
) -> std::result::Result<Run<Vec<u64>>, RunError> {
    Config::nodes(1)
        .survive(true)
        .simulate(crashing(seed), program)
}

fn compute(w: &mut Worker<'_>, job: u64) -> u64 {
    w.work(10_000 + w.random() % 40_000);
    square(job)
}

#[test]
fn every_job_has_one_result_whichever_node_crashes_when() {
    let (mut lost, mut with_jobs) = (0, 0);
    for seed in 0..SEEDS {
        let run = on_crash(seed, |w| {
            let queue = w.once(|w| Ok(JobQueue::of(w, 0..JOBS)?))?;
            queue.work(w, |w, job| Ok(compute(w, job)))?;
            Ok(queue.results(w)?)
        });
        let run = run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(run.value, all(), "seed {seed}");
        lost += usize::from(!run.report.lost.is_empty());
        with_jobs += usize::from(run.report.lost.iter().any(|it| it.node != run.node()));
    }
    println!("{lost} runs lost a node, {with_jobs} another than the first left");
    assert!(
        lost > SEEDS as usize / 2,
        "only {lost} runs have lost a node"
    );
}

#[test]
fn jobs_that_are_taken_in_parts_have_one_result_each_too() {
    for seed in 0..SEEDS {
        let run = on_crash(seed, |w| {
            let queue = w.once(|w| Ok(JobQueue::of(w, 0..JOBS)?))?;
            queue.work_guided(w, |w, job| Ok(compute(w, job)))?;
            Ok(queue.results(w)?)
        });
        let run = run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(run.value, all(), "seed {seed}");
    }
}

#[test]
fn parts_of_what_waits_take_few_calls_and_the_last_jobs_go_one_by_one() {
    const MANY: u64 = 1000;
    let nodes = 4;
    let run = Config::nodes(nodes).simulate(Settings::fixed_cost(nodes), |w: &mut Worker<'_>| {
        let queue = w.once(|w| Ok(JobQueue::<u64, u64>::of(w, 0..MANY)?))?;
        let mut last = Vec::new();
        queue.work_guided(w, |w, job| {
            w.work(10_000);
            last.push(job);
            Ok(square(job))
        })?;
        // Each of the last ones went by itself, so no node has two in a row.
        let lasts = last.iter().filter(|job| **job >= MANY - 4).count();
        assert!(lasts <= 2, "{last:?}");
        Ok(queue.results(w)?)
    });
    let run = run.unwrap();
    assert_eq!(run.value, (0..MANY).map(square).collect::<Vec<_>>());
    // A part is an eighth of what is left: 8 ln(1000 / 8) of them, and 8 single ones.
    let calls = run.report.total().sent(MessageKind::OperationRequest);
    assert!((20..100).contains(&calls), "{calls} calls");
}

#[test]
fn a_job_that_is_taken_and_completed_by_hand_comes_back_too() {
    for seed in 0..SEEDS {
        let run = on_crash(seed, |w| {
            let queue = w.once(|w| Ok(JobQueue::<u64, u64>::of(w, 0..JOBS)?))?;
            // Two at a time, of which the second is done first.
            while let Some(first) = queue.take(w)? {
                let second = if first.id() % 3 == 0 && first.id() + 3 < JOBS {
                    queue.take(w)?
                } else {
                    None
                };
                for lease in second.into_iter().chain([first]) {
                    let result = compute(w, *lease.job());
                    lease.complete(w, result)?;
                }
            }
            Ok(queue.results(w)?)
        });
        let run = run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(run.value, all(), "seed {seed}");
    }
}

/// What is wrong with a queue on purpose.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
enum Planted {
    Nothing,
    /// What a lost node had taken is not given out again.
    LeaseKept,
    /// A job that is done comes back with what its taker had.
    DoneComesBack,
    /// Jobs of any node come back when one is lost, and both results are added.
    AddedTwice,
}

/// A queue with a mistake, whose results are added up job by job.
#[derive(Serialize, Deserialize)]
struct Wrong {
    planted: Planted,
    waiting: VecDeque<u64>,
    leased: Vec<(NodeId, u64)>,
    done: Vec<(NodeId, u64)>,
    results: Vec<u64>,
}

#[dhole::object]
impl Wrong {
    #[when(!self.waiting.is_empty() || self.leased.is_empty())]
    pub fn take(&mut self, node: NodeId) -> Option<u64> {
        let job = self.waiting.pop_front()?;
        self.leased.push((node, job));
        Some(job)
    }

    pub fn complete(&mut self, node: NodeId, job: u64, result: u64) {
        let leases = self.leased.len();
        self.leased.retain(|lease| *lease != (node, job));
        if self.leased.len() < leases || self.planted == Planted::AddedTwice {
            self.done.push((node, job));
            self.results[job as usize] += result;
        }
    }

    pub fn results(&self) -> Vec<u64> {
        self.results.clone()
    }

    #[on_loss]
    fn take_back(&mut self, node: NodeId) {
        let comes_back = |lease: &(NodeId, u64)| match self.planted {
            Planted::LeaseKept => false,
            Planted::AddedTwice => true,
            _ => lease.0 == node,
        };
        let (back, kept): (Vec<_>, Vec<_>) = self.leased.iter().copied().partition(comes_back);
        self.leased = kept;
        self.waiting.extend(back.into_iter().map(|(_, job)| job));
        if self.planted == Planted::DoneComesBack {
            let of_lost = self.done.iter().filter(|(taker, _)| *taker == node);
            self.waiting.extend(of_lost.map(|(_, job)| *job));
        }
    }
}

/// The first seed at which a queue with a mistake brings other results, or ends in an error.
fn noticed(planted: Planted) -> Option<u64> {
    (0..SEEDS).find(|seed| {
        let run = on_crash(*seed, |w| {
            let queue: Object<Wrong> = w.once(|w| {
                let wrong = Wrong {
                    planted,
                    waiting: (0..JOBS).collect(),
                    leased: Vec::new(),
                    done: Vec::new(),
                    results: vec![0; JOBS as usize],
                };
                Ok(w.new_object(replicated(), wrong)?)
            })?;
            let me = w.node();
            while let Some(job) = queue.take(w, me)? {
                let result = compute(w, job);
                queue.complete(w, me, job, result)?;
            }
            Ok(queue.results(w)?)
        });
        run.map_or(true, |run| run.value != all())
    })
}

#[test]
fn mistakes_of_a_queue_are_noticed() {
    assert_eq!(noticed(Planted::Nothing), None);
    for planted in [
        Planted::LeaseKept,
        Planted::DoneComesBack,
        Planted::AddedTwice,
    ] {
        let seed = noticed(planted);
        println!("{planted:?}: seed {seed:?}");
        assert!(seed.is_some(), "{planted:?}");
    }
}

#[test]
fn a_bounded_queue_makes_its_pushers_wait_and_ends_for_all_takers() {
    for nodes in [1, 4] {
        for simulated in [false, true] {
            let program = |w: &mut Worker<'_>| {
                let queue = w.once(|w| Ok(JobQueue::<u64, u64>::bounded(w, 3)?))?;
                let mut most = 0;
                if w.node() == NodeId(0) {
                    for job in 0..JOBS {
                        // On one node there is nobody else to make room.
                        if w.nodes() == 1 && job >= 3 {
                            let Some(lease) = queue.take(w)? else {
                                continue;
                            };
                            let result = square(*lease.job());
                            lease.complete(w, result)?;
                        }
                        most = most.max(queue.push(w, job)? + 1);
                    }
                    queue.close(w)?;
                    let shut = queue.push(w, JOBS);
                    assert!(
                        matches!(shut, Err(JobQueueError::Closed { .. })),
                        "{shut:?}"
                    );
                }
                queue.work(w, |w, job| Ok(compute(w, job)))?;
                assert!(queue.take(w)?.is_none(), "the end stays the end");
                Ok(queue.results(w)?)
            };
            let config = Config::nodes(nodes);
            let run = if simulated {
                config.simulate(Settings::fixed_cost(nodes), program)
            } else {
                config.run(program)
            };
            assert_eq!(run.unwrap().value, all(), "{nodes} nodes, {simulated}");
        }
    }
}

#[test]
fn a_job_costs_two_messages_and_no_multicast_where_no_node_may_be_lost() {
    let run = Config::nodes(2).simulate(Settings::fixed_cost(2), |w| {
        let queue = w.once(|w| Ok(JobQueue::of(w, 0..JOBS)?))?;
        w.begin_measuring()?;
        let mut own = 0;
        if w.node() == NodeId(1) {
            queue.work(w, |_, job| {
                own += 1;
                Ok(square(job))
            })?;
        }
        w.end_measuring()?;
        Ok(own)
    });
    let measured = run.unwrap().report.measured().unwrap();
    let requests = measured.sent(dhole::MessageKind::OperationRequest);
    assert_eq!((requests, measured.broadcasts), (JOBS + 1, 0));
}

#[test]
fn a_queue_that_is_never_closed_is_a_deadlock_that_names_it() {
    let run = Config::nodes(2).run(|w| {
        let queue = w.once(|w| Ok(JobQueue::<u64, u64>::new(w)?))?;
        Ok(queue.take(w)?.is_none())
    });
    let words = run.expect_err("nobody closes it").to_string();
    assert!(words.contains("JobQueue::take"), "{words}");
    assert!(words.contains("objects/jobs.rs"), "{words}");
    assert!(words.contains("`close`"), "{words}");
}

/// A tree of jobs: each but a leaf pushes two.
fn grow(w: &mut Worker<'_>, tree: JobQueue<u32, u64>, depth: u32) -> Result<u64> {
    w.work(10_000 + w.random() % 40_000);
    for _ in 0..2 * depth.min(1) {
        tree.push(w, depth - 1)?;
    }
    Ok(1)
}

#[test]
fn jobs_push_jobs_and_the_queue_ends_behind_them_closed_or_not() {
    let program = |w: &mut Worker<'_>| {
        let closed = w.once(|w| Ok(JobQueue::<u32, u64>::of(w, [5])?))?;
        closed.work(w, |w, depth| grow(w, closed, depth))?;
        let open = w.once(|w| {
            let open = JobQueue::<u32, u64>::new(w)?;
            open.push(w, 5)?;
            Ok(open)
        })?;
        open.work_guided(w, |w, depth| grow(w, open, depth))?;
        let shut = open.push(w, 1);
        assert!(
            matches!(shut, Err(JobQueueError::Closed { .. })),
            "{shut:?}"
        );
        let results = [closed.results(w)?, open.results(w)?];
        Ok(results.map(|results| results.len()))
    };
    for nodes in [1, 2, 4] {
        for survive in [false, true] {
            let config = || Config::nodes(nodes).survive(survive);
            let run = config().run(program).unwrap();
            assert_eq!(run.value, [63, 63], "{nodes} nodes, {survive}");
            let settings = Settings::fixed_cost(nodes);
            let run = config().simulate(settings, program).unwrap();
            assert_eq!(run.value, [63, 63], "{nodes} simulated nodes, {survive}");
        }
    }
}

#[test]
fn what_jobs_push_counts_once_whichever_node_crashes_when() {
    let mut lost = 0;
    for seed in 0..SEEDS {
        let run = on_crash(seed, |w| {
            let tree = w.once(|w| Ok(JobQueue::<u32, u64>::of(w, [4])?))?;
            match seed % 2 {
                0 => tree.work(w, |w, depth| grow(w, tree, depth))?,
                _ => tree.work_guided(w, |w, depth| grow(w, tree, depth))?,
            }
            Ok(tree.results(w)?)
        });
        let run = run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(run.value, [1; 31], "seed {seed}");
        lost += run.report.lost.len();
    }
    assert!(lost > 0, "no node was lost");
}

#[test]
fn a_queue_that_is_not_closed_waits_for_processes_that_may_push() {
    fn pushes(w: &mut Worker<'_>, queue: JobQueue<u64, u64>) -> Result<()> {
        for job in 0..JOBS {
            w.work(100_000);
            queue.push(w, job)?;
        }
        Ok(queue.close(w)?)
    }
    let run = Config::nodes(2).simulate(Settings::fixed_cost(2), |w| {
        let queue = w.once(|w| Ok(JobQueue::<u64, u64>::new(w)?))?;
        if w.node() == NodeId(0) {
            drop(w.spawn(NodeId(1), queue, op!(pushes))?);
        }
        queue.work(w, |w, job| Ok(compute(w, job)))?;
        Ok(queue.results(w)?)
    });
    assert_eq!(run.unwrap().value, all());
}

#[test]
fn a_job_pushed_to_a_queue_that_was_stopped_is_an_error() {
    let run = Config::nodes(2).run(|w| {
        let queue = w.once(|w| Ok(JobQueue::<u64, u64>::new(w)?))?;
        if w.node() == NodeId(0) {
            queue.stop(w)?;
            let shut = queue.push(w, 1);
            assert!(
                matches!(shut, Err(JobQueueError::Stopped { .. })),
                "{shut:?}"
            );
        }
        Ok(())
    });
    run.unwrap();
}

#[test]
fn a_freed_queue_is_an_error_that_says_so() {
    let run = Config::nodes(2).run(|w| {
        let queue = w.once(|w| Ok(JobQueue::<u64, u64>::of(w, 0..3)?))?;
        w.barrier()?;
        if w.node() == NodeId(0) {
            queue.free(w)?;
        }
        w.barrier()?;
        Ok(queue
            .take(w)
            .map(|lease| lease.is_some())
            .unwrap_err()
            .to_string())
    });
    let words = run.unwrap().value;
    assert!(words.contains("freed"), "{words}");
}
