//! Objects that go elsewhere or become replicated while they are used, operations under way, and
//! replicas that differ.

use std::sync::atomic::{AtomicU32, Ordering};

use dhole::sim::Settings;
use dhole::{
    Config, NodeId, Object, ObjectError, Pending, Refusal, Strategy, Worker, on, replicated,
};
use serde::{Deserialize, Serialize};

static CALLS: AtomicU32 = AtomicU32::new(0);

#[derive(Serialize, Deserialize, Default)]
struct Counter {
    value: u32,
    odd: u32,
}

#[dhole::object]
impl Counter {
    pub fn add(&mut self, n: u32) -> u32 {
        self.value += n;
        self.value
    }

    pub fn get(&self) -> u32 {
        self.value
    }

    #[when(self.value >= *least)]
    pub fn at_least(&self, least: u32) -> u32 {
        self.value
    }

    /// Differs on every node: no operation should do this.
    pub fn stir(&mut self) {
        self.odd = CALLS.fetch_add(1, Ordering::Relaxed);
    }

    pub fn fail(&mut self) {
        panic!("as asked");
    }
}

fn settings(nodes: usize, seed: u64) -> Settings {
    let mut settings = Settings::fixed_cost(nodes);
    settings.seed = seed;
    settings
}

fn places(nodes: usize) -> Vec<Strategy> {
    let nodes = (0..nodes).map(|node| on(NodeId::at(node)));
    nodes.chain([replicated()]).collect()
}

/// All count, and now and then somebody sends the counter elsewhere.
fn wandering(w: &mut Worker<'_>) -> dhole::Result<u32> {
    const EACH: u32 = 20;
    let counter: Object<Counter> =
        w.once(|w| Ok(w.new_object(replicated(), Counter::default())?))?;
    let places = places(w.nodes());
    let mut last = 0;
    for _ in 0..EACH {
        let now = counter.add(w, 1)?;
        assert!(now > last, "{now} after {last}");
        last = counter.get(w)?;
        assert!(last >= now, "{last} after {now}");
        if w.random().is_multiple_of(4) {
            let place = places[w.random() as usize % places.len()];
            Object::strategy(&counter, w, place)?;
        }
        w.work(w.random() % 5000);
    }
    let all = EACH * w.nodes() as u32;
    assert_eq!(counter.at_least(w, all)?, all);
    Ok(all)
}

#[test]
fn nothing_is_lost_while_an_object_wanders() {
    for seed in 0..300 {
        let run = Config::nodes(4).simulate(settings(4, seed), wandering);
        let value = run
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"))
            .value;
        assert_eq!(value, 80, "seed {seed}");
    }
    for _ in 0..20 {
        assert_eq!(Config::nodes(4).run(wandering).unwrap().value, 80);
    }
}

#[test]
fn operations_under_way_are_all_executed() {
    let program = |w: &mut Worker<'_>| {
        let counter: Object<Counter> =
            w.once(|w| Ok(w.new_object(on(NodeId(0)), Counter::default())?))?;
        let started: Result<Vec<Pending<u32>>, ObjectError> =
            (0..50).map(|_| counter.start_add(w, 1)).collect();
        let mut told = Vec::new();
        for pending in started? {
            told.push(pending.wait(w)?);
        }
        told.sort_unstable();
        told.dedup();
        assert_eq!(told.len(), 50, "no two are told the same");
        let later = counter.start_at_least(w, 150)?;
        drop(counter.start_add(w, 0)?);
        assert_eq!(later.wait(w)?, 150);
        Ok(w.now())
    };
    assert!(Config::nodes(3).run(program).is_ok());
    let run = Config::nodes(3)
        .simulate(Settings::fixed_cost(3), program)
        .unwrap();
    // One after the other they would take 50 round trips, of some 24 us each.
    assert!(run.value.as_micros() < 1000, "{:?}", run.value);
}

#[test]
fn an_operation_that_fails_unseen_is_reported() {
    let run = Config::nodes(2).run(|w| {
        let counter: Object<Counter> =
            w.once(|w| Ok(w.new_object(on(NodeId(0)), Counter::default())?))?;
        if w.node() == NodeId(1) {
            drop(counter.start_fail(w)?);
            assert!(counter.get(w).is_err());
        }
        Ok(())
    });
    let warnings = run.unwrap().report.warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("Counter::fail of object 0, started on node 1 at "));
}

#[test]
fn an_operation_that_nobody_waits_for_is_executed_before_the_run_ends() {
    let mut settings = settings(3, 0);
    settings.network.jitter = 1.0;
    for (seed, strategy) in (0..60).zip(places(3).into_iter().cycle()) {
        settings.seed = seed;
        let run = Config::nodes(3).simulate(settings.clone(), |w: &mut Worker<'_>| {
            let counter: Object<Counter> =
                w.once(|w| Ok(w.new_object(strategy, Counter::default())?))?;
            drop(counter.start_fail(w)?);
            Ok(())
        });
        let warnings = run.unwrap().report.warnings;
        assert_eq!(warnings.len(), 3, "seed {seed}, {strategy:?}: {warnings:?}");
    }
}

#[test]
fn an_operation_that_nobody_waits_for_and_that_never_may_be_executed_is_a_deadlock() {
    let run = Config::nodes(2).simulate(settings(2, 0), |w: &mut Worker<'_>| {
        let counter: Object<Counter> =
            w.once(|w| Ok(w.new_object(on(NodeId(0)), Counter::default())?))?;
        drop(counter.start_at_least(w, 7)?);
        Ok(())
    });
    let error = run.unwrap_err().to_string();
    assert!(
        error.contains("waits for Counter::at_least of object"),
        "{error}"
    );
}

#[test]
fn a_report_names_what_was_only_read_and_counts_a_read_that_waits_once() {
    let run = Config::nodes(2).simulate(settings(2, 0), |w: &mut Worker<'_>| {
        let make =
            |w: &mut Worker<'_>| w.once(|w| Ok(w.new_object(replicated(), Counter::default())?));
        let (first, second): (Object<Counter>, Object<Counter>) = (make(w)?, make(w)?);
        if w.node() == NodeId(1) {
            first.get(w)?;
            second.get(w)?;
            second.at_least(w, 1)?;
        } else {
            w.work(10_000_000);
            second.add(w, 1)?;
        }
        Ok(())
    });
    let report = run.unwrap().report;
    let counted: Vec<_> = report.per_node[1].by_object.iter().collect();
    assert_eq!(counted.len(), 2);
    for ((name, counted), reads) in counted.into_iter().zip([1, 2]) {
        assert!(name.ends_with("changes::Counter"), "{name}");
        assert_eq!((counted.reads, counted.writes), (reads, 0), "{name}");
    }
}

#[test]
fn replicas_that_differ_are_found_with_the_operation() {
    for watched in [true, false] {
        let run = Config::nodes(3).watch_objects(watched).run(|w| {
            let counter: Object<Counter> =
                w.once(|w| Ok(w.new_object(replicated(), Counter::default())?))?;
            counter.add(w, 1)?;
            Object::compare(&counter, w)?;
            w.barrier()?;
            if w.node() == NodeId(2) {
                counter.stir(w)?;
                counter.add(w, 1)?;
            }
            w.barrier()?;
            let Err(ObjectError::Refused { cause, .. }) = Object::compare(&counter, w) else {
                panic!("the replicas differ");
            };
            let Refusal::Diverged { operation, nodes } = cause else {
                panic!("{cause}");
            };
            assert!(nodes.contains("node"), "{nodes}");
            assert_eq!(&*operation == "Counter::stir", watched, "{operation}");
            Ok(())
        });
        run.unwrap();
    }
}

/// Its operations' arguments have the names of what the macro writes around them.
#[derive(Serialize, Deserialize, Default)]
struct Named(Vec<u8>);

#[dhole::object]
impl Named {
    pub fn put(&mut self, bytes: Vec<u8>, out: u8, operation: u8) -> usize {
        self.0.extend(bytes);
        self.0.extend([out, operation]);
        self.0.len()
    }

    #[when(*result == self.0.len())]
    pub fn holds(&self, worker: u8, state: u8, result: usize, arguments: u8) -> Vec<u8> {
        let mut all = self.0.clone();
        all.extend([worker, state, result as u8, arguments]);
        all
    }
}

#[test]
fn arguments_may_have_any_name() {
    // Called where the object is, and from elsewhere: as a method, and as bytes.
    for place in [on(NodeId(0)), replicated()] {
        let run = Config::nodes(2).simulate(settings(2, 1), |w: &mut Worker<'_>| {
            let object: Object<Named> = w.once(|w| Ok(w.new_object(place, Named::default())?))?;
            if w.node() != NodeId(0) {
                assert_eq!(object.put(w, vec![1, 2], 3, 4)?, 4);
            }
            let held = object.holds(w, 5, 6, 4, 7)?;
            assert_eq!(held, [1, 2, 3, 4, 5, 6, 4, 7]);
            Ok(())
        });
        run.unwrap();
    }
}
