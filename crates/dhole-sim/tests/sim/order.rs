//! One seed is one order of events; another seed is another.

use crate::stage::{ask, run, settings};
use dhole_model::NodeId;
use dhole_node::Machine;
use dhole_sim::{Network, Settings, Sim};

const NODES: u16 = 16;

/// Everyone asks everyone at the same time, some compute in between; the order of the deliveries.
fn order(settings: Settings) -> (Vec<(u16, u16, u32)>, u64) {
    let sim = Sim::new(settings);
    let log = run(&sim, |actor| {
        let (sim, node) = (actor.sim, actor.node);
        for round in 100..105 {
            for other in (0..NODES).filter(|other| *other != node.0) {
                actor.send(other, ask(round));
            }
            actor.computes(sim.random(node) % 4 * 10_000);
            sim.wait(node, std::time::Duration::from_micros(70));
        }
        sim.wait(node, std::time::Duration::from_millis(10));
    });
    let order = log.lock().unwrap().clone();
    assert_eq!(
        order.len(),
        2 * 5 * usize::from(NODES) * usize::from(NODES - 1)
    );
    (order, sim.report().elapsed_ns)
}

fn seeded(seed: u64, jitter: f64) -> Settings {
    let plain = settings(usize::from(NODES));
    Settings {
        seed,
        network: Network {
            jitter,
            ..plain.network
        },
        ..plain
    }
}

#[test]
fn the_same_seed_replays_the_same_run() {
    for jitter in [0.0, 0.4] {
        assert_eq!(order(seeded(5, jitter)), order(seeded(5, jitter)));
    }
}

#[test]
fn seeds_differ_in_the_order_of_what_happens_at_the_same_time() {
    let orders: Vec<_> = (0..4).map(|seed| order(seeded(seed, 0.0)).0).collect();
    for (i, a) in orders.iter().enumerate() {
        assert!(orders[i + 1..].iter().all(|b| a != b));
    }
}

#[test]
fn workers_that_are_ready_at_the_same_time_run_in_the_order_of_the_seed() {
    let first = |seed| {
        let sim = Sim::new(Settings {
            seed,
            ..settings(4)
        });
        let first = std::sync::OnceLock::new();
        run(&sim, |actor| {
            first.get_or_init(|| actor.node);
        });
        first.into_inner().unwrap()
    };
    let mut seen: Vec<NodeId> = (0..64).map(first).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 4);
}

#[test]
fn messages_that_arrive_at_the_same_time_come_in_the_order_of_the_seed() {
    const LATER: u64 = 5_000;
    let first = |seed| {
        let sim = Sim::new(Settings {
            seed,
            ..settings(3)
        });
        let log = run(&sim, |actor| match actor.node.0 {
            0 => {
                actor
                    .sim
                    .wait(actor.node, std::time::Duration::from_millis(1));
            }
            1 => actor.send_with(0, ask(1), LATER as usize),
            _ => {
                actor.sim.work(actor.node, LATER - 20);
                actor.sim.enter(actor.node);
                actor.send(0, ask(1));
            }
        });
        let log = log.lock().unwrap();
        log[0].1
    };
    let seen: Vec<u16> = (0..32).map(first).collect();
    assert!(seen.contains(&1) && seen.contains(&2), "{seen:?}");
}

#[test]
fn a_nodes_random_numbers_do_not_depend_on_the_others() {
    let drawn = |nodes, pause| {
        let sim = Sim::new(Settings {
            seed: 9,
            ..settings(nodes)
        });
        let numbers = std::sync::Mutex::new(Vec::new());
        run(&sim, |actor| {
            for _ in 0..3 {
                let number = actor.sim.random(actor.node);
                if actor.node == NodeId(1) {
                    numbers.lock().unwrap().push(number);
                }
                actor.sim.work(actor.node, pause);
                actor.sim.enter(actor.node);
            }
        });
        numbers.into_inner().unwrap()
    };
    assert_eq!(drawn(2, 0), drawn(7, 1_000));
}
