//! What takes virtual time: computation that is measured, and what a network has a price for.

use std::time::Duration;

use dhole::{Coherence, Config, Detector, Optimisations, Worker, WriteDetection, sim};
use rustix::time::{ClockId, clock_gettime};

/// What this thread has computed.
fn computed_here() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Computes for as long.
fn busy(time: Duration) -> u64 {
    let began = computed_here();
    while computed_here() - began < time {
        std::hint::spin_loop();
    }
    7
}

#[test]
fn what_makes_the_values_of_new_objects_takes_its_time() {
    const EACH: Duration = Duration::from_micros(500);
    let run = Config::nodes(1).simulate(sim::Settings::new(1), |w| {
        let began = w.now();
        w.alloc_range(3, |_| busy(EACH));
        let objects = w.now();
        w.alloc_array_with(3, |_| busy(EACH));
        Ok([objects - began, w.now() - objects])
    });
    let run = run.unwrap();
    // Less by what was taken away shortly before a stopwatch started; more than of two values.
    let least = 5 * EACH / 2;
    assert!(run.value.iter().all(|time| *time >= least), "{run:?}");
    let computed = run.report.simulated.unwrap().work();
    assert!(computed >= 2 * least, "{computed:?}");
}

const PAGE: usize = 512;

/// How long accesses of node 0 take to what node 1 has written, and the barrier after them.
fn accesses(config: Config, settings: &sim::Settings) -> Vec<u64> {
    let run = config.simulate(settings.clone(), |w| {
        let shared = w.once(|w| {
            let objects = w.alloc_range(2, |i| i as u64);
            Ok((objects, w.alloc_array_with(3 * PAGE, |i| i as f64)))
        })?;
        let (objects, array) = shared;
        if w.node().index() == 1 {
            for object in objects.iter() {
                *object.get_mut(w) += 1;
            }
            array.slice_mut(w, 0..3 * PAGE).fill(1.0);
        }
        w.barrier()?;
        let mut times = Vec::new();
        let mut timed = |w: &mut Worker<'_>, access: &dyn Fn(&mut Worker<'_>)| {
            let began = w.now();
            access(w);
            times.push((w.now() - began).as_nanos() as u64);
        };
        if w.node().index() == 0 {
            timed(w, &|w| assert_eq!(*objects.at(0).get(w), 1));
            timed(w, &|w| assert_eq!(*objects.at(0).get(w), 1));
            timed(w, &|w| *objects.at(0).get_mut(w) = 7);
            timed(w, &|w| *objects.at(1).get_mut(w) = 8);
            timed(w, &|w| assert_eq!(array.slice(w, 0..PAGE)[0], 1.0));
            timed(w, &|w| array.slice_mut(w, 0..PAGE).fill(2.0));
            timed(w, &|w| array.slice_mut(w, PAGE..3 * PAGE).fill(3.0));
        }
        let began = w.now();
        w.barrier()?;
        times.push((w.now() - began).as_nanos() as u64);
        Ok(times)
    });
    run.unwrap().value
}

fn fixed() -> sim::Settings {
    let mut settings = sim::Settings::new(2);
    settings.computation = sim::Computation::FixedCost { unit_ns: 1.0 };
    settings
}

/// How much longer each access takes than on a network without prices. A barrier may take less, for
/// what comes while the node computes is not waited for.
fn charged(config: &dyn Fn() -> Config, price: fn(&mut sim::Network)) -> Vec<i64> {
    let mut settings = fixed();
    let free = accesses(config(), &settings);
    price(&mut settings.network);
    let paid = accesses(config(), &settings);
    paid.iter()
        .zip(free)
        .map(|(paid, free)| *paid as i64 - free as i64)
        .collect()
}

#[test]
fn an_access_that_asks_or_writes_first_takes_a_fault_where_a_network_has_a_price_for_it() {
    // One at a time, so that nothing comes along with what lies beside it.
    let alone = Optimisations {
        read_aggregation: false,
        learn: false,
        ..Optimisations::default()
    };
    let fault = |network: &mut sim::Network| network.object_fault_ns = 1_000_000;
    for detector in Detector::ALL {
        let config = || Config::nodes(2).optimisations(alone).detector(detector);
        let faults = charged(&config, fault);
        let faults: Vec<i64> = faults.iter().map(|ns| (ns + 500_000) / 1_000_000).collect();
        // What is here takes none, and what is asked for to be written one. The last access writes
        // two pages, which it asks for in the first one's fault.
        assert_eq!(faults[..7], [1, 0, 1, 1, 1, 1, 2], "{detector}");
    }
    let pages = || Config::nodes(2).coherence(Coherence::TreadMarks);
    assert_eq!(
        charged(&pages, fault),
        [0; 8],
        "pages have a price of their own"
    );
}

#[test]
fn twins_of_objects_are_copied_and_compared_by_the_byte() {
    let of = |write_detection| {
        let config = || {
            Config::nodes(2).optimisations(Optimisations {
                read_aggregation: false,
                write_detection,
                ..Optimisations::default()
            })
        };
        let copied = charged(&config, |network| network.twin_ns_per_byte = 1.0);
        let compared = charged(&config, |network| network.diff_make_ns_per_byte = 1.0);
        // What the first write has made, what the second one has, and what the barrier compares.
        let compared = compared.last().copied().unwrap_or_default();
        [copied[2], copied[3], compared]
    };
    assert_eq!(of(WriteDetection::Marks), [0; 3]);
    assert_eq!(of(WriteDetection::Objects), [8, 8, 16]);
    assert_eq!(of(WriteDetection::Twins), [4_096, 4_096, 8_192]);
}
