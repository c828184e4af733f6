//! Failures: a run ends on every node, with an error that names what, where and which node.

use dhole::{Error, Lock, SyncError};
use dhole_node::RunError;

use super::{assert_says, fail, succeed};
use crate::{Platform, run};

const THIS_FILE: &str = "failing.rs:";

/// Two nodes, two locks, crosswise; both nodes learn of it.
pub fn a_deadlock_of_locks_is_told_with_its_places(on: &dyn Platform) {
    let error = fail(on, 3, |w| {
        let me = w.node().index() as u32;
        let first = Lock::numbered(me).acquire(w)?;
        w.barrier()?;
        if me < 2 {
            Lock::numbered(1 - me).with(w, |_| Ok(()))?;
        }
        Ok(first.release(w)?)
    });
    assert_says(
        &error,
        &[
            "node 0 waits for lock 1 at",
            "node 1 waits for lock 0 at",
            THIS_FILE,
        ],
    );
    let RunError::Failed { error, others, .. } = error else {
        panic!("{error}")
    };
    let told = std::iter::once(&*error).chain(others.iter().map(|(_, error)| error));
    let deadlocks = told
        .filter(|error| matches!(error, Error::Sync(SyncError::Deadlock { .. })))
        .count();
    assert_eq!(
        deadlocks, 2,
        "both say so, and node 2, of which nobody waits, does not"
    );
}

/// A lock is held over a barrier that another node needs it to reach.
pub fn a_deadlock_at_a_barrier_is_told_with_its_places(on: &dyn Platform) {
    let error = fail(on, 3, |w| {
        if w.node().index() == 1 {
            let held = Lock::numbered(9).acquire(w)?;
            w.barrier()?;
            w.barrier()?;
            return Ok(held.release(w)?);
        }
        w.barrier()?;
        if w.node().index() == 2 {
            Lock::numbered(9).with(w, |_| Ok(()))?;
        }
        Ok(w.barrier()?)
    });
    let words = [
        "node 1 waits at barrier 1 at",
        "node 2 waits for lock 9 at",
        THIS_FILE,
    ];
    assert_says(&error, &words);
}

/// One node finishes while the others wait for it.
pub fn a_skipped_barrier_is_told(on: &dyn Platform) {
    let error = fail(on, 3, |w| match w.node().index() {
        1 => Ok(()),
        _ => Ok(w.barrier()?),
    });
    assert_says(
        &error,
        &[
            "waits at barrier 0 at",
            "node 1 has ended, and waits at the end of the run",
        ],
    );
    // Each of the two who wait at the barrier is in a deadlock with the one who never comes there.
    let waits = |node| {
        error
            .to_string()
            .contains(&format!("node {node} waits at barrier 0"))
    };
    assert!(waits(0) || waits(2), "{error}");
}

/// A panic's words are the run's error.
pub fn a_panic_on_one_node_ends_the_run_with_its_words(on: &dyn Platform) {
    let error = fail(on, 4, |w| {
        if w.node().index() == 2 {
            panic!("no more {}", "wolves");
        }
        Ok(w.barrier()?)
    });
    assert_eq!(error.to_string(), "node 2 panicked: no more wolves");
}

/// A program's own error is the run's error.
pub fn an_error_on_one_node_ends_the_run_with_its_words(on: &dyn Platform) {
    let error = fail(on, 3, |w| match w.node().index() {
        1 => Err(Error::program("out of meat")),
        _ => Ok(w.barrier()?),
    });
    assert_eq!(error.to_string(), "node 1 failed: out of meat");
}

/// Nodes wait for a lock, at a barrier and at the end when another one fails.
pub fn a_failure_reaches_nodes_that_wait_for_anything(on: &dyn Platform) {
    let error = fail(on, 4, |w| {
        let lock = Lock::numbered(0);
        match w.node().index() {
            0 => {
                let _held = lock.acquire(w)?;
                w.barrier()?;
                w.work(100_000);
                Err(Error::program("enough"))
            }
            1 => {
                w.barrier()?;
                lock.with(w, |_| Ok(()))
            }
            _ => {
                w.barrier()?;
                Ok(w.barrier()?)
            }
        }
    });
    assert_eq!(error.to_string(), "node 0 failed: enough");
    let error = fail(on, 3, |w| match w.node().index() {
        0 => {
            w.work(100_000);
            Err(Error::program("too much"))
        }
        _ => Ok(()),
    });
    assert_eq!(error.to_string(), "node 0 failed: too much");
}

/// A lock is not reentrant.
pub fn a_lock_acquired_twice_is_an_error_with_both_places(on: &dyn Platform) {
    let error = fail(on, 2, |w| {
        let lock = Lock::numbered(4);
        lock.with(w, |w| lock.with(w, |_| Ok(())))
    });
    assert_says(&error, &["acquiring lock 4 at", "held it since", THIS_FILE]);
}

/// Forgetting to release does not keep the others waiting for ever.
pub fn a_lock_dropped_unreleased_is_released_and_told(on: &dyn Platform) {
    let outcome = succeed(on, 3, |w| {
        drop(Lock::numbered(2).acquire(w)?);
        Ok(w.barrier()?)
    });
    assert_eq!(outcome.warnings.len(), 3);
    let told = |warning: &String| warning.contains("lock 2") && warning.contains(THIS_FILE);
    assert!(outcome.warnings.iter().all(told), "{:?}", outcome.warnings);
}

/// Nor does a lock whose `Held` is never dropped.
pub fn a_lock_forgotten_is_released_and_told(on: &dyn Platform) {
    let outcome = succeed(on, 3, |w| {
        std::mem::forget(Lock::numbered(2).acquire(w)?);
        Ok(())
    });
    assert_eq!(outcome.warnings.len(), 3);
    let told = |warning: &String| warning.contains("was forgotten") && warning.contains(THIS_FILE);
    assert!(outcome.warnings.iter().all(told), "{:?}", outcome.warnings);
}

/// The others would take the inner value for the outer one.
pub fn a_value_made_once_within_another_is_an_error(on: &dyn Platform) {
    let error = fail(on, 3, |w| {
        let value = w.once(|w| w.once(|_| Ok(1_u64)))?;
        panic!("node {} got {value}", w.node());
    });
    assert_says(&error, &["once on node 0", "within the one at", THIS_FILE]);
}

/// A reference that came from somewhere else reads nothing.
pub fn a_reference_of_another_cluster_is_an_error(on: &dyn Platform) {
    let stranger = succeed(on, 1, |w| Ok(w.alloc(1_u64))).value;
    succeed(on, 2, |w| {
        w.alloc(2_u64);
        assert!(stranger.try_get(w).is_err());
        assert!(stranger.try_get_mut(w).is_err());
        Ok(w.barrier()?)
    });
    let unwound = run(on, 2, 1, |w| Ok(stranger.read(w)));
    let error = unwound.expect_err("reading it ends the run");
    assert_says(&error, &["accessing object", "u64", THIS_FILE]);
}
