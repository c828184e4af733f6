//! Virtual time is what the model's arithmetic says, to the nanosecond.

use std::time::Duration;

use crate::stage::{ask, reply, run, settings, wake_up};
use dhole_model::NodeId;
use dhole_node::{Machine, Woken};
use dhole_sim::{Computation, Settings, Sim};

const LONG: Duration = Duration::from_secs(1_000);

#[test]
fn a_ping_pong_takes_what_the_model_says() {
    let sim = Sim::new(settings(2));
    const ROUNDS: u64 = 100;
    run(&sim, |actor| {
        for round in 0..ROUNDS {
            if actor.node == NodeId(0) {
                actor.send_with(1, ask(round as u32), 1_000);
                assert_eq!(actor.sim.wait(actor.node, LONG), Woken::ByWake);
            }
        }
    });
    let ends = 700 + 10_000 + 900;
    let (there, back) = (ask(0).frame_bytes() + 1_000, reply(0).frame_bytes());
    let report = sim.report();
    assert_eq!(report.elapsed_ns, ROUNDS * (2 * ends + there + back));
    assert_eq!(report.messages, 2 * ROUNDS);
    assert_eq!(report.bytes, ROUNDS * (there + back));
    assert_eq!(report.computed_ns, [0, 0]);
}

#[test]
fn a_server_serves_one_request_after_another() {
    const CLIENTS: u64 = 8;
    let sim = Sim::new(settings(1 + CLIENTS as usize));
    let answered = std::sync::Mutex::new(Vec::new());
    run(&sim, |actor| {
        if actor.node != NodeId(0) {
            actor.send(0, ask(0));
            actor.sim.wait(actor.node, LONG);
            answered.lock().unwrap().push(actor.now());
        }
    });
    let (request, answer) = (ask(0).frame_bytes(), reply(0).frame_bytes());
    let first = 2 * (700 + 10_000 + 900) + request + answer;
    let expected: Vec<u64> = (0..CLIENTS).map(|i| first + i * (900 + 700)).collect();
    assert_eq!(*answered.lock().unwrap(), expected);
}

#[test]
fn messages_of_one_node_queue_for_its_link() {
    let sim = Sim::new(settings(2));
    const BYTES: usize = 50_000;
    run(&sim, |actor| {
        if actor.node == NodeId(0) {
            for _ in 0..3 {
                actor.send_with(1, wake_up(), BYTES);
            }
            assert_eq!(actor.now(), 3 * 700);
        } else {
            let occupied = wake_up().frame_bytes() + BYTES as u64;
            for i in 1..=3 {
                actor.sim.wait(actor.node, LONG);
                assert_eq!(actor.now(), 700 + i * occupied + 10_000 + 900);
            }
        }
    });
}

#[test]
fn a_handler_takes_its_time_from_a_worker_that_computes() {
    let sim = Sim::new(settings(2));
    run(&sim, |actor| {
        let (sim, node) = (actor.sim, actor.node);
        if node == NodeId(0) {
            actor.computes(100_000);
            assert_eq!(actor.now(), 100_000 + 20 + 900 + 700);
        } else {
            actor.send(0, ask(0));
            sim.wait(node, LONG);
            let bytes = ask(0).frame_bytes() + reply(0).frame_bytes();
            assert_eq!(actor.now(), 2 * (700 + 10_000 + 900) + bytes);
        }
    });
    let report = sim.report();
    assert_eq!(report.computed_ns, [100_000, 0]);
    assert_eq!(report.work_ns(), 100_000);
    assert!(report.work_ns() < report.elapsed_ns);
}

#[test]
fn what_comes_in_stolen_time_is_delivered_before_enter_returns() {
    let sim = Sim::new(settings(3));
    let bytes = ask(1).frame_bytes();
    run(&sim, |actor| {
        let (sim, node) = (actor.sim, actor.node);
        match node.0 {
            0 => {
                sim.work(node, 50_000 - 20);
                sim.enter(node);
                assert_eq!(actor.now(), 50_000 + 2 * (900 + 700));
            }
            1 => actor.send(0, ask(1)),
            _ => {
                let arrives = 50_000 + 900;
                sim.work(node, arrives - 10_000 - bytes - 700 - 20);
                sim.enter(node);
                actor.send(0, ask(2));
            }
        }
    });
}

#[test]
fn a_message_to_itself_takes_a_node_no_time() {
    let sim = Sim::new(settings(1));
    let log = run(&sim, |actor| {
        actor.sim.work(actor.node, 50);
        actor.send(0, ask(4));
        assert_eq!(actor.sim.wait(actor.node, LONG), Woken::ByWake);
        assert_eq!(actor.now(), 50);
    });
    assert_eq!(*log.lock().unwrap(), [(0, 0, 4), (0, 0, 4)]);
}

#[test]
fn what_comes_before_a_nodes_clock_is_delivered_before_enter_returns() {
    let sim = Sim::new(settings(2));
    let arrives = 700 + wake_up().frame_bytes() + 10_000;
    run(&sim, |actor| {
        let (sim, node) = (actor.sim, actor.node);
        if node == NodeId(1) {
            actor.send(0, ask(1));
            return;
        }
        let arrives = arrives - wake_up().frame_bytes() + ask(1).frame_bytes();
        sim.work(node, arrives - 1 - 20);
        sim.enter(node);
        assert_eq!(actor.now(), arrives - 1, "the message has not come yet");
        sim.enter(node);
        assert_eq!(
            actor.now(),
            arrives - 1 + 20 + 900 + 700,
            "it has been handled"
        );
    });
}

/// What this thread has computed.
fn computed_here() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn measured_computation_takes_as_long_as_it_takes_here() {
    let sim = Sim::new(Settings {
        computation: Computation::Measured,
        ..settings(2)
    });
    const BUSY: Duration = Duration::from_millis(3);
    run(&sim, |actor| {
        let (sim, node) = (actor.sim, actor.node);
        for _ in 0..3 {
            sim.leave(node);
            // By the processor's clock: another program's time on this core is not charged.
            let begun = computed_here();
            while computed_here() - begun < BUSY {}
            sim.work(node, 1 << 60);
            sim.enter(node);
        }
    });
    let report = sim.report();
    // Less by what was taken away shortly before a stopwatch started.
    let least = 3 * BUSY.as_nanos() as u64 * 9 / 10;
    assert!(
        report.computed_ns.iter().all(|ns| *ns >= least),
        "{report:?}"
    );
    assert!(report.elapsed_ns >= least);
    assert!(
        report.elapsed_ns < report.work_ns(),
        "two nodes compute at the same time"
    );
}

#[test]
fn a_node_that_computes_takes_messages_when_it_sweeps_and_one_that_waits_at_once() {
    // The time until node 0 answers, and how much of what it computes has passed by then, where it
    // computes for so long.
    let answered = |seed, computes: u64| {
        let mut settings = settings(2);
        settings.network.sweep_ns = 1_000_000;
        settings.seed = seed;
        let sim = Sim::new(settings);
        let took = std::sync::atomic::AtomicU64::new(0);
        run(&sim, |actor| {
            if actor.node == NodeId(0) {
                actor.computes(computes);
                actor.sim.wait(actor.node, Duration::from_secs(1));
            } else {
                actor.send(0, ask(0));
                actor.sim.wait(actor.node, LONG);
                took.store(actor.now(), std::sync::atomic::Ordering::Relaxed);
            }
        });
        took.into_inner()
    };
    let (request, answer) = (ask(0).frame_bytes(), reply(0).frame_bytes());
    let at_once = 2 * (700 + 10_000 + 900) + request + answer;
    assert_eq!(answered(1, 0), at_once);
    assert_eq!(
        answered(1, 1_000),
        at_once,
        "it waits when the message comes"
    );
    // In the middle of a long computation it takes as long as until it sweeps, or waits.
    let of_long: Vec<u64> = (0..200).map(|seed| answered(seed, 100_000_000)).collect();
    let mean = of_long.iter().map(|took| took - at_once).sum::<u64>() / 200;
    assert!((800_000..1_200_000).contains(&mean), "{mean}");
    assert_eq!(of_long[7], answered(7, 100_000_000), "the seed decides");
    let slow = of_long.iter().position(|took| *took > 500_000).unwrap();
    // Once the computation is over it is no longer waited for.
    let soon = answered(slow as u64, 300_000);
    let wait_begins = 300_000 + 20;
    assert_eq!(soon, wait_begins + 900 + 700 + answer + 10_000 + 900);
}

#[test]
fn a_node_takes_the_messages_of_a_sweep_in_the_order_in_which_they_came() {
    for seed in 0..20 {
        let mut settings = settings(2);
        settings.network.sweep_ns = 1_000_000;
        settings.seed = seed;
        let sim = Sim::new(settings);
        let log = run(&sim, |actor| {
            if actor.node == NodeId(0) {
                actor.computes(300_000);
                actor.sim.wait(actor.node, Duration::from_secs(1));
            } else {
                (0..10).for_each(|round| actor.send(0, ask(round)));
                for _ in 0..10 {
                    actor.sim.wait(actor.node, LONG);
                }
            }
        });
        let log = log.lock().unwrap();
        let heard = log.iter().filter(|(to, ..)| *to == 0);
        let rounds: Vec<u32> = heard.map(|(_, _, round)| *round).collect();
        assert_eq!(rounds, (0..10).collect::<Vec<_>>(), "seed {seed}");
    }
}
