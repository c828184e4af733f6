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
