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
    let next = queue.complete_and_share(ANNE, vec![(0, 1)], u64::MAX, true);
    assert_eq!(next.map(|part| part[0].0), Some(1));
    assert!(
        queue
            .complete_and_share(ANNE, vec![(1, 2)], 1, true)
            .is_none()
    );
    let mut queue = super::tests::queue(&["a", "b"]);
    taken(&mut queue, ANNE);
    taken(&mut queue, BILL);
    let next = queue.complete_and_share(ANNE, vec![(0, 1)], 1, true);
    assert_eq!(next.map(|part| part.len()), Some(0));
}

#[test]
fn a_bounded_queue_has_room_for_so_many_that_wait() {
    let mut queue: JobQueue<u8, ()> = JobQueue::bounded(2);
    let pushed = [7, 8].map(|job| queue.push(ANNE, None, job));
    assert_eq!(pushed, [Ok(0), Ok(1)]);
    assert!(!queue.has_room(ANNE));
    queue.take(ANNE);
    assert!(queue.has_room(ANNE));
    queue.take_back(ANNE);
    assert!(!queue.has_room(ANNE), "the job is back");
    queue.close();
    assert!(
        queue.has_room(ANNE),
        "whoever waits is told that it is closed"
    );
    assert_eq!(queue.push(ANNE, None, 9), Err(Shut::Closed));
    queue.take(BILL);
    assert_eq!(queue.push(BILL, None, 9), Ok(2));
    assert!(!queue.has_room(BILL), "it has a job, so it waits for room");
}

#[test]
fn a_queue_that_is_stopped_ends_with_the_jobs_that_were_taken() {
    let mut queue = queue(&["a", "b", "c"]);
    taken(&mut queue, ANNE);
    taken(&mut queue, BILL);
    queue.stop();
    let pushed = queue.push(BILL, None, "d".to_owned());
    assert_eq!(pushed, Err(Shut::Stopped));
    assert_eq!(taken(&mut queue, ANNE), None);
    assert!(!queue.has_ended(), "two jobs are under way");
    assert!(queue.complete(BILL, 1, 20));
    queue.take_back(ANNE);
    assert!(queue.has_ended(), "what comes back is dropped");
    assert_eq!(queue.results(), [20]);
}

fn push(queue: &mut JobQueue<String, u32>, node: NodeId, job: &str) -> Result<u64, Shut> {
    queue.push(node, None, job.to_owned())
}

#[test]
fn a_closed_queue_takes_the_jobs_of_a_node_that_has_one_and_ends_behind_them() {
    let mut queue = queue(&["a"]);
    assert_eq!(push(&mut queue, ANNE, "b"), Err(Shut::Closed));
    taken(&mut queue, ANNE);
    assert_eq!(push(&mut queue, BILL, "b"), Err(Shut::Closed));
    assert_eq!(push(&mut queue, ANNE, "b"), Ok(1));
    assert_eq!(taken(&mut queue, BILL), job(1, "b"), "it goes out at once");
    assert!(queue.complete(ANNE, 0, 10));
    assert_eq!(push(&mut queue, BILL, "c"), Ok(2));
    assert!(queue.complete(BILL, 1, 20));
    assert!(!queue.has_ended());
    assert_eq!(taken(&mut queue, ANNE), job(2, "c"));
    assert!(queue.complete(ANNE, 2, 30));
    assert!(queue.has_ended());
    assert_eq!(queue.results(), [10, 20, 30]);
}

#[test]
fn what_a_lost_node_has_pushed_in_a_job_is_pushed_again_by_the_next_and_counts_once() {
    let mut queue = queue(&["a"]).on(2, true);
    taken(&mut queue, ANNE);
    assert_eq!(push(&mut queue, ANNE, "b"), Ok(1));
    assert_eq!(
        taken(&mut queue, BILL),
        None,
        "it waits for the job that pushed it"
    );
    queue.take_back(ANNE);
    assert_eq!(taken(&mut queue, BILL), job(0, "a"));
    assert_eq!(taken(&mut queue, BILL), None, "it went with its node");
    assert_eq!(push(&mut queue, BILL, "b"), Ok(2));
    assert!(queue.complete(BILL, 0, 10));
    assert_eq!(taken(&mut queue, BILL), job(2, "b"));
    assert!(queue.complete(BILL, 2, 20));
    assert!(queue.has_ended());
    assert_eq!(queue.results(), [10, 20]);
}

#[test]
fn a_job_is_pushed_by_the_job_that_is_named() {
    let mut queue = queue(&["a", "b"]).on(2, true);
    taken(&mut queue, ANNE);
    taken(&mut queue, ANNE);
    assert_eq!(queue.push(ANNE, Some(0), "c".to_owned()), Ok(2));
    assert!(queue.complete(ANNE, 0, 10));
    queue.take_back(ANNE);
    assert_eq!(taken(&mut queue, BILL), job(1, "b"));
    assert_eq!(taken(&mut queue, BILL), job(2, "c"), "its job is done");
}

#[test]
fn a_queue_that_nobody_closes_ends_when_all_work_and_no_job_is_left() {
    let mut queue: JobQueue<u8, ()> = JobQueue::default().on(2, false);
    assert_eq!(queue.push(ANNE, None, 7), Ok(0));
    let part = queue.complete_and_share(ANNE, vec![], 1, true);
    assert_eq!(part, Some(vec![(0, 7)]));
    assert_eq!(queue.push(ANNE, None, 8), Ok(1));
    let part = queue.complete_and_share(BILL, vec![], 1, false);
    assert_eq!(part, Some(vec![(1, 8)]));
    let part = queue.complete_and_share(ANNE, vec![(0, ())], 1, true);
    assert_eq!(part, Some(vec![]), "it may push what is to come");
    let part = queue.complete_and_share(BILL, vec![(1, ())], 1, false);
    assert_eq!(part, Some(vec![]), "what runs beside its program may push");
    assert_eq!(queue.complete_and_share(BILL, vec![], 1, true), None);
    assert!(queue.has_ended());
    assert_eq!(queue.push(ANNE, None, 9), Err(Shut::Closed));
}
