//! Litmus tests over counters of both kinds: every run of them, and bugs that show there.

use conformance::Bug;
use conformance::model::{Fault, programs::*};
use dhole_model::NodeId;
use dhole_protocol::objects::Strategy;

use crate::{caught, sound};

const REPLICATED: Strategy = Strategy::Replicated;

/// A replicated counter and one that is kept on some node, and the other way round; and two of
/// either kind.
fn mixed(nodes: u16) -> impl Iterator<Item = [Strategy; 2]> {
    let on = |node| Strategy::On(NodeId(node));
    let single = (0..nodes).flat_map(move |node| {
        let single = on(node);
        [[REPLICATED, single], [single, REPLICATED]]
    });
    single.chain([[REPLICATED; 2], [on(0), on(1)]])
}

#[test]
fn one_order_explains_two_nodes_with_objects_of_both_kinds() {
    for kept in mixed(2) {
        sound(store_buffering(kept), &[]);
        sound(message_passing(kept), &[]);
    }
}

#[test]
fn one_order_explains_what_is_passed_on() {
    for kept in mixed(3) {
        sound(passed_on(kept), &[]);
    }
}

#[test]
#[ignore = "more than two minutes, and not run to its end yet: four nodes; \
            cargo test -p conformance --release --test models litmus -- --ignored"]
fn one_order_explains_independent_reads_of_independent_writes() {
    for kept in mixed(4) {
        sound(independent_reads(kept), &[]);
    }
}

#[test]
fn one_order_explains_what_is_started_before_a_synchronisation() {
    for kept in mixed(2) {
        sound(started_stores(kept), &[]);
        sound(started_message(kept), &[]);
    }
    for kept in [REPLICATED, Strategy::On(NodeId(0)), Strategy::On(NodeId(1))] {
        for many in 1..=3 {
            sound(started_before_a_barrier(kept, many), &[]);
        }
    }
}

#[test]
fn a_synchronisation_that_does_not_wait_for_what_was_started_is_caught() {
    let on = |node| Strategy::On(NodeId(node));
    for kept in [REPLICATED, on(1)] {
        for many in [1, 3] {
            let program = started_before_a_barrier(kept, many);
            caught(Bug::SkipSettle, program, Fault::NoOrder);
        }
        caught(
            Bug::SkipSettle,
            started_stores([kept, on(0)]),
            Fault::NoOrder,
        );
        caught(
            Bug::SkipSettle,
            started_message([kept, on(0)]),
            Fault::NoOrder,
        );
    }
}

#[test]
fn a_false_guard_that_is_not_told_leaves_a_synchronisation_waiting() {
    for many in [1, 3] {
        let program = started_with_a_false_guard(Strategy::On(NodeId(1)), many);
        caught(Bug::LoseBlocked, program, Fault::Stuck);
    }
}

#[test]
fn an_order_that_is_not_told_with_calls_is_caught() {
    let on = |node| Strategy::On(NodeId(node));
    // Who reads keeps the second counter itself, or asks who wrote it.
    for single in [on(1), on(0)] {
        let program = message_passing([REPLICATED, single]);
        caught(Bug::ForgetOrder, program, Fault::NoOrder);
    }
    caught(
        Bug::ForgetOrder,
        passed_on([REPLICATED, on(2)]),
        Fault::NoOrder,
    );
}
