//! A job queue, the object with which everybody begins.

use std::collections::VecDeque;
use std::time::Duration;

use dhole::sim::Settings;
use dhole::{Config, NodeId, Object, on, replicated};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct JobQueue {
    jobs: VecDeque<u32>,
    closed: bool,
}

#[dhole::object]
impl JobQueue {
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    pub fn push(&mut self, job: u32) {
        self.jobs.push_back(job);
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    #[when(!self.jobs.is_empty() || self.closed)]
    pub fn pop(&mut self) -> Option<u32> {
        self.jobs.pop_front()
    }
}

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

fn jobs(w: &mut dhole::Worker<'_>) -> dhole::Result<u64> {
    let (queue, sum): (Object<JobQueue>, Object<Sum>) = w.once(|w| {
        let queue = w.new_object(on(NodeId(0)), JobQueue::default())?;
        Ok((queue, w.new_object(on(NodeId(1)), Sum::default())?))
    })?;
    if w.node() == NodeId(0) {
        for job in 1..=100 {
            queue.push(w, job)?;
        }
        queue.close(w)?;
    }
    while let Some(job) = queue.pop(w)? {
        sum.add(w, u64::from(job))?;
    }
    w.barrier()?;
    assert_eq!(queue.len(w)?, 0);
    Ok(sum.get(w)?)
}

#[test]
fn four_workers_empty_a_queue_on_threads() {
    let run = Config::nodes(4).run(jobs).unwrap();
    assert_eq!(run.value, 5050);
}

#[test]
fn four_workers_empty_a_queue_in_a_simulation() {
    let run = Config::nodes(4).simulate(Settings::new(4), jobs).unwrap();
    assert_eq!(run.value, 5050);
}

#[test]
fn replicas_agree_with_one_another_and_are_read_without_a_message() {
    let run = Config::nodes(3).run(|w| {
        let sum: Object<Sum> = w.once(|w| Ok(w.new_object(replicated(), Sum::default())?))?;
        for n in 1..=10 {
            sum.add(w, n)?;
        }
        w.barrier()?;
        let before = w.counters().messages;
        for _ in 0..100 {
            assert_eq!(sum.get(w)?, 165);
        }
        assert_eq!(w.counters().messages, before);
        Ok(w.counters().broadcasts)
    });
    assert_eq!(run.unwrap().value, 11);
}

#[test]
fn waiting_operations_on_a_replica_go_on_in_order() {
    let run = Config::nodes(4).run(|w| {
        let queue: Object<JobQueue> =
            w.once(|w| Ok(w.new_object(replicated(), JobQueue::default())?))?;
        let mut got = 0;
        if w.node() == NodeId(0) {
            for job in 1..=99 {
                queue.push(w, job)?;
            }
            queue.close(w)?;
        } else {
            while let Some(job) = queue.pop(w)? {
                got += u64::from(job);
            }
        }
        let sum: Object<Sum> = w.once(|w| Ok(w.new_object(replicated(), Sum::default())?))?;
        sum.add(w, got)?;
        w.barrier()?;
        Ok(sum.get(w)?)
    });
    assert_eq!(run.unwrap().value, 99 * 50);
}

#[test]
fn what_an_operation_computes_takes_time_in_a_simulation_that_measures() {
    let run = Config::nodes(1).simulate(Settings::new(1), |w: &mut dhole::Worker<'_>| {
        let slow: Object<Slow> = w.new_object(on(NodeId(0)), Slow)?;
        let before = w.now();
        slow.read(w)?;
        let read = w.now();
        slow.write(w)?;
        Ok([read - before, w.now() - read])
    });
    let took = run.unwrap().value;
    assert!(took.iter().all(|took| *took >= BUSY), "{took:?}");
}

#[test]
fn what_is_executed_for_others_takes_the_time_of_who_executes_it() {
    let run = |strategy| {
        Config::nodes(3).simulate(Settings::new(3), move |w: &mut dhole::Worker<'_>| {
            let slow: Object<Slow> = w.once(|w| Ok(w.new_object(strategy, Slow)?))?;
            let before = w.now();
            if w.node().index() == 0 {
                slow.write(w)?;
            }
            let called = w.now() - before;
            w.barrier()?;
            Ok(called)
        })
    };
    let computed = |report: dhole::Report| report.simulated.unwrap().computed;
    let alone = run(on(NodeId(1))).unwrap();
    assert!(alone.value >= BUSY, "its caller waits: {:?}", alone.value);
    let there = computed(alone.report)[1];
    assert!(there >= BUSY, "{there:?}");
    let everywhere = computed(run(replicated()).unwrap().report);
    assert!(
        everywhere.iter().all(|computed| *computed >= BUSY),
        "{everywhere:?}"
    );
}

/// No core does what `busy` does in less. Its time is that of its thread, so that a core which
/// something else holds meanwhile does not count.
const BUSY: Duration = Duration::from_micros(300);

/// Both operations compute.
#[derive(Serialize, Deserialize)]
struct Slow;

fn busy() {
    for turn in 0..3_000_000_u32 {
        std::hint::black_box(turn);
    }
}

#[dhole::object]
impl Slow {
    pub fn read(&self) {
        busy();
    }

    pub fn write(&mut self) {
        busy();
    }
}

#[test]
fn the_report_says_how_often_which_node_read_and_wrote_an_object() {
    let run = Config::nodes(2).run(|w| {
        let sum: Object<Sum> = w.once(|w| Ok(w.new_object(replicated(), Sum::default())?))?;
        for _ in 0..=w.node().index() {
            sum.add(w, 1)?;
            w.barrier()?;
            sum.get(w)?;
            sum.get(w)?;
        }
        if w.node() == NodeId(0) {
            w.barrier()?;
        }
        Ok(())
    });
    let report = run.unwrap().report;
    let of = |node: usize| {
        let by_object = &report.per_node[node].by_object;
        let (name, counted) = by_object.iter().next().unwrap();
        assert!(
            name.starts_with("object 0: ") && name.ends_with("queue::Sum"),
            "{name}"
        );
        (counted.reads, counted.writes)
    };
    assert_eq!((of(0), of(1)), ((2, 1), (4, 2)));
}
