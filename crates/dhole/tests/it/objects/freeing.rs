//! Objects that are given back.

use dhole::{Config, NodeId, Object, ObjectError, Refusal, on, replicated};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Tally {
    of: u64,
}

#[dhole::object]
impl Tally {
    pub fn add(&mut self, n: u64) {
        self.of += n;
    }

    pub fn of(&self) -> u64 {
        self.of
    }

    #[when(self.of >= *least)]
    pub fn reach(&self, least: u64) {}
}

#[track_caller]
fn assert_freed<R: std::fmt::Debug>(result: Result<R, ObjectError>, by: NodeId) {
    let error = result.expect_err("the object was freed");
    let ObjectError::Refused { cause, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*cause, Refusal::Freed(by), "{error}");
    assert!(
        error.to_string().ends_with(&format!("{by} freed it")),
        "{error}"
    );
}

fn settings(nodes: usize, seed: u64) -> dhole::sim::Settings {
    let mut settings = dhole::sim::Settings::fixed_cost(nodes);
    (settings.seed, settings.network.jitter) = (seed, 0.9);
    settings
}

/// Whoever uses it later, and whoever waits for its guard, is told who freed it.
#[test]
fn a_freed_object_is_an_error_that_names_who_freed_it() {
    for strategy in [replicated(), on(NodeId(0)), on(NodeId(1)), on(NodeId(2))] {
        for seed in 0..40 {
            let by = NodeId((seed % 3) as u16);
            let run = Config::nodes(3).simulate(settings(3, seed), |w| {
                let tally = w.once(|w| Ok(w.new_object(strategy, Tally::default())?))?;
                tally.add(w, 1)?;
                w.barrier()?;
                match w.node() {
                    me if me == by => {
                        w.work(w.random() % 5000);
                        Object::free(&tally, w)?;
                    }
                    _ => assert_freed(tally.reach(w, 4), by),
                }
                assert_freed(tally.of(w), by);
                assert_freed(tally.add(w, 1), by);
                assert_freed(Object::free(&tally, w), by);
                assert_freed(Object::strategy(&tally, w, on(NodeId(1))), by);
                assert_freed(Object::compare(&tally, w), by);
                w.barrier()?;
                Ok(())
            });
            run.unwrap_or_else(|error| panic!("{strategy:?}, seed {seed}: {error}"));
        }
    }
}

/// Operations, moves and freeing at once: each operation is done or told who freed the object, and
/// nobody waits for ever.
#[test]
fn freeing_is_ordered_with_operations_and_changes() {
    for seed in 0..400 {
        let run = Config::nodes(4).simulate(settings(4, seed), |w| {
            let tally = w.once(|w| Ok(w.new_object(on(NodeId(1)), Tally::default())?))?;
            let (mut added, me) = (0, w.node().0);
            for step in 0..12_u16 {
                w.work(w.random() % 3000);
                let done = match (me, step) {
                    (0, 8) => Object::free(&tally, w),
                    (3, _) if step % 3 == 0 => {
                        let to = [replicated(), on(NodeId(step % 4)), on(NodeId(2))];
                        Object::strategy(&tally, w, to[(w.random() % 3) as usize])
                    }
                    (2, 5) => tally.reach(w, 1000),
                    _ => tally.add(w, 1).inspect(|()| added += 1),
                };
                match (me, step) {
                    (0, 0..=8) => done?,
                    (0, _) => assert_freed(done, NodeId(0)),
                    _ if done.is_err() => assert_freed(done, NodeId(0)),
                    _ => {}
                }
            }
            w.barrier()?;
            assert_freed(tally.of(w), NodeId(0));
            assert!(me != 0 || added == 8);
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// The report says how often freed objects were used, and not which.
#[test]
fn freed_objects_are_one_line_of_the_report() {
    let run = Config::nodes(2).run(|w| {
        for round in 0..50_u64 {
            let strategy = [replicated(), on(NodeId(1))][(round % 2) as usize];
            let tally = w.once(|w| Ok(w.new_object(strategy, Tally::default())?))?;
            tally.add(w, round)?;
            w.barrier()?;
            assert!(tally.of(w)? >= 2 * round);
            w.barrier()?;
            if w.node().0 == 0 {
                Object::free(&tally, w)?;
            }
        }
        w.barrier()?;
        Ok(())
    });
    let total = run.expect("a run").report.total();
    let used = &total.by_object;
    assert_eq!(used.len(), 1, "{used:?}");
    let freed = &used["objects that were freed"];
    assert_eq!((freed.reads, freed.writes), (100, 100), "{used:?}");
}
