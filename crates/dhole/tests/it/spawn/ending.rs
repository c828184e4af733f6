//! How processes end that come to no good end, and what waits for ever.

use std::time::Duration;

use dhole::{
    Config, Error, NodeId, Object, ProcessError, Refusal, Result, RunError, SyncError, Worker, on,
    op, replicated,
};
use serde::{Deserialize, Serialize};

use super::{on_both, values};

fn fails(w: &mut Worker<'_>, how: u8) -> Result<u64> {
    match how {
        0 => panic!("a process with number {}", w.node().0),
        1 => Err(Error::program("it did not want to")),
        2 => {
            let from = w.node();
            let _unjoined = w.spawn(from, 0, op!(fails))?;
            Ok(7)
        }
        _ => {
            w.barrier()?;
            Ok(7)
        }
    }
}

#[test]
fn a_panic_in_a_process_is_its_parents_error_with_its_words() {
    values(2, |w| {
        if w.node().0 == 1 {
            return Ok(());
        }
        let error = w.spawn(NodeId(1), 0, op!(fails))?.join(w).unwrap_err();
        let ProcessError::Ended {
            on, node, cause, ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!((*on, *node), (NodeId(1), NodeId(0)));
        assert_eq!(*cause, Refusal::Panicked("a process with number 1".into()));
        let words = error.to_string();
        assert!(
            words.contains("fails") && words.contains("ending.rs:"),
            "{words}"
        );
        for (how, expected) in [
            (1, "it did not want to"),
            (2, "panicked: a process with number 1"),
            (3, "only the program itself"),
        ] {
            let error = w.spawn(NodeId(1), how, op!(fails))?.join(w).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        Ok(())
    });
}

#[test]
fn a_process_that_nobody_joins_fails_its_parent() {
    for run in on_both(&Config::nodes(2), 2, |w| {
        if w.node().0 == 1 {
            let _unjoined = w.spawn(NodeId(0), 0, op!(fails))?;
        }
        Ok(())
    }) {
        let Err(RunError::Failed { node, error, .. }) = run else {
            panic!("{run:?}");
        };
        assert_eq!(node, NodeId(1));
        assert!(
            error.to_string().contains("a process with number 0"),
            "{error}"
        );
    }
}

#[test]
fn what_cannot_be_started_is_an_error() {
    let run = Config::nodes(2).run(|w| {
        for place in [on(NodeId(2)), replicated()] {
            let error = w.spawn(place, 1, op!(fails)).unwrap_err();
            assert!(matches!(error, ProcessError::NotStarted { .. }), "{error}");
        }
        let mut all = Vec::new();
        let waits = op!(|_w, n: u32| Ok(n));
        for n in 0..1024 {
            all.push(w.spawn(w.node(), n, waits)?);
        }
        let error = w.spawn(w.node(), 0, waits).unwrap_err();
        assert!(error.to_string().contains("1024"), "{error}");
        for (n, process) in all.into_iter().enumerate() {
            assert_eq!(process.join(w)? as usize, n);
        }
        Ok(())
    });
    run.unwrap();
}

#[derive(Serialize, Deserialize, Default)]
struct Gate {
    open: bool,
}

#[dhole::object]
impl Gate {
    #[when(self.open)]
    pub fn pass(&mut self) {}

    pub fn open(&mut self) {
        self.open = true;
    }
}

fn stuck(w: &mut Worker<'_>, gate: Object<Gate>) -> Result<()> {
    Ok(gate.pass(w)?)
}

/// All wait, one of them for a process whose guard nobody can make true any more.
#[test]
fn a_join_of_what_never_ends_is_a_deadlock_that_names_all_who_wait() {
    for elsewhere in [0, 1] {
        let config = Config::nodes(2).suspect_after(Duration::from_millis(2));
        for run in on_both(&config, 2, |w| {
            if w.node().0 == 1 {
                return Ok(());
            }
            let gate = w.new_object(on(NodeId(0)), Gate::default())?;
            let process = w.spawn(NodeId(elsewhere), gate, op!(stuck))?;
            let error = process.join(w).unwrap_err();
            let ProcessError::Sync(SyncError::Deadlock { cycle, .. }) = &error else {
                panic!("{error}");
            };
            let words = error.to_string();
            assert!(words.contains("Gate::pass"), "{words}");
            assert!(words.contains("waits for the process"), "{words}");
            assert!(words.contains("at the end of the run"), "{words}");
            assert_eq!(cycle.len(), 3, "{words}");
            Err::<(), _>(error.into())
        }) {
            assert!(run.is_err(), "{run:?}");
        }
    }
}

/// The run ends while processes wait on several nodes.
#[test]
fn whoever_waits_hears_that_the_run_has_ended() {
    for run in on_both(&Config::nodes(2), 2, |w| {
        let gate = w.once(|w| Ok(w.new_object(on(NodeId(0)), Gate::default())?))?;
        for node in [0, 1, 0, 1] {
            let _waits = w.spawn(NodeId(node), gate, op!(stuck))?;
        }
        w.barrier()?;
        match w.node().0 {
            0 => gate.pass(w)?,
            _ => panic!("the program has had enough"),
        }
        Ok(())
    }) {
        let Err(RunError::Panicked { node, message, .. }) = &run else {
            panic!("{run:?}");
        };
        assert_eq!(
            (*node, &**message),
            (NodeId(1), "the program has had enough")
        );
    }
}
