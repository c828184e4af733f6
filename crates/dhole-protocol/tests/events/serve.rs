//! `Event::Serve`, and requests for objects that are being written.

use crate::pack::{OBJECT, Pack, from, from_pre_image, miss, n};
use dhole_protocol::{Command, Event, Message, Protocol, RegionCommand, WorkerIs};

/// A pack whose node 0 is writing the object, and a request of node 1 for it.
fn request_for_what_is_being_written(served_before: bool) -> (Protocol, Message) {
    let mut pack = Pack::with_object(3);
    if served_before {
        pack.run(2, miss(OBJECT, 0));
    }
    pack.write(0, OBJECT);
    pack.begin(1, miss(OBJECT, 0));
    let (_, _, message) = pack.in_flight.pop_front().expect("a fetch");
    (pack.nodes.swap_remove(0), message)
}

fn step(node: &mut Protocol, event: Event, worker: WorkerIs) -> Vec<Command> {
    let mut out = Vec::new();
    node.step(event, worker, &mut out)
        .expect("an event of a sound cluster");
    out
}

#[test]
fn a_request_waits_while_the_worker_computes_and_is_answered_at_its_next_call() {
    let (mut node, fetch) = request_for_what_is_being_written(false);
    assert_eq!(
        step(&mut node, from(1, fetch), WorkerIs::Computing),
        [Command::Deferred]
    );
    assert!(node.has_deferred());
    let served = step(&mut node, Event::Serve, WorkerIs::InCall);
    assert_eq!(from_pre_image(&served), Some(false));
    assert!(!node.has_deferred());
    assert_eq!(step(&mut node, Event::Serve, WorkerIs::InCall), []);
}

#[test]
fn a_request_in_a_call_is_answered_at_once() {
    let (mut node, fetch) = request_for_what_is_being_written(false);
    let served = step(&mut node, from(1, fetch), WorkerIs::InCall);
    assert_eq!(from_pre_image(&served), Some(false));
}

#[test]
fn a_request_is_answered_from_the_pre_image_where_there_is_one() {
    let (mut node, fetch) = request_for_what_is_being_written(true);
    let served = step(&mut node, from(1, fetch), WorkerIs::Computing);
    assert_eq!(from_pre_image(&served), Some(true));
}

#[test]
fn a_second_request_of_a_node_that_waits_is_refused() {
    let (mut node, fetch) = request_for_what_is_being_written(false);
    step(&mut node, from(1, fetch.clone()), WorkerIs::Computing);
    let (before, mut out) = (node.clone(), Vec::new());
    let again = node.step(from(1, fetch.clone()), WorkerIs::Computing, &mut out);
    assert!(again.is_err() && out.is_empty() && node == before);
    assert_eq!(
        step(&mut node, from(2, fetch), WorkerIs::Computing),
        [Command::Deferred]
    );
}

#[test]
fn waiting_requests_are_answered_in_the_order_in_which_they_came() {
    let (mut node, fetch) = request_for_what_is_being_written(false);
    step(&mut node, from(2, fetch.clone()), WorkerIs::Computing);
    step(&mut node, from(1, fetch), WorkerIs::Computing);
    let served = step(&mut node, Event::Serve, WorkerIs::InCall);
    let to: Vec<_> = served
        .iter()
        .map(|command| match command {
            Command::Objects(RegionCommand::Reply(reply)) => reply.to,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(to, [n(2), n(1)]);
}
