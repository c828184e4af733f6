//! Once it is warm, the simulator allocates nothing, however long the run.

#[path = "sim/stage/mod.rs"]
mod stage;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use dhole_model::{NodeId, Notify};
use dhole_net::{Envelope, Outbox, Payload};
use dhole_node::Machine;
use dhole_sim::Sim;
use stage::{run, settings, wake_up};

struct Counting;

thread_local! {
    // A simulated cluster runs on the thread that starts it.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the promises of `dealloc`, and `alloc` is the system's.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of a run in which two nodes wake each other `rounds` times, with waits cut short.
fn allocations(rounds: u32) -> u64 {
    let sim = Sim::new(settings(2));
    let message = wake_up();
    let before = ALLOCATIONS.get();
    run(&sim, |actor| {
        let (sim, node) = (actor.sim, actor.node);
        let mut out = Outbox::default();
        for round in 0..rounds {
            let (to, body) = (NodeId(1 - node.0), message.clone());
            out.push(Envelope {
                from: node,
                to,
                body,
                payload: Payload::NONE,
            });
            sim.send(actor.receivers, node, &mut out, Notify::Now);
            sim.leave(node);
            sim.work(node, 1_000);
            sim.enter(node);
            sim.wait(node, Duration::from_millis(1 + u64::from(round % 50)));
        }
    });
    ALLOCATIONS.get() - before
}

#[test]
fn a_longer_run_allocates_no_more() {
    assert_eq!(allocations(100), allocations(10_000));
}
