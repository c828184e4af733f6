//! What goes wrong ends on every node, with an error that says what, where and who.

use std::sync::Mutex;
use std::time::Duration;

use dhole::{
    AccessError, Condvar, Config, Error, Lock, Result, RunError, RwLock, SyncError, Worker, sim,
};

/// Runs on threads and in a simulation, and gives both errors.
fn errors(
    nodes: usize,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<()> + Sync,
) -> [RunError; 2] {
    let config = Config::nodes(nodes).suspect_after(Duration::from_millis(20));
    let settings = sim::Settings::fixed_cost(nodes);
    [
        config.run(&program).unwrap_err(),
        config.simulate(settings, &program).unwrap_err(),
    ]
}

#[test]
fn locks_taken_crosswise_are_a_deadlock_on_both_nodes() {
    let failed = errors(2, |w| {
        let me = w.node().index() as u32;
        let first = Lock::numbered(me).acquire(w)?;
        w.barrier()?;
        let second = Lock::numbered(1 - me).acquire(w)?;
        second.release(w)?;
        first.release(w)?;
        Ok(())
    });
    for error in failed {
        let RunError::Failed { error, others, .. } = error else {
            panic!("{error}")
        };
        let errors: Vec<&Error> = std::iter::once(&*error)
            .chain(others.iter().map(|o| &o.1))
            .collect();
        assert_eq!(errors.len(), 2, "both nodes say so: {errors:?}");
        for error in errors {
            assert!(
                matches!(error, Error::Sync(SyncError::Deadlock { .. })),
                "{error}"
            );
            let text = error.to_string();
            let both = text.contains("node 0 waits for lock 1 at")
                && text.contains("node 1 waits for lock 0 at")
                && text.matches("acquired at").count() == 2
                && text.matches("failures.rs:").count() == 4;
            assert!(both, "{text}");
        }
    }
}

#[test]
fn a_lock_held_over_a_barrier_that_another_needs_it_for_is_a_deadlock() {
    let failed = errors(3, |w| {
        let lock = Lock::numbered(7);
        if w.node().index() == 0 {
            let held = lock.acquire(w)?;
            w.barrier()?;
            w.barrier()?;
            held.release(w)?;
        } else {
            w.barrier()?;
            lock.with(w, |_| Ok(()))?;
            w.barrier()?;
        }
        Ok(())
    });
    for error in failed {
        let text = error.to_string();
        assert!(
            text.contains("waits for lock 7 at") && text.contains("waits at barrier 1"),
            "{text}"
        );
    }
}

#[test]
fn a_barrier_that_not_all_will_reach_is_a_deadlock() {
    let failed = errors(3, |w| match w.node().index() {
        2 => Ok(()),
        _ => Ok(w.barrier()?),
    });
    for error in failed {
        let text = error.to_string();
        assert!(text.contains("node 0 waits at barrier 0 at"), "{text}");
        assert!(
            text.contains("node 2 has ended, and waits at the end of the run"),
            "{text}"
        );
    }
}

#[test]
fn a_panic_on_one_node_ends_the_run_on_all_with_its_words() {
    let failed = errors(4, |w| {
        if w.node().index() == 2 {
            panic!("the sky fell on {}", w.node());
        }
        w.barrier()?;
        Ok(())
    });
    for error in failed {
        assert_eq!(error.to_string(), "node 2 panicked: the sky fell on node 2");
    }
}

#[test]
fn an_error_on_one_node_ends_the_run_on_all_with_its_words() {
    let failed = errors(3, |w| {
        let lock = Lock::numbered(0);
        if w.node().index() == 1 {
            return Err(Error::program("no input"));
        }
        lock.with(w, |_| Ok(()))?;
        w.barrier()?;
        Ok(())
    });
    for error in failed {
        assert_eq!(error.to_string(), "node 1 failed: no input");
    }
}

#[test]
fn an_error_under_a_lock_that_cannot_be_given_back_is_told() {
    fn fails(w: &mut Worker<'_>) -> Result<()> {
        // Until node 1 has failed.
        while w.barrier().is_ok() {}
        Err(Error::program("words of node 0"))
    }
    type With = for<'w, 'id> fn(&'w mut Worker<'id>) -> Result<()>;
    let all: [With; 3] = [
        |w| Lock::numbered(1).with(w, fails),
        |w| RwLock::numbered(1).with_read(w, fails),
        |w| RwLock::numbered(1).with_write(w, fails),
    ];
    for with in all {
        let told = Mutex::new(Vec::new());
        errors(2, |w| {
            if w.node().index() == 0 {
                let error = with(w).unwrap_err().to_string();
                told.lock().unwrap().push(error.clone());
                return Err(Error::program(error));
            }
            w.barrier()?;
            Err(Error::program("words of node 1"))
        })
        .into_iter()
        .for_each(|error| assert_eq!(error.to_string(), "node 1 failed: words of node 1"));
        assert_eq!(told.into_inner().unwrap(), ["words of node 0"; 2]);
    }
}

#[test]
fn a_lock_acquired_twice_by_one_node_is_an_error_that_names_both_places() {
    let failed = errors(2, |w| {
        if w.node().index() == 0 {
            let held = Lock::numbered(3).acquire(w)?;
            let again = Lock::numbered(3).acquire(w);
            held.release(w)?;
            again.map(drop)?;
        }
        Ok(())
    });
    for error in failed {
        let text = error.to_string();
        assert!(
            text.contains("acquiring lock 3 at") && text.contains("held it since"),
            "{text}"
        );
    }
}

#[test]
fn a_reference_of_another_cluster_is_an_error_that_says_so() {
    let stranger = Config::nodes(1).run(|w| Ok(w.alloc(5_u32))).unwrap().value;
    let failed = errors(2, |w| {
        let caught = stranger.try_get(w).map(|_| ()).unwrap_err().to_string();
        assert!(caught.contains("space/failures.rs:"), "{caught}");
        let _ = stranger.get_mut(w);
        Ok(())
    });
    for error in failed {
        let RunError::Failed { error, .. } = error else {
            panic!("{error}")
        };
        let foreign = matches!(*error, Error::Access(AccessError::Foreign { .. }));
        let text = error.to_string();
        assert!(
            foreign && text.contains("u32") && text.contains("ended"),
            "{text}"
        );
    }
}

#[test]
fn what_was_made_in_a_run_that_has_ended_is_an_error_in_another() {
    let made = Config::nodes(2).run(|w| {
        let lock = w.new_lock();
        let condition = w.new_condvar(lock);
        Ok((lock, condition, w.new_rw_lock(), w.new_semaphore(1)))
    });
    let (lock, old, rw_lock, semaphore) = made.unwrap().value;
    let run = Config::nodes(2).run(|w| {
        let of_another = |result: Result<()>, what: &str| {
            let error = result.unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::Sync(SyncError::OtherRun { .. })));
            let words = format!("using a {what} on node ");
            assert!(text.starts_with(&words), "{text}");
            assert!(text.ends_with("it was made in another run"), "{text}");
            assert!(text.contains("space/failures.rs:"), "{text}");
        };
        of_another(lock.with(w, |_| Ok(())), "lock");
        of_another(rw_lock.with_read(w, |_| Ok(())), "read-write lock");
        of_another(rw_lock.with_write(w, |_| Ok(())), "read-write lock");
        of_another(semaphore.acquire(w).map_err(Error::from), "semaphore");
        of_another(semaphore.release(w).map_err(Error::from), "semaphore");
        of_another(old.notify_all(w).map_err(Error::from), "condition");
        let own = w.once(|w| Ok(w.new_lock()))?;
        own.with(w, |_| Ok(()))?;
        Lock::numbered(u32::MAX).with(w, |_| Ok(()))
    });
    run.unwrap();
}

#[test]
fn zero_nodes_and_too_many_nodes_are_refused_by_name() {
    for nodes in [0, 5_000] {
        let error = Config::nodes(nodes).run(|_| Ok(())).unwrap_err();
        let text = format!("a cluster of {nodes} nodes: the number of nodes is from 1 to 1024");
        assert_eq!(error.to_string(), text);
        let error = Config::nodes(1)
            .simulate(sim::Settings::new(nodes), |_| Ok(()))
            .unwrap_err();
        assert!(error.to_string().contains(&nodes.to_string()), "{error}");
    }
}

#[test]
fn a_lock_that_is_dropped_is_released_and_reported() {
    let run = Config::nodes(2).run(|w| {
        let lock = Lock::numbered(1);
        if w.node().index() == 0 {
            drop(lock.acquire(w)?);
        }
        w.barrier()?;
        lock.with(w, |_| Ok(()))
    });
    let warnings = run.unwrap().report.warnings;
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].starts_with("lock 1, acquired on node 0 at "),
        "{}",
        warnings[0]
    );
}

#[test]
fn a_condition_that_is_given_another_lock_says_which() {
    for error in errors(2, |w| {
        let own = Lock::numbered(1);
        let held = own.acquire(w)?;
        let other = Lock::numbered(2).acquire(w)?;
        let waited = Condvar::numbered(own, 3).wait(w, other);
        held.release(w)?;
        waited.map(drop)?;
        Ok(())
    }) {
        let text = error.to_string();
        assert!(text.contains("condition 3 of lock 1"), "{text}");
        assert!(text.contains("it was given lock 2, acquired at "), "{text}");
    }
}

#[test]
fn once_may_be_called_again_after_a_panic_in_it_was_caught() {
    let run = Config::nodes(2).run(|w| {
        if w.node().index() == 0 {
            let panics = || w.once(|_| -> Result<u8> { panic!("inner") });
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
            assert!(caught.is_err());
        }
        w.once(|_| Ok(3_u8))
    });
    assert_eq!(run.unwrap().value, 3);
}
