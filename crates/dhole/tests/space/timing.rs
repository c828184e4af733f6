//! What takes virtual time where computation is measured.

use std::time::Duration;

use dhole::{Config, sim};
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
