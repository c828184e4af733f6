//! Waits end by a wake or by time, and never hang.

use std::time::Duration;

use crate::stage::{ask, run, settings, wake_up};
use dhole_model::{MAX_NODES, NodeId};
use dhole_node::{Machine, Woken};
use dhole_sim::{Settings, Sim};

#[test]
fn a_wait_that_nobody_ends_ends_by_time() {
    let sim = Sim::new(settings(3));
    run(&sim, |actor| {
        let node = actor.node;
        for wait in 1..=4 {
            let micros = 10 * (1 + u64::from(node.0));
            assert_eq!(
                actor.sim.wait(node, Duration::from_micros(micros)),
                Woken::ByTime
            );
            assert_eq!(actor.now(), wait * micros * 1_000);
        }
    });
}

#[test]
fn a_wake_before_the_wait_is_kept_and_two_are_one() {
    let sim = Sim::new(settings(2));
    run(&sim, |actor| {
        let (sim, node) = (actor.sim, actor.node);
        if node == NodeId(1) {
            actor.send(0, wake_up());
            actor.send(0, wake_up());
            return;
        }
        actor.computes(100_000);
        let entered = actor.now();
        assert_eq!(sim.wait(node, Duration::from_secs(1)), Woken::ByWake);
        assert_eq!(actor.now(), entered, "the wait ends at once");
        assert_eq!(sim.wait(node, Duration::from_micros(5)), Woken::ByTime);
        assert_eq!(actor.now(), entered + 5_000);
    });
}

#[test]
fn a_message_that_comes_at_the_deadline_is_in_time() {
    let sim = Sim::new(settings(2));
    let arrives = 700 + wake_up().frame_bytes() + 10_000;
    for (at_most, woken, now) in [
        (arrives - 1, Woken::ByTime, arrives - 1),
        (arrives, Woken::ByWake, arrives + 900),
    ] {
        run(&sim, |actor| match actor.node.0 {
            0 => actor.send(1, wake_up()),
            _ => {
                let ended = actor.sim.wait(actor.node, Duration::from_nanos(at_most));
                assert_eq!((ended, actor.now()), (woken, now));
            }
        });
    }
}

#[test]
fn a_wake_of_a_worker_whose_clock_is_ahead_comes_after_its_clock() {
    let sim = Sim::new(settings(2));
    run(&sim, |actor| match actor.node.0 {
        0 => actor.send(1, wake_up()),
        _ => {
            actor.sim.work(actor.node, 100_000);
            assert_eq!(
                actor.sim.wait(actor.node, Duration::from_secs(1)),
                Woken::ByWake
            );
            assert_eq!(actor.now(), 100_000 + 900);
        }
    });
}

#[test]
fn a_wait_that_expires_before_a_nodes_clock_ends_before_enter_returns() {
    let sim = Sim::new(settings(2));
    let expired = std::sync::atomic::AtomicBool::new(false);
    run(&sim, |actor| match actor.node.0 {
        0 => {
            actor.sim.wait(actor.node, Duration::from_micros(10));
            expired.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        _ => {
            actor.sim.enter(actor.node);
            actor.sim.work(actor.node, 20_000);
            actor.sim.enter(actor.node);
            assert!(expired.load(std::sync::atomic::Ordering::Relaxed));
        }
    });
}

#[test]
fn a_wait_without_end_ends() {
    let sim = Sim::new(settings(2));
    run(&sim, |actor| {
        assert_eq!(actor.sim.wait(actor.node, Duration::MAX), Woken::ByTime);
    });
}

#[test]
fn polling_does_not_stop_the_clock() {
    let sim = Sim::new(settings(3));
    run(&sim, |actor| {
        let (sim, node) = (actor.sim, actor.node);
        let enough = 1_000;
        match node.0 {
            0 => {
                sim.wait(node, Duration::from_nanos(enough));
            }
            1 => {
                while actor.now() < enough {
                    sim.enter(node);
                    sim.leave(node);
                }
            }
            _ => {
                while actor.now() < enough {
                    sim.wait(node, Duration::ZERO);
                }
            }
        }
    });
}

#[test]
fn a_thousand_nodes_and_more_run_on_one_thread() {
    let sim = Sim::new(Settings {
        seed: 3,
        ..settings(MAX_NODES)
    });
    let thread = std::thread::current().id();
    let log = run(&sim, |actor| {
        assert_eq!(std::thread::current().id(), thread);
        let next = (actor.node.index() + 1) % MAX_NODES;
        for round in 20..30 {
            actor.send(next as u16, ask(round));
            assert_eq!(
                actor.sim.wait(actor.node, Duration::from_secs(1)),
                Woken::ByWake
            );
        }
    });
    assert_eq!(log.lock().unwrap().len(), 2 * 10 * MAX_NODES);
}

#[test]
fn a_stack_can_be_as_deep_as_the_settings_say() {
    fn deep(levels: u32) -> u32 {
        let local = std::hint::black_box([levels; 64]);
        if levels == 0 {
            local[0]
        } else {
            deep(levels - 1) + local[1] - levels
        }
    }
    let sim = Sim::new(Settings {
        stack_bytes: 64 << 20,
        ..settings(2)
    });
    run(&sim, |_| assert_eq!(deep(60_000), 0));
}
