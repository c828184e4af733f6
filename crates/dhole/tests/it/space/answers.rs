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
    for _ in 0..2 {
        if w.node().index() == 0 {
            *object.get_mut(w) += 1;
        }
        w.barrier()?;
    }
    Ok(object)
}

/// How long node 1 waits for an exclusive object of node 0, which computes meanwhile. Node 0 has
/// written the object before if it `writes`, and polls after each part if it `polls`.
fn waited(writes: bool, polls: bool) -> Duration {
    let waited_ns = AtomicU64::new(0);
    let run = Config::nodes(2).simulate(sim::Settings::fixed_cost(2), |w| {
        let object = exclusive(w)?;
        if w.node().index() == 0 {
            if writes {
                *object.get_mut(w) += 1;
            }
            for _ in 0..PARTS {
                w.work(PART_NS);
                if polls {
                    w.poll()?;
                }
            }
        } else {
            let began = w.now();
            assert_eq!(object.read(w), 2 + u64::from(writes));
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
    let polling = waited(true, true);
    assert!(polling < 5 * part, "{polling:?}");
    let silent = waited(true, false);
    assert!(silent > whole - 2 * part, "{silent:?}");
}

#[test]
fn what_is_exclusive_and_not_written_is_sent_while_its_node_computes() {
    let silent = waited(false, false);
    assert!(silent < Duration::from_micros(30), "{silent:?}");
}

/// An exclusive object that is written in each interval is withdrawn too, once somebody had to wait
/// for such an object.
#[test]
fn what_is_written_in_each_interval_is_sent_while_its_node_computes() {
    let waited_ns = [const { AtomicU64::new(0) }; 3];
    let run = Config::nodes(2).simulate(sim::Settings::fixed_cost(2), |w| {
        let objects = w.once(|w| Ok(w.alloc_range(3, |_| 0_u64)))?;
        let me = w.node().index();
        for round in 0..8 {
            if me == 0 {
                objects.iter().for_each(|object| *object.get_mut(w) += 1);
            }
            w.barrier()?;
            if me == 0 {
                // The second is written in the interval in which it is asked for.
                if round == 5 {
                    *objects.at(1).get_mut(w) += 1;
                }
                w.work(PARTS * PART_NS);
            } else if let Some(read) = [5, 7].iter().position(|at| *at == round) {
                let began = w.now();
                objects.at(1 + read).get(w);
                let ns = (w.now() - began).as_nanos() as u64;
                waited_ns[read].store(ns, Ordering::Relaxed);
            }
            w.barrier()?;
        }
        Ok(())
    });
    run.unwrap();
    let [first, second, _] = waited_ns.map(AtomicU64::into_inner);
    assert!(first > PARTS * PART_NS - 50_000, "{first}");
    assert!(second < 30_000, "{second}");
}

#[test]
fn a_poll_answers_what_waits_for_the_worker_on_threads() {
    let is_read = AtomicBool::new(false);
    let run = Config::nodes(2).one_sided(false).run(|w| {
        let object = exclusive(w)?;
        if w.node().index() == 1 {
            assert!(object.read(w) >= 2);
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
