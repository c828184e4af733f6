//! When a node that computes answers a request for an object of its own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dhole::{Config, Ref, Worker, sim};

/// Parts of a computation, and how long each takes.
const PARTS: u64 = 100;
const PART_NS: u64 = 10_000;

/// An object that node 0 alone has written, interval after interval: it is exclusive.
fn exclusive(w: &mut Worker<'_>) -> dhole::Result<Ref<u64>> {
    let object = w.once(|w| Ok(w.alloc(0_u64)))?;
    for _ in 0..4 {
        if w.node().index() == 0 {
            *object.get_mut(w) += 1;
        }
        w.barrier()?;
    }
    Ok(object)
}

/// How long node 1 waits for an exclusive object of node 0, which writes it and then computes, and
/// polls after each part if it `polls`.
fn waited(polls: bool) -> Duration {
    let waited_ns = AtomicU64::new(0);
    let run = Config::nodes(2).simulate(sim::Settings::fixed_cost(2), |w| {
        let object = exclusive(w)?;
        if w.node().index() == 0 {
            *object.get_mut(w) += 1;
            for _ in 0..PARTS {
                w.work(PART_NS);
                if polls {
                    w.poll()?;
                }
            }
        } else {
            let began = w.now();
            assert_eq!(object.read(w), 5);
            waited_ns.store((w.now() - began).as_nanos() as u64, Ordering::Relaxed);
        }
        Ok(())
    });
    run.unwrap();
    Duration::from_nanos(waited_ns.into_inner())
}

#[test]
fn a_computation_that_polls_answers_for_what_it_has_written() {
    let whole = Duration::from_nanos(PARTS * PART_NS);
    let part = Duration::from_nanos(PART_NS);
    // A round trip takes 24 us.
    let polling = waited(true);
    assert!(polling < 5 * part, "{polling:?}");
    let silent = waited(false);
    assert!(silent > whole - 2 * part, "{silent:?}");
}

#[test]
fn a_poll_answers_what_waits_for_the_worker_on_threads() {
    let is_read = AtomicBool::new(false);
    let run = Config::nodes(2).one_sided(false).run(|w| {
        let object = exclusive(w)?;
        if w.node().index() == 1 {
            assert!(object.read(w) >= 4);
            is_read.store(true, Ordering::Relaxed);
            return Ok(());
        }
        *object.get_mut(w) += 1;
        let began = Instant::now();
        while !is_read.load(Ordering::Relaxed) {
            w.poll()?;
            assert!(began.elapsed() < Duration::from_secs(60), "no answer");
        }
        Ok(())
    });
    run.unwrap();
}
