//! Threads that nodes start: what each has of its own, and those that cannot begin.

use std::cell::Cell;

use dhole::memory::threads::{self, ThreadError, ThreadId};
use dhole::{NodeId, Result, Worker};

use crate::{cluster, config, everywhere};

thread_local! {
    static OWN: Cell<u64> = const { Cell::new(0) };
}

/// How many threads node 0 starts on each node, one after the other.
const EACH: u64 = 3;

/// The sum of what threads find in a thread-local variable, which each of them changes.
pub fn locals(w: &mut Worker<'_>) -> Result<u64> {
    let handler = |_, argument| OWN.replace(argument);
    if w.node() != NodeId(0) {
        threads::serve(w, &handler)?;
        return Ok(0);
    }
    let nodes = w.nodes() as u16;
    let sum = threads::run(w, &handler, |_| {
        let mut sum = 0;
        for argument in 1..=EACH {
            for node in 0..nodes {
                let thread = match argument % 2 {
                    0 => threads::start(NodeId(node), 0, argument)?,
                    _ => threads::start_and_await(NodeId(node), 0, argument)?,
                };
                sum += threads::join(thread)?;
            }
        }
        Ok::<_, ThreadError>(sum)
    })??;
    Ok(sum)
}

#[test]
fn each_thread_that_is_started_has_fresh_thread_local_variables() {
    for nodes in 1..=3 {
        assert_eq!(
            config(nodes).run(locals).expect("a run").value,
            0,
            "{nodes}"
        );
    }
    assert_eq!(cluster::succeeds(2, "locals"), ["value 0"]);
}

fn not_begun(joined: std::result::Result<u64, ThreadError>) {
    let words = joined.expect_err("it does not begin").to_string();
    assert!(
        words.contains("it could not begin, for its node runs no threads"),
        "{words}"
    );
}

#[test]
fn a_thread_on_a_node_whose_program_is_over_does_not_begin() {
    let runs = everywhere(2, 0, |w| {
        if w.node() == NodeId(0) {
            threads::run(w, &|_, _| 0, |_| {
                not_begun(threads::join(threads::start(NodeId(1), 0, 0)?));
                not_begun(threads::start_and_await(NodeId(1), 0, 0).map(|thread| thread.0));
                Ok::<_, ThreadError>(())
            })??;
        }
        Ok(())
    });
    drop(runs);
}

#[test]
fn a_thread_on_a_node_that_has_stopped_serving_does_not_begin() {
    let run = config(2).run(|w| {
        if w.node() == NodeId(1) {
            threads::serve(w, &|_, _| 0)?;
            w.barrier()?;
            return Ok(w.barrier()?);
        }
        threads::run(w, &|_, _| 0, |_| ())?;
        w.barrier()?;
        not_begun(threads::join(threads::start(NodeId(1), 0, 0)?));
        Ok(w.barrier()?)
    });
    run.expect("a run");
}

#[test]
fn a_thread_that_outlives_the_program_starts_others_on_its_node() {
    let run = config(1).run(|w| {
        let (ends, has_ended) = std::sync::mpsc::channel::<()>();
        let has_ended = std::sync::Mutex::new(has_ended);
        let sum = std::sync::atomic::AtomicU64::new(0);
        let handler = |entry, argument| {
            if entry == 0 {
                // The program is over then.
                let _over = has_ended.lock().expect("a lock").recv();
                let other = threads::start(NodeId(0), 1, argument).expect("a start");
                let value = threads::join(other).expect("it begins");
                sum.store(value, std::sync::atomic::Ordering::SeqCst);
            }
            argument + entry
        };
        threads::run(w, &handler, move |_| {
            let _started: ThreadId = threads::start(NodeId(0), 0, 6)?;
            drop(ends);
            Ok::<_, ThreadError>(())
        })??;
        Ok(sum.load(std::sync::atomic::Ordering::SeqCst))
    });
    assert_eq!(run.expect("a run").value, 7);
}
