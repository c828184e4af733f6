//! What a type says that a loss means for its objects, `#[on_loss]`: every copy does it, in the
//! same place of the order of operations.

use dhole::sim::{Crash, Settings};
use dhole::{Config, NodeId, Object, on, replicated};
use serde::{Deserialize, Serialize};

const CRASH_NS: u64 = 500_000;
const LATER: u64 = 2 * CRASH_NS;
const VICTIM: NodeId = NodeId(2);

/// What was written, and which nodes were lost in between.
#[derive(Serialize, Deserialize, Default)]
struct Log {
    lines: Vec<(u16, u32)>,
    lost: Vec<(usize, NodeId)>,
}

#[dhole::object]
impl Log {
    pub fn add(&mut self, node: u16, line: u32) {
        self.lines.push((node, line));
    }

    pub fn lost(&self) -> Vec<(usize, NodeId)> {
        self.lost.clone()
    }

    #[when(!self.lost.is_empty())]
    pub fn await_loss(&self) -> NodeId {
        self.lost[0].1
    }

    #[when(!self.lost.is_empty())]
    pub fn take_loss(&mut self) -> Option<NodeId> {
        self.lost.pop().map(|(_, node)| node)
    }

    #[on_loss]
    fn note(&mut self, node: NodeId) {
        self.lost.push((self.lines.len(), node));
    }
}

fn cluster(seed: u64) -> Settings {
    let mut settings = Settings::fixed_cost(4);
    settings.seed = seed;
    settings.network.jitter = 1.0;
    settings.notice_ns = 20_000 << (seed % 4);
    let (node, at_ns) = (VICTIM, CRASH_NS);
    settings.crashes = vec![Crash { node, at_ns }];
    settings
}

#[test]
fn all_replicas_hear_of_a_loss_between_the_same_two_writes() {
    for seed in 0..100 {
        let config = Config::nodes(1).survive(true).watch_objects(true);
        let run = config.simulate(cluster(seed), |w| {
            let log = w.once(|w| Ok(w.new_object(replicated(), Log::default())?))?;
            for line in 0..40 {
                log.add(w, w.node().0, line)?;
                w.work(w.random() % 60_000);
            }
            w.barrier()?;
            Object::compare(&log, w)?;
            Ok(log.lost(w)?)
        });
        let run = run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let heard: Vec<NodeId> = run.value.iter().map(|(_, node)| *node).collect();
        assert_eq!(heard, [VICTIM], "seed {seed}");
    }
}

#[test]
fn a_single_copy_hears_of_a_loss_and_calls_that_wait_for_it_go_on() {
    for seed in 0..50 {
        for place in [on(NodeId(1)), replicated()] {
            let run = Config::nodes(1).survive(true).simulate(cluster(seed), |w| {
                let log = w.once(|w| Ok(w.new_object(place, Log::default())?))?;
                Ok(match w.node().index() {
                    0 => log.await_loss(w)?,
                    // Of those that want to take it one does, when all have seen it.
                    1 => log.await_loss(w)?,
                    3 => {
                        w.work(2 * LATER);
                        log.take_loss(w)?.unwrap_or(NodeId(99))
                    }
                    _ => {
                        // The dead node's own wait takes nothing away.
                        log.take_loss(w)?;
                        NodeId(98)
                    }
                })
            });
            let run = run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(run.value, VICTIM, "seed {seed}, {place:?}");
        }
    }
}

#[test]
fn an_object_that_is_on_its_way_hears_of_a_loss_once() {
    let (mut alike, mut at) = (0, Vec::new());
    for seed in 0..100 {
        let mut settings = cluster(seed);
        // While it goes from node to node.
        settings.crashes[0].at_ns = 150_000 + 6_000 * seed;
        let run = Config::nodes(1).survive(true).simulate(settings, |w| {
            let log = w.once(|w| Ok(w.new_object(on(NodeId(0)), Log::default())?))?;
            let places = [on(NodeId(1)), replicated(), on(NodeId(3)), on(NodeId(0))];
            for (line, place) in (0..24).zip(places.into_iter().cycle()) {
                match w.node() {
                    VICTIM => w.pause()?,
                    NodeId(0) => Object::strategy(&log, w, place)?,
                    _ => log.add(w, w.node().0, line)?,
                }
                w.work(w.random() % 20_000);
            }
            w.work(LATER);
            w.barrier()?;
            Ok(log.lost(w)?)
        });
        let run = run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let heard: Vec<NodeId> = run.value.iter().map(|(_, node)| *node).collect();
        assert_eq!(heard, [VICTIM], "seed {seed}");
        at.push(run.value[0].0);
        alike += usize::from(run.value[0].0 == 0);
    }
    assert!(alike < at.len(), "the loss comes between writes: {at:?}");
}

/// An object that cannot take a loss.
#[derive(Serialize, Deserialize, Default)]
struct Fragile(u64);

#[dhole::object]
impl Fragile {
    pub fn value(&self) -> u64 {
        self.0
    }

    #[on_loss]
    fn breaks(&mut self, node: NodeId) {
        panic!("without {node} this is nothing");
    }
}

#[test]
fn an_object_that_panics_at_a_loss_is_poisoned_and_says_where() {
    let run = Config::nodes(1).survive(true).simulate(cluster(1), |w| {
        let it = w.once(|w| Ok(w.new_object(replicated(), Fragile::default())?))?;
        w.work(2 * LATER);
        w.barrier()?;
        Ok(it.value(w).unwrap_err().to_string())
    });
    let words = run.unwrap().value;
    assert!(words.contains("Fragile::breaks"), "{words}");
    assert!(words.contains("without node 2 this is nothing"), "{words}");
}
