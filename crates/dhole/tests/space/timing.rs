//! What takes virtual time where computation is measured.

use std::time::{Duration, Instant};

use dhole::{Config, sim};

/// Computes for as long.
fn busy(time: Duration) -> u64 {
    let began = Instant::now();
    while began.elapsed() < time {
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
    assert!(run.value.iter().all(|time| *time >= 3 * EACH), "{run:?}");
    let computed = run.report.simulated.unwrap().work();
    assert!(computed >= 6 * EACH, "{computed:?}");
}
