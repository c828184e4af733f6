//! The state of a queue, operation by operation.

use super::*;

const ANNE: NodeId = NodeId(0);
const BILL: NodeId = NodeId(1);

/// As [`JobQueue`], of jobs that are written as bytes.
fn queue(jobs: &[&str]) -> JobQueue<String, u32> {
    JobQueue::of(jobs.iter().map(|job| (*job).to_owned()))
}

fn taken(queue: &mut JobQueue<String, u32>, node: NodeId) -> Option<(u64, String)> {
    queue.take(node)
}

fn job(id: u64, what: &str) -> Option<(u64, String)> {
    Some((id, what.to_owned()))
}

#[test]
fn jobs_are_taken_in_order_and_each_result_stands_in_the_place_of_its_job() {
    let mut queue = queue(&["a", "b"]);
    assert_eq!(taken(&mut queue, ANNE), job(0, "a"));
    assert_eq!(taken(&mut queue, BILL), job(1, "b"));
    assert!(queue.complete(BILL, 1, 20));
    assert!(!queue.has_ended());
    assert!(queue.complete(ANNE, 0, 10));
    assert!(queue.has_ended());
    assert_eq!(queue.results(), [10, 20]);
}

#[test]
fn what_a_lost_node_had_taken_is_given_out_first_and_in_order() {
    let mut queue = queue(&["a", "b", "c", "d"]);
    taken(&mut queue, ANNE);
    taken(&mut queue, BILL);
    taken(&mut queue, ANNE);
    queue.take_back(ANNE);
    assert_eq!(taken(&mut queue, BILL), job(0, "a"));
    assert_eq!(taken(&mut queue, BILL), job(2, "c"));
    assert_eq!(taken(&mut queue, BILL), job(3, "d"));
    assert_eq!(taken(&mut queue, BILL), None);
    assert!(!queue.has_ended(), "four jobs are under way");
}

#[test]
fn a_result_counts_once_and_only_of_the_node_that_has_the_job() {
    let mut queue = queue(&["a"]);
    taken(&mut queue, ANNE);
    queue.take_back(ANNE);
    taken(&mut queue, BILL);
    assert!(!queue.complete(ANNE, 0, 1), "its lease is over");
    assert!(queue.complete(BILL, 0, 2));
    assert!(!queue.complete(BILL, 0, 3), "it is done");
    queue.take_back(BILL);
    assert!(queue.has_ended(), "what is done does not come back");
    assert_eq!(queue.results(), [2]);
}

#[test]
fn what_follows_on_a_result_is_a_job_or_a_wait_or_the_end() {
    let mut queue = queue(&["a", "b"]);
    taken(&mut queue, ANNE);
    let next = queue.complete_and_share(ANNE, vec![(0, 1)], u64::MAX);
    assert_eq!(next.map(|part| part[0].0), Some(1));
    assert!(queue.complete_and_share(ANNE, vec![(1, 2)], 1).is_none());
    let mut queue = super::tests::queue(&["a", "b"]);
    taken(&mut queue, ANNE);
    taken(&mut queue, BILL);
    let next = queue.complete_and_share(ANNE, vec![(0, 1)], 1);
    assert_eq!(next.map(|part| part.len()), Some(0));
}

#[test]
fn a_bounded_queue_has_room_for_so_many_that_wait() {
    let mut queue: JobQueue<u8, ()> = JobQueue::bounded(2);
    assert_eq!((queue.push(7), queue.push(8)), (Some(0), Some(1)));
    assert!(!queue.has_room());
    queue.take(ANNE);
    assert!(queue.has_room());
    queue.take_back(ANNE);
    assert!(!queue.has_room(), "the job is back");
    queue.close();
    assert!(queue.has_room(), "whoever waits is told that it is closed");
    assert_eq!(queue.push(9), None);
}

#[test]
fn a_queue_that_is_stopped_ends_with_the_jobs_that_were_taken() {
    let mut queue = queue(&["a", "b", "c"]);
    taken(&mut queue, ANNE);
    taken(&mut queue, BILL);
    queue.stop();
    assert_eq!(queue.push("d".to_owned()), None);
    assert_eq!(taken(&mut queue, ANNE), None);
    assert!(!queue.has_ended(), "two jobs are under way");
    assert!(queue.complete(BILL, 1, 20));
    queue.take_back(ANNE);
    assert!(queue.has_ended(), "what comes back is dropped");
    assert_eq!(queue.results(), [20]);
}
