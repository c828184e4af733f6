//! A program of its own: what else a process computes would count.

#[path = "sim/stage/mod.rs"]
mod stage;

use std::time::{Duration, Instant};

use dhole_node::Machine;
use dhole_sim::{Settings, Sim};
use stage::run;

#[test]
fn time_in_which_a_program_does_not_compute_is_not_charged() {
    const AWAY: Duration = Duration::from_millis(200);
    let machine = Sim::new(Settings::new(1));
    let began = Instant::now();
    run(&machine, |actor| {
        machine.leave(actor.node);
        // As if another program had the core: there is no other way to be without it for sure.
        std::thread::sleep(AWAY);
        machine.enter(actor.node);
    });
    let charged = machine.report().computed_ns[0];
    assert!(began.elapsed() >= AWAY);
    assert!(charged < AWAY.as_nanos() as u64 / 2, "{charged} ns");
    assert!(
        charged > 0,
        "what is shorter than the stopwatch can tell is charged"
    );
}
