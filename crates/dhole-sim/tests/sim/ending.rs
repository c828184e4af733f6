//! What cannot run is refused, and what unwinds ends the run in order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::stage::{CURSED, ask, run, settings};
use dhole_model::NodeId;
use dhole_net::Receiver;
use dhole_node::{Machine, StartError};
use dhole_protocol::Message;
use dhole_sim::{Settings, Sim};

struct Dropped<'a>(&'a AtomicUsize);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn words(unwound: Box<dyn std::any::Any + Send>) -> String {
    match unwound.downcast::<String>() {
        Ok(words) => *words,
        Err(other) => other.downcast_ref::<&str>().expect("words").to_string(),
    }
}

#[test]
fn a_body_that_unwinds_ends_the_others_in_order() {
    let sim = Sim::new(settings(8));
    let (dropped, held) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        run(&sim, |actor| {
            held.fetch_add(1, Ordering::Relaxed);
            let _value = Dropped(&dropped);
            if actor.node == NodeId(5) {
                actor.sim.wait(actor.node, Duration::from_micros(1));
                panic!("node 5 is unwell");
            }
            actor.sim.wait(actor.node, Duration::from_secs(1));
            unreachable!("the run has ended");
        });
    }));
    assert_eq!(words(unwound.unwrap_err()), "node 5 is unwell");
    assert_eq!((held.into_inner(), dropped.into_inner()), (8, 8));
    run(&sim, |actor| {
        actor.sim.wait(actor.node, Duration::from_secs(1));
    });
}

#[test]
fn a_handler_that_unwinds_ends_the_run() {
    let sim = Sim::new(settings(3));
    let dropped = AtomicUsize::new(0);
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        run(&sim, |actor| {
            let _value = Dropped(&dropped);
            actor.send(0, ask(CURSED));
            actor.sim.wait(actor.node, Duration::from_secs(1));
        });
    }));
    assert!(words(unwound.unwrap_err()).contains("this round is cursed"));
    assert_eq!(dropped.into_inner(), 3);
}

#[test]
fn a_body_may_catch_what_ends_it_and_wait_in_a_destructor() {
    struct WaitsInDrop<'a>(&'a Sim, NodeId);
    impl Drop for WaitsInDrop<'_> {
        fn drop(&mut self) {
            self.0.wait(self.1, Duration::from_micros(3));
        }
    }
    let sim = Sim::new(settings(4));
    let caught = AtomicUsize::new(0);
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        run(&sim, |actor| {
            let waits = || {
                let _waits = WaitsInDrop(actor.sim, actor.node);
                actor.sim.wait(actor.node, Duration::from_micros(2));
                assert_ne!(actor.node, NodeId(2), "node 2 is unwell");
                actor.sim.wait(actor.node, Duration::from_secs(1));
            };
            if let Err(unwound) = catch_unwind(AssertUnwindSafe(waits)) {
                caught.fetch_add(1, Ordering::Relaxed);
                if actor.node == NodeId(2) {
                    std::panic::resume_unwind(unwound);
                }
            }
        });
    }));
    assert!(words(unwound.unwrap_err()).contains("node 2 is unwell"));
    assert_eq!(caught.into_inner(), 4);
}

#[test]
fn what_cannot_run_is_refused_before_any_body_runs() {
    let body = |_: NodeId| panic!("no body runs");
    for nodes in [0, 5000] {
        let refused = Sim::new(Settings::new(nodes)).start(&[], &body);
        let Err(StartError::Refused {
            nodes: named,
            cause,
            ..
        }) = refused
        else {
            panic!("{refused:?}");
        };
        assert_eq!(named, nodes);
        assert!(cause.contains(&nodes.to_string()), "{cause}");
    }
    let error = Sim::new(Settings::new(2)).start(&[], &body).unwrap_err();
    assert!(error.to_string().contains("0 receivers"), "{error}");
}

#[test]
fn a_run_within_a_run_of_the_same_cluster_is_refused() {
    let sim = Sim::new(settings(1));
    run(&sim, |actor| {
        let error = actor.sim.start(actor.receivers, &|_| ()).unwrap_err();
        assert!(
            error.to_string().contains("this cluster is running"),
            "{error}"
        );
    });
}

#[test]
fn another_cluster_may_run_within_a_run() {
    let (outer, inner) = (Sim::new(settings(2)), Sim::new(settings(2)));
    run(&outer, |actor| {
        if actor.node == NodeId(1) {
            actor.sim.wait(actor.node, Duration::from_micros(5));
            return;
        }
        run(&inner, |inside| {
            inside.sim.wait(inside.node, Duration::from_micros(1));
            let misuse = || actor.sim.wait(actor.node, Duration::ZERO);
            assert!(
                catch_unwind(AssertUnwindSafe(misuse)).is_err(),
                "from the other's stack"
            );
        });
    });
    assert_eq!(inner.report().elapsed_ns, 1_000);
    assert_eq!(outer.report().elapsed_ns, 5_000);
}

#[test]
fn only_the_threads_own_body_may_use_a_node() {
    let sim = Sim::new(settings(2));
    let receivers: [&dyn Receiver<Message>; 0] = [];
    assert!(
        catch_unwind(AssertUnwindSafe(|| sim.now(NodeId(0)))).is_err(),
        "outside a run"
    );
    run(&sim, |actor| {
        let sim = actor.sim;
        let other = NodeId(1 - actor.node.0);
        let misuse = || sim.wait(other, Duration::ZERO);
        assert!(
            catch_unwind(AssertUnwindSafe(misuse)).is_err(),
            "another node's worker"
        );
        let elsewhere = std::thread::scope(|s| s.spawn(|| sim.now(actor.node)).join().is_err());
        assert!(elsewhere, "another thread");
    });
    assert!(sim.start(&receivers, &|_| ()).is_err());
}
